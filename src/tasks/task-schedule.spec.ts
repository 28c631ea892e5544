import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { nextPollAtMs, pollAfterFailureAtMs, pollWithoutChannelAtMs } from './task-schedule.js'

const NOW_MS = 1_750_000_000_000
/** Half way: no jitter. */
const EVEN = { nowMs: NOW_MS, pollIntervalMs: 5000, chance: 0.5 }

const aged = (ageMs: number, changes: object = {}) => ({
  state: 'processing' as const,
  createdAtMs: NOW_MS - ageMs,
  polls: 0,
  ...changes,
})

describe('The next poll of a task', () => {
  it.each([
    [0, 5000],
    [59_999, 5000],
    [60_000, 15_000],
    [3_600_000, 15_000],
  ])('that is %i ms old is %i ms away', (ageMs, delayMs) => {
    expect(nextPollAtMs(aged(ageMs), EVEN) - NOW_MS).toBe(delayMs)
  })

  it('that is looked for comes soon at first, then ever later, but at least once a minute', () => {
    const delays = [0, 1, 2, 3, 5, 6, 7, 1000].map(
      (polls) => nextPollAtMs(aged(0, { state: 'unknown', polls }), EVEN) - NOW_MS,
    )
    expect(delays).toEqual([1000, 2000, 4000, 8000, 32_000, 60_000, 60_000, 60_000])
  })

  it('after failures of its channel comes ever later, but at least once a minute', () => {
    const delays = [0, 1, 2, 3, 4, 1000].map((failures) => pollAfterFailureAtMs(aged(0), failures, undefined, EVEN))
    expect(delays.map((atMs) => atMs - NOW_MS)).toEqual([5000, 10_000, 20_000, 40_000, 60_000, 60_000])
  })

  it('is not before the time its upstream asked for', () => {
    expect(pollAfterFailureAtMs(aged(0), 0, 30, EVEN) - NOW_MS).toBe(30_000)
    expect(pollAfterFailureAtMs(aged(0), 0, 1, EVEN) - NOW_MS).toBe(5000)
  })

  it('without a channel is a minute away', () => {
    expect(pollWithoutChannelAtMs(EVEN) - NOW_MS).toBe(60_000)
  })

  it('is moved by at most a fifth, either way', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.nat(120_000), (chance, ageMs) => {
        const evenMs = nextPollAtMs(aged(ageMs), EVEN) - NOW_MS
        const delayMs = nextPollAtMs(aged(ageMs), { ...EVEN, chance }) - NOW_MS
        expect(delayMs).toBeGreaterThanOrEqual(evenMs * 0.8 - 1)
        expect(delayMs).toBeLessThanOrEqual(evenMs * 1.2 + 1)
      }),
    )
    expect(nextPollAtMs(aged(0), { ...EVEN, chance: 0 }) - NOW_MS).toBe(4000)
  })
})
