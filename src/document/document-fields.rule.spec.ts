import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { cpuMs } from '../../test/support/cpu-time.js'
import { flagOf, flagText, timeout, timeoutMsOf, timeoutText } from './document-fields.rule.js'

const LIMITS = { defaultTimeoutMs: 30_000, maximumTimeoutMs: 120_000 }

describe('A timeout', () => {
  it.each([
    [undefined, 30_000],
    [null, 30_000],
    [20, 20_000],
    [0.25, 250],
    [120, 120_000],
    [120.001, 120_000],
    [999, 120_000],
    [999.999, 120_000],
    [1000, 1000],
    [1500.5, 1500.5],
    [119_999, 119_999],
    [120_000, 120_000],
    [Number.MAX_VALUE, 120_000],
    ['20', 20_000],
    ['1e3', 1000],
    [' .5 ', 500],
  ])('of %j lasts %d ms', (value, expected) => {
    expect(timeoutMsOf(value, LIMITS)).toBe(expected)
  })

  it('lasts longer than nothing and no longer than the operator allows, whatever the caller wants', () => {
    fc.assert(
      fc.property(fc.double({ min: Number.MIN_VALUE, noNaN: true, noDefaultInfinity: true }), (seconds) => {
        expect(timeout(seconds, 'timeout')).toBeUndefined()
        const timeoutMs = timeoutMsOf(seconds, LIMITS)
        expect(timeoutMs).toBeGreaterThan(0)
        expect(timeoutMs).toBeLessThanOrEqual(120_000)
      }),
    )
  })

  it('means the same as a number and as its text', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-9, max: 1e9, noNaN: true }), (seconds) => {
        expect(timeoutText(String(seconds), 'timeout')).toBeUndefined()
        expect(timeoutMsOf(String(seconds), LIMITS)).toBe(timeoutMsOf(seconds, LIMITS))
      }),
    )
  })

  it.each([0, -0, -1, NaN, Infinity, '1', true, null, [], {}])('may not be %j in JSON', (value) => {
    expect(timeout(value, 'timeout')).toMatchObject({ path: 'timeout' })
  })

  it.each([1, '', ' ', '0', '-1', '+', '.', '1,5', '1s', '0x1', 'NaN', 'Infinity', '1e999', '1e-999', ['1'], '１'])(
    'may not be %j in a form',
    (value) => {
      expect(timeoutText(value, 'timeout')).toMatchObject({ path: 'timeout' })
    },
  )

  it.each(['1'.repeat(65_536) + 'x', `${' '.repeat(65_536)}x`, `1.${'0'.repeat(65_536)}`, '0'.repeat(33)])(
    'of many characters in a form is refused at once',
    (value) => {
      const startedAtMs = cpuMs()
      expect(timeoutText(value, 'timeout')).toMatchObject({ path: 'timeout' })
      expect(cpuMs() - startedAtMs).toBeLessThan(100)
    },
  )
})

describe('A flag in a form', () => {
  it.each([
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ])('may be %j', (value, expected) => {
    expect(flagText(value, 'no_cache')).toBeUndefined()
    expect(flagOf(value)).toBe(expected)
  })

  it('is off when it is absent', () => {
    expect([flagOf(undefined), flagOf(null)]).toEqual([false, false])
  })

  it.each(['', 'yes', 'TRUE', '2', 'toString', true, ['true']])('may not be %j', (value) => {
    expect(flagText(value, 'no_cache')).toMatchObject({ path: 'no_cache' })
  })
})
