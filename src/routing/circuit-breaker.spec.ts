import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { seededRandom } from '../../test/support/seeded-random.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { ChannelAttempt } from './channel-attempt.js'
import { channelOrder } from './channel-order.js'
import { Channel } from './channel.js'
import { ChannelHealth } from './circuit-breaker.js'

const IDS = ['a', 'b'] as const
const NEVER_OPEN = { failures: 1000 }

let health: ChannelHealth
let channels: readonly Channel[]
beforeEach(() => {
  jest.useFakeTimers()
  const listed = IDS.map((id) => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 's' }))
  const config = parseConfig(JSON.stringify({ channels: listed, breaker: NEVER_OPEN }), {})
  channels = config.channels.map((channel) => new Channel(channel))
  health = new ChannelHealth(new ConfigStore(config, () => Promise.reject(new Error('no reload'))))
})
afterEach(() => {
  jest.useRealTimers()
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

  it('is unknown again once nobody waits any more, and not known anew because somebody does', () => {
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
const DEADLINE_MS = 40_000

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
