import { describe, expect, it } from '@jest/globals'
import { AttemptRecord } from '../core/request-context.js'
import { beginTrace, newSpanId, newTraceId, readTraceContext } from './trace-context.js'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

const attempt = (): AttemptRecord => new AttemptRecord('one', 0)

describe('The trace of a call', () => {
  it('goes on with that of its caller, who decides whether it is sampled', () => {
    for (const [flags, isSampled] of [
      ['01', true],
      ['00', false],
    ] as const) {
      const trace = beginTrace({ traceparent: `00-${TRACE}-${SPAN}-${flags}`, tracestate: 'a=1' }, isSampled ? 0 : 1)
      expect(trace).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, isSampled })
      const tried = attempt()
      expect(trace.beginAttempt(tried)).toEqual([
        'traceparent',
        `00-${TRACE}-${String(tried.spanId)}-${flags}`,
        'tracestate',
        'a=1',
      ])
    }
  })

  it('begins here without one, sampled as often as it is to be', () => {
    expect(beginTrace({}, 1)).toMatchObject({ isSampled: true, parentSpanId: undefined })
    expect(beginTrace({}, 0).isSampled).toBe(false)
    expect(beginTrace({ traceparent: 'nonsense', tracestate: 'a=1' }, 1).beginAttempt(attempt())).toHaveLength(2)
    const sampled = Array.from({ length: 2000 }, () => beginTrace({}, 0.5)).filter(({ isSampled }) => isSampled)
    expect(sampled.length).toBeGreaterThan(800)
    expect(sampled.length).toBeLessThan(1200)
  })

  it('names each attempt by a span of its own', () => {
    const trace = beginTrace({}, 1)
    const [one, other] = [attempt(), attempt()]
    trace.beginAttempt(one)
    trace.beginAttempt(other)
    expect(new Set([trace.spanId, one.spanId, other.spanId]).size).toBe(3)
  })
})

describe('Ids', () => {
  it('are of their length, and never the same twice', () => {
    const traces = Array.from({ length: 5000 }, newTraceId)
    const spans = Array.from({ length: 5000 }, newSpanId)
    expect(traces.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true)
    expect(spans.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true)
    expect(new Set([...traces, ...spans]).size).toBe(10_000)
  })
})

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
