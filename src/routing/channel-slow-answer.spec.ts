import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ChannelTraffic, DEADLINE_MS, type TrafficShape } from '../../test/support/channel-traffic.js'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

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

  // Where nobody knew the average any more, the answer is all that is known for ten seconds: less than a call of a
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
