import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { ChannelFailure } from './channel-attempt.js'
import { ChannelHealth } from './circuit-breaker.js'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const healthOf = (breaker: object = {}): ChannelHealth =>
  new ChannelHealth(
    new ConfigStore(parseConfig(JSON.stringify({ breaker }), {}), () => Promise.reject(new Error('no reload'))),
  )

const fail = (health: ChannelHealth, times: number, failure: ChannelFailure = {}): void => {
  for (let failed = 0; failed < times; failed++) health.begin('a').failed(failure)
}

describe('The breaker of a channel', () => {
  it('opens at the failure set, for the cool-down, and for no other channel', () => {
    const health = healthOf({ failures: 2, coolDownMs: 1000 })
    fail(health, 1)
    expect(health.stateOf('a')).toBe('closed')
    fail(health, 1)
    expect([health.stateOf('a'), health.stateOf('b')]).toEqual(['open', 'closed'])
    jest.advanceTimersByTime(999)
    expect(health.stateOf('a')).toBe('open')
    jest.advanceTimersByTime(1)
    expect(health.stateOf('a')).toBe('half_open')
  })

  it('lets one probe through at a time, and closes when that succeeds', () => {
    const health = healthOf({ failures: 1, coolDownMs: 1000 })
    fail(health, 1)
    jest.advanceTimersByTime(1000)
    const probe = health.begin('a')
    expect(health.stateOf('a')).toBe('open')
    probe.succeeded()
    expect(health.stateOf('a')).toBe('closed')
    fail(health, 1)
    jest.advanceTimersByTime(1000)
    expect(health.stateOf('a')).toBe('half_open')
  })

  it('is probed again at once when the probe says nothing', () => {
    const health = healthOf({ failures: 1, coolDownMs: 1000 })
    fail(health, 1)
    jest.advanceTimersByTime(1000)
    health.begin('a').ended()
    expect(health.stateOf('a')).toBe('half_open')
  })

  it('cools down twice as long after each failed probe, up to the maximum', () => {
    const health = healthOf({ failures: 1, coolDownMs: 1000, maximumCoolDownMs: 3000 })
    const lasts: number[] = []
    for (let opening = 0; opening < 4; opening++) {
      fail(health, 1)
      const lastsMs = health.openUntilMs('a') - performance.now()
      lasts.push(lastsMs)
      jest.advanceTimersByTime(lastsMs)
    }
    expect(lasts).toEqual([1000, 2000, 3000, 3000])
  })

  it('is not held open longer by failures that were under way', () => {
    const health = healthOf({ failures: 1, coolDownMs: 1000 })
    const late = health.begin('a')
    fail(health, 1)
    jest.advanceTimersByTime(900)
    late.failed({})
    jest.advanceTimersByTime(100)
    expect(health.stateOf('a')).toBe('half_open')
  })

  it('opens for as long as the upstream says', () => {
    const health = healthOf({ failures: 9 })
    fail(health, 1, { openMs: 7000 })
    jest.advanceTimersByTime(6999)
    expect(health.stateOf('a')).toBe('open')
    jest.advanceTimersByTime(1)
    expect(health.stateOf('a')).toBe('half_open')
  })

  it('opens by failed reads as well, and is not closed by reads that succeed', () => {
    const health = healthOf({ failures: 2, coolDownMs: 1000 })
    for (let read = 0; read < 2; read++) health.beginRead('a').failed({})
    expect(health.stateOf('a')).toBe('open')
    health.beginRead('a').succeeded()
    jest.advanceTimersByTime(1000)
    health.beginRead('a').succeeded()
    expect(health.stateOf('a')).toBe('half_open')
  })

  it('is closed by no success of what was under way when it opened', () => {
    const health = healthOf({ failures: 1, coolDownMs: 1000 })
    const late = health.begin('a')
    fail(health, 1)
    late.succeeded()
    expect(health.stateOf('a')).toBe('open')
  })

  it('forgets failures only with an answer that comes to its end', () => {
    const health = healthOf({ failures: 2, coolDownMs: 1000 })
    for (const failures of [1, 2]) {
      const cut = health.begin('a')
      cut.answered()
      cut.failed({})
      expect(health.snapshot()).toEqual([])
      expect(health.stateOf('a')).toBe(failures === 1 ? 'closed' : 'open')
    }
  })

  it('opens again at once when the probe is cut after its first byte', () => {
    const health = healthOf({ failures: 2, coolDownMs: 1000 })
    fail(health, 2)
    jest.advanceTimersByTime(1000)
    const probe = health.begin('a')
    probe.answered()
    expect(health.stateOf('a')).toBe('closed')
    probe.failed({})
    expect(health.openUntilMs('a') - performance.now()).toBe(2000)
  })

  it('is forgotten on demand', () => {
    const health = healthOf({ failures: 1 })
    fail(health, 1)
    health.reset('a')
    expect(health.stateOf('a')).toBe('closed')
  })
})

describe('The wait that is expected on a channel', () => {
  it('is its average latency, once for each call that waits already and once for the next', () => {
    const health = healthOf()
    expect(health.expectedWaitMs('a', 1)).toBeUndefined()
    const first = health.begin('a')
    jest.advanceTimersByTime(100)
    first.succeeded()
    expect(health.expectedWaitMs('a', 1)).toBe(100)
    const [second] = [health.begin('a'), health.begin('a')]
    expect(health.expectedWaitMs('a', 1)).toBe(300)
    jest.advanceTimersByTime(200)
    second.succeeded()
    expect(health.expectedWaitMs('a', 1)).toBeCloseTo((100 + 0.2 * 100) * 2)
  })

  it('is unknown again when nobody has used the channel for ten seconds', () => {
    const health = healthOf()
    health.begin('a').succeeded()
    jest.advanceTimersByTime(10_000)
    expect(health.expectedWaitMs('a', 1)).toBe(0)
    jest.advanceTimersByTime(1)
    expect(health.expectedWaitMs('a', 1)).toBeUndefined()
  })
})

describe('An answer that took long', () => {
  /** What one more call would wait for after answers that took so long, each of which nobody else waited beside. */
  function expectedAfter(...latenciesMs: readonly number[]): number | undefined {
    const health = healthOf()
    for (const latencyMs of latenciesMs) {
      const attempt = health.begin('a')
      jest.advanceTimersByTime(latencyMs)
      attempt.succeeded()
    }
    return health.expectedWaitMs('a', 1)
  }

  it('counts with four times the average at most: one makes no channel twice as slow as it was, two in a row do', () => {
    expect(expectedAfter(100, 400)).toBeCloseTo(160)
    expect(expectedAfter(100, 60_000)).toBeCloseTo(160)
    expect(expectedAfter(100, 60_000, 60_000)).toBeCloseTo(256)
  })

  it('counts as it is where nobody knew the average', () => {
    expect(expectedAfter(60_000)).toBe(60_000)
  })

  it('counts after answers that took no time at all', () => {
    expect(expectedAfter(0, 100)).toBeCloseTo(0.2 * 4)
  })
})
