import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { nextAttemptAtMs, readRetryAfterMs } from './callback-schedule.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SCHEDULE_MS = [0, 5000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000]
const NOW_MS = Date.parse('Wed, 01 Jul 2026 12:00:00 GMT')

const lowest = (): number => 0
const middle = (): number => 0.5

describe('The next attempt', () => {
  it('follows the schedule, one delay for each attempt, and ends with it', () => {
    const delays = SCHEDULE_MS.map((_, attempts) => {
      const atMs = nextAttemptAtMs(SCHEDULE_MS, { attempts: attempts + 1, nowMs: NOW_MS }, middle)
      return atMs === undefined ? undefined : atMs - NOW_MS
    })
    expect(delays).toEqual([...SCHEDULE_MS.slice(1), undefined])
    expect(nextAttemptAtMs([], { attempts: 1, nowMs: NOW_MS })).toBeUndefined()
  })

  it('is up to 20 % earlier or later than that, and uses the whole of this range', () => {
    expect(nextAttemptAtMs(SCHEDULE_MS, { attempts: 1, nowMs: NOW_MS }, lowest)).toBe(NOW_MS + 4000)
    expect(nextAttemptAtMs(SCHEDULE_MS, { attempts: 1, nowMs: NOW_MS }, () => 0.999_999)).toBe(NOW_MS + 6000)
    const drawn = Array.from({ length: 200 }, () => nextAttemptAtMs(SCHEDULE_MS, { attempts: 2, nowMs: 0 }) ?? 0)
    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(240_000)
    expect(Math.max(...drawn)).toBeLessThanOrEqual(360_000)
    expect(new Set(drawn).size).toBeGreaterThan(100)
  })

  it('waits as long as the receiver asks, but never comes earlier than the schedule', () => {
    const failed = (retryAfterMs: number) => ({ attempts: 1, nowMs: NOW_MS, retryAfterMs })
    expect(nextAttemptAtMs(SCHEDULE_MS, failed(60_000), middle)).toBe(NOW_MS + 60_000)
    expect(nextAttemptAtMs(SCHEDULE_MS, failed(1000), middle)).toBe(NOW_MS + 5000)
  })

  it('is none after the last one, whatever the receiver asks', () => {
    const failed = { attempts: SCHEDULE_MS.length, nowMs: NOW_MS, retryAfterMs: 60_000 }
    expect(nextAttemptAtMs(SCHEDULE_MS, failed)).toBeUndefined()
  })
})

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['120', 120_000],
    [' 120 ', 120_000],
    ['Wed, 01 Jul 2026 12:02:00 GMT', 120_000],
    ['Wednesday, 01-Jul-26 12:02:00 GMT', 120_000],
    ['Wed, 01 Jul 2026 11:00:00 GMT', 0],
    ['Thu, 02 Jul 2026 12:00:00 GMT', DAY_MS],
    ['Fri, 03 Jul 2026 12:00:00 GMT', DAY_MS],
    ['86401', DAY_MS],
    ['9'.repeat(400), DAY_MS],
  ])('is read as seconds or as a date, at most 24 hours: %s', (value, expected) => {
    expect(readRetryAfterMs(value, NOW_MS)).toBe(expected)
  })

  it.each([undefined, '', '-5', '1.5', '1e3', 'soon', '2027-07', 'Wed', '2026-07-01T12:02:00Z', '+5'])(
    'that says nothing readable counts for nothing: %s',
    (value) => {
      expect(readRetryAfterMs(value, NOW_MS)).toBe(0)
    },
  )

  it('twice counts for nothing', () => {
    expect(readRetryAfterMs(['5', '6'], NOW_MS)).toBe(0)
  })

  it('is always within 24 hours, whatever a receiver sends', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.date().map(String), fc.integer().map(String)), (value) => {
        const waitMs = readRetryAfterMs(value, NOW_MS)
        expect(waitMs).toBeGreaterThanOrEqual(0)
        expect(waitMs).toBeLessThanOrEqual(DAY_MS)
      }),
    )
  })
})
