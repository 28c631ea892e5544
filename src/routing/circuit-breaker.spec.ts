import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { seededRandom } from '../../test/support/eventually.js'
import { ChannelTraffic, DEADLINE_MS, healthOf, NEVER_OPEN, type TrafficShape } from '../../test/support/routing.js'
import { channelOrder } from './channel-selection.js'
import { Channel } from './channel.js'
import { type ChannelAttempt, type ChannelFailure, ChannelHealth } from './circuit-breaker.js'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const fail = (health: ChannelHealth, times: number, failure: ChannelFailure = {}): void => {
  for (let failed = 0; failed < times; failed++) health.begin('a').failed(failure)
}

/** To the last millisecond, and then half open. */
function expectOpenFor(health: ChannelHealth, ms: number): void {
  jest.advanceTimersByTime(ms - 1)
  expect(health.stateOf('a')).toBe('open')
  jest.advanceTimersByTime(1)
  expect(health.stateOf('a')).toBe('half_open')
}

describe('The breaker of a channel', () => {
  it('opens at the failure set, for the cool-down, and for no other channel', () => {
    const health = healthOf({ failures: 2, coolDownMs: 1000 })
    fail(health, 1)
    expect(health.stateOf('a')).toBe('closed')
    fail(health, 1)
    expect([health.stateOf('a'), health.stateOf('b')]).toEqual(['open', 'closed'])
    expectOpenFor(health, 1000)
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
    expectOpenFor(health, 7000)
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

  it('is unknown again when no call has used the channel for ten seconds', () => {
    const health = healthOf()
    health.begin('a').succeeded()
    jest.advanceTimersByTime(10_000)
    expect(health.expectedWaitMs('a', 1)).toBe(0)
    jest.advanceTimersByTime(1)
    expect(health.expectedWaitMs('a', 1)).toBeUndefined()
  })
})

describe('An answer that took long', () => {
  /** What one more call would wait for after answers that took so long, each of which was alone under way. */
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

  it('counts as it is where the average was unknown', () => {
    expect(expectedAfter(60_000)).toBe(60_000)
  })

  it('counts after answers that took no time at all', () => {
    expect(expectedAfter(0, 100)).toBeCloseTo(0.2 * 4)
  })
})

describe('circuit breaker', () => {
  const IDS = ['a', 'b'] as const

  let health: ChannelHealth
  let channels: readonly Channel[]
  beforeEach(() => {
    const listed = IDS.map((id) => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 's' }))
    const config = parseConfig(JSON.stringify({ channels: listed }), {})
    channels = config.channels.map((channel) => new Channel(channel, 'chat'))
    health = healthOf(NEVER_OPEN)
  })

  const pass = (ms: number): void => {
    jest.advanceTimersByTime(ms)
  }
  const expectedMs = (): number | undefined => health.expectedWaitMs('a', 1)

  function answerWithin(ms: number): void {
    const attempt = health.begin('a')
    pass(ms)
    attempt.succeeded()
  }

  describe('The wait that is expected on a channel that does not answer', () => {
    it('is no shorter than the oldest call has been waiting, however long ago the last answer came', () => {
      answerWithin(100)
      health.begin('a')
      pass(200)
      expect(expectedMs()).toBe(200)
      pass(1)
      expect(expectedMs()).toBe(201)
      health.begin('a')
      pass(30_000)
      // The second has waited for 30 s: no answer takes less, and two are before the next.
      expect(expectedMs()).toBe(30_000 * 3)
    })

    it('is that of the oldest two that wait still', () => {
      answerWithin(1)
      const calls = [0, 1, 2, 3].map(() => {
        const call = health.begin('a')
        pass(1000)
        return call
      })
      const expected = [1, 0, 3].map((index) => {
        calls[index]?.ended()
        return expectedMs()
      })
      expect(expected).toEqual([2000 * 4, 1000 * 3, 2000])
      calls[2]?.ended()
      expect(expectedMs()).toBe(1)
    })

    it('is not that of a call whose answer takes long while later ones are answered', () => {
      answerWithin(100)
      const slow = health.begin('a')
      pass(5000)
      answerWithin(100)
      pass(5000)
      expect(expectedMs()).toBe(200)
      health.begin('a')
      pass(400)
      expect(expectedMs()).toBe(400)
      slow.ended()
      expect(expectedMs()).toBe(400)
    })

    it('is unknown again once no call waits any more, and not known anew because one does', () => {
      answerWithin(100)
      const left = health.begin('a')
      pass(10_001)
      left.ended()
      expect([expectedMs(), health.leastWaitMs('a', 1)]).toEqual([undefined, 0])
      health.begin('a')
      health.begin('a')
      pass(500)
      expect([expectedMs(), health.leastWaitMs('a', 1)]).toEqual([undefined, 500 * 2])
    })

    it('is not known for ever where others read the channel without a pause', () => {
      answerWithin(100)
      let read = health.beginRead('a')
      for (let passedMs = 0; passedMs < 10_001; passedMs++) {
        pass(1)
        const next = health.beginRead('a')
        read.succeeded()
        read = next
      }
      expect([expectedMs(), health.leastWaitMs('a', 1)]).toEqual([undefined, 0])
    })

    it('is known before the first answer only as the least that it can be', () => {
      expect([expectedMs(), health.leastWaitMs('a', 1)]).toEqual([undefined, 0])
      health.begin('a')
      health.begin('a')
      pass(300)
      expect([expectedMs(), health.leastWaitMs('a', 1)]).toEqual([undefined, 300 * 2])
      answerWithin(100)
      expect([expectedMs(), health.leastWaitMs('a', 1)]).toEqual([100 * 3, 100 * 2])
    })

    it('is at least what it would be without one of those that wait: that one may just take its time', () => {
      const leastMs = (): number => health.leastWaitMs('a', 0.5)
      health.begin('a')
      pass(60_000)
      expect(leastMs()).toBe(0)
      answerWithin(100)
      expect(leastMs()).toBe(100)
      health.begin('a')
      pass(60_000)
      expect(leastMs()).toBe(100 * (1 / 0.5 + 1))
      health.begin('a')
      pass(700)
      expect(leastMs()).toBe(700 * (2 / 0.5 + 1))
    })
  })

  describe('A call that fails', () => {
    it('after its deadline counts with the time it took, for the next ten seconds', () => {
      answerWithin(100)
      const late = health.begin('a')
      pass(40_000)
      late.failed({})
      expect(expectedMs()).toBe(100 + 0.2 * (40_000 - 100))
      pass(10_000)
      expect(expectedMs()).toBeDefined()
      pass(1)
      expect(expectedMs()).toBeUndefined()
    })

    it('at once makes no channel fast', () => {
      const refuse = (): void => {
        const refused = health.begin('a')
        pass(1)
        refused.failed({})
      }
      refuse()
      expect(expectedMs()).toBeUndefined()
      answerWithin(100)
      refuse()
      expect(expectedMs()).toBe(100)
    })

    it('after its answer began counts with the time until then', () => {
      answerWithin(100)
      const cut = health.begin('a')
      pass(100)
      cut.answered()
      pass(5000)
      cut.failed({})
      expect(expectedMs()).toBe(100)
    })

    it('so that the breaker opens leaves it to the probe what the channel is like', () => {
      answerWithin(100)
      const late = health.begin('a')
      pass(40_000)
      late.failed({ openMs: 1000 })
      expect(expectedMs()).toBeUndefined()
      pass(1000)
      answerWithin(50)
      expect([health.stateOf('a'), expectedMs()]).toEqual(['closed', 50])
    })
  })

  const CALLS_EVERY_MS = 50
  const LATENCY_MS = 100

  interface CallUnderWay {
    readonly id: string
    readonly beganAtMs: number
    readonly attempt: ChannelAttempt
  }

  /** Two channels of one weight, where calls come and go without a pause. */
  class Traffic {
    isSilent = false
    private readonly random = seededRandom()
    private underWay: CallUnderWay[] = []

    /** Lets calls come for so long, and counts those that went to the channel that may be silent. */
    run(durationMs: number): number {
      let counted = 0
      for (let passedMs = 0; passedMs < durationMs; passedMs += CALLS_EVERY_MS) {
        pass(CALLS_EVERY_MS)
        this.underWay = this.underWay.filter((call) => !this.settle(call))
        const id = channelOrder(channels, health, this.random)[0]?.id ?? ''
        this.underWay.push({ id, beganAtMs: performance.now(), attempt: health.begin(id) })
        if (id === 'a') counted++
      }
      return counted
    }

    private settle({ id, beganAtMs, attempt }: CallUnderWay): boolean {
      const waitedMs = performance.now() - beganAtMs
      if (waitedMs < LATENCY_MS) return false
      if (id === 'b' || !this.isSilent) attempt.succeeded()
      else if (waitedMs < DEADLINE_MS) return false
      else attempt.failed({})
      return true
    }
  }

  describe('A channel that falls silent after it was fast', () => {
    it('gets hardly a call of two minutes, although its breaker does not open', () => {
      const traffic = new Traffic()
      const before = traffic.run(10_000)
      expect(Math.abs(before / 200 - 0.5)).toBeLessThan(0.1)
      traffic.isSilent = true
      expect(traffic.run(120_000)).toBeLessThan(25)
      expect(health.stateOf('a')).toBe('closed')
    })

    it('gets its share again once it answers', () => {
      const traffic = new Traffic()
      traffic.run(10_000)
      traffic.isSilent = true
      traffic.run(30_000)
      traffic.isSilent = false
      // What it was like is forgotten after ten seconds.
      traffic.run(12_000)
      expect(Math.abs(traffic.run(20_000) / 400 - 0.5)).toBeLessThan(0.1)
    })
  })
})

