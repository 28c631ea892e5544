import { describe, expect, it } from '@jest/globals'
import { readTraceContext } from './trace.js'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const PARENT = `00-${TRACE}-${SPAN}-01`

describe('The trace of a caller', () => {
  it('is read from traceparent', () => {
    expect(readTraceContext(PARENT, undefined)).toEqual({ traceId: TRACE, parentSpanId: SPAN, isSampled: true })
  })

  it.each([
    ['00', false],
    ['01', true],
    ['02', false],
    ['03', true],
    ['ff', true],
  ])('is sampled as the last bit of its flags has it: %s', (flags, isSampled) => {
    expect(readTraceContext(`00-${TRACE}-${SPAN}-${flags}`, undefined)?.isSampled).toBe(isSampled)
  })

  it('may be of a later version, whatever that appends', () => {
    expect(readTraceContext(`cc-${TRACE}-${SPAN}-01`, undefined)?.traceId).toBe(TRACE)
    expect(readTraceContext(`cc-${TRACE}-${SPAN}-01-what-else`, undefined)?.traceId).toBe(TRACE)
  })

  it.each([
    ['nothing', undefined],
    ['an empty header', ''],
    ['two headers', `${PARENT}, ${PARENT}`],
    ['a list', [PARENT, PARENT]],
    ['upper case', PARENT.toUpperCase()],
    ['the version that is forbidden', `ff-${TRACE}-${SPAN}-01`],
    ['more than the first version has', `${PARENT}-01`],
    ['a later version that runs on without a dash', `cc-${TRACE}-${SPAN}-01x`],
    ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['no span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a short span', `00-${TRACE}-${SPAN.slice(1)}-01`],
    ['flags of one digit', `00-${TRACE}-${SPAN}-1`],
    ['a space before it', ` ${PARENT}`],
    ['a line break after it', `${PARENT}\n`],
    ['what is no hex', `00-${TRACE.replace('4', 'g')}-${SPAN}-01`],
  ])('begins here when traceparent is %s', (_what, header) => {
    expect(readTraceContext(header, 'a=1')).toBeUndefined()
  })

  it.each([
    'a=1',
    'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7',
    ' a=1 ,\tb=2 ',
    'a=1,,b=2',
    '0tenant/x*y-z_@system=v w',
    `a=${'x'.repeat(256)}`,
    Array.from({ length: 32 }, (_, index) => `k${index}=v`).join(','),
  ])('keeps a tracestate that is well formed: %.40s', (state) => {
    expect(readTraceContext(PARENT, state)?.traceState).toBe(state)
  })

  it.each([
    ['', 'nothing in it'],
    [',', 'no member'],
    ['a', 'no value'],
    ['=1', 'no key'],
    ['A=1', 'an upper-case key'],
    ['a=1,a=2', 'a key twice'],
    ['a=b=c', 'an equals sign in a value'],
    ['a=\u00e9', 'a letter that is no ASCII'],
    ['a@=1', 'no system'],
    [`a=${'x'.repeat(257)}`, 'a long value'],
    [`${'k'.repeat(257)}=1`, 'a long key'],
    [Array.from({ length: 33 }, (_, index) => `k${index}=v`).join(','), '33 members'],
    [`a=${'x'.repeat(250)},b=${'x'.repeat(250)},c=${'x'.repeat(10)}`, 'more than 512 characters'],
  ])('drops the tracestate %.20s with %s, and goes on', (state) => {
    expect(readTraceContext(PARENT, state)).toEqual({ traceId: TRACE, parentSpanId: SPAN, isSampled: true })
  })
})
