import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { limitParseTime, processorMs } from './parse-time-limit.js'

describe('The time of a document', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  /** After how many milliseconds by the clock it is over, for a process that has this share of a processor. */
  function endOf(share: number | undefined, remainingMs = 60_000): number {
    const startedAtMs = performance.now()
    const onOver = jest.fn(() => performance.now() - startedAtMs)
    const workedMs = () => (share === undefined ? undefined : 500 + (performance.now() - startedAtMs) * share)
    limitParseTime(workedMs, { parseMs: 1000, remainingMs }, onOver)
    jest.advanceTimersByTime(60_000)
    expect(onOver).toHaveBeenCalledTimes(1)
    return Math.round(onOver.mock.results[0]?.value as number)
  }

  it.each([
    ['when it has worked so long', 1, 1000],
    ['later on a machine that gives it half of a processor', 0.5, 2000],
    ['after four times as long by the clock when it works hardly or not at all', 0, 4000],
    ['by the clock where the system does not tell what it has worked', undefined, 1000],
  ])('is over %s', (_when, share, ms) => {
    expect(endOf(share)).toBeGreaterThanOrEqual(ms)
    expect(endOf(share)).toBeLessThan(ms + 20)
  })

  it("is over by the caller's clock, however little it has worked", () => {
    expect(endOf(0.1, 300)).toBe(300)
  })

  it('is not over for a document that was read', () => {
    const onOver = jest.fn()
    limitParseTime(() => undefined, { parseMs: 1000, remainingMs: 1000 }, onOver)()
    jest.advanceTimersByTime(60_000)
    expect(onOver).not.toHaveBeenCalled()
  })
})

describe('The processor time of a process', () => {
  it('grows while it works, and is not known of one that is no more', () => {
    const before = processorMs(process.pid)
    const cpu = process.cpuUsage()
    while (process.cpuUsage(cpu).user < 60_000);
    if (process.platform === 'linux') expect(processorMs(process.pid)).toBeGreaterThanOrEqual((before ?? Infinity) + 30)
    expect(processorMs(2 ** 30)).toBeUndefined()
  })
})