describe('A slow answer of a channel', () => {
  const MINUTE_MS = 60_000
  /** Few calls leave more to chance. */
  const runsFor = (callsEveryMs: number): number => (callsEveryMs < 1_000 ? 10 : 60)
  const WEIGHTS = [
    [1, 1],
    [9, 1],
    [1, 9],
  ] as const
  const CALLS_EVERY_MS = [1_000, 100] as const
  const SHAPES = WEIGHTS.flatMap((weights) => CALLS_EVERY_MS.map((callsEveryMs) => ({ weights, callsEveryMs })))

  type Shape = (typeof SHAPES)[number]

  /** How many calls the weights mean for the first channel. */
  const dueCalls = ({ weights: [one, other], callsEveryMs }: Shape, durationMs: number): number =>
    ((durationMs / callsEveryMs) * one) / (one + other)

  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

  /** What each of the runs with a draw of its own comes to, once it is known how fast both channels are. */
  const runs = (
    shape: Omit<TrafficShape, 'seed'>,
    count: (traffic: ChannelTraffic) => number,
    times = runsFor(shape.callsEveryMs),
  ): readonly number[] =>
    Array.from({ length: times }, (_, seed) => {
      const traffic = new ChannelTraffic({ ...shape, seed: seed + 1 })
      traffic.run(20_000)
      return count(traffic)
    })

  describe('A channel with one answer of a minute among those of half a second', () => {
    const beginSlow = (traffic: ChannelTraffic): void => {
      traffic.begin(0, { firstByteMs: MINUTE_MS }, Infinity)
    }

    // The lightest of them has a call a second and takes one at a time beside the slow one, which is two thirds of its
    // share: a second until the next is drawn, half a second until it is answered. The rest is chance.
    it.each(SHAPES)('keeps its share while that is under way: %j', (shape) => {
      const calls = runs(shape, (traffic) => {
        beginSlow(traffic)
        return traffic.run(MINUTE_MS)
      })
      expect(mean(calls) / dueCalls(shape, MINUTE_MS)).toBeGreaterThan(0.6)
      expect(Math.min(...calls)).toBeGreaterThan(0)
    })

    // Where the average was unknown again, the answer is all that is known for ten seconds: less than a call of a
    // channel that had none in the ten seconds before.
    it.each(SHAPES)('keeps its share after that has come: %j', (shape) => {
      const calls = runs(shape, (traffic) => {
        beginSlow(traffic)
        traffic.run(MINUTE_MS)
        return traffic.run(10_000)
      })
      expect(mean(calls) / dueCalls(shape, 10_000)).toBeGreaterThan(0.5)
    })
  })

  describe('A channel that falls silent', () => {
    // On average: two calls to find out, those that come before the second of them has waited for long, and those that
    // come before it is known how fast the other one is, which has a call in ten seconds at 9:1 and a call a second.
    it.each([
      { weights: [1, 1], callsEveryMs: 1_000, atMost: 2.5 },
      { weights: [9, 1], callsEveryMs: 1_000, atMost: 8 },
      { weights: [1, 9], callsEveryMs: 1_000, atMost: 2.5 },
      { weights: [1, 1], callsEveryMs: 100, atMost: 7 },
      { weights: [9, 1], callsEveryMs: 100, atMost: 20 },
      { weights: [1, 9], callsEveryMs: 100, atMost: 3 },
    ])('gets hardly a call until the first of them fails, and no more for each further time: %j', (row) => {
      const { atMost, ...shape } = row
      const calls = (deadlines: number): number =>
        mean(
          runs(shape, (traffic) => {
            const { answerOf } = traffic
            traffic.answerOf = (index) => (index === 0 ? { firstByteMs: Infinity } : answerOf(index))
            return traffic.run(deadlines * DEADLINE_MS)
          }),
        )
      expect(calls(1)).toBeLessThan(atMost)
      expect(calls(5)).toBeLessThan(5 * atMost)
    })
  })

  describe('Two healthy channels whose calls all take a minute', () => {
    it.each(SHAPES)(
      'get the calls that they would get if it were half a second, where answers are streams: %j',
      (shape) => {
        const calls = (endMs?: number): readonly number[] => {
          const count = (traffic: ChannelTraffic): number => {
            const { answerOf } = traffic
            traffic.answerOf = (index) => ({ ...answerOf(index), endMs })
            return traffic.run(2 * MINUTE_MS)
          }
          return runs(shape, count, 3)
        }
        expect(calls(MINUTE_MS)).toEqual(calls())
      },
    )

    it.each(SHAPES)('keep their shares where nothing comes before the minute is over: %j', (shape) => {
      const calls = runs(shape, (traffic) => {
        traffic.answerOf = () => ({ firstByteMs: traffic.around(MINUTE_MS) })
        return traffic.run(MINUTE_MS)
      })
      const dueShare = dueCalls(shape, MINUTE_MS) / (MINUTE_MS / shape.callsEveryMs)
      const share = mean(calls) / (MINUTE_MS / shape.callsEveryMs)
      expect(Math.abs(share - dueShare)).toBeLessThan(0.05)
    })
  })
})
