import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { seededRandom } from '../../test/support/seeded-random.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { ChannelAttempt } from './channel-attempt.js'
import { channelOrder } from './channel-order.js'
import { Channel } from './channel.js'
import { ChannelHealth } from './circuit-breaker.js'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const CALLS = 5_000

interface Fleet {
  /** Of as many channels. */
  readonly weights: readonly number[]
  readonly inFlight: number
  /** Of the first channel; the others answer within 100 ms. */
  readonly latencyMs?: number
}

/** Keeps so many calls under way, each answered when its channel would, and tells the share of each channel. */
function sharesOf({ weights, inFlight, latencyMs = 100 }: Fleet): number[] {
  const listed = weights.map((weight, index) => ({
    id: String(index),
    provider: 'p1',
    baseUrl: 'http://127.0.0.1:1',
    credentials: 's',
    weight,
  }))
  const config = parseConfig(JSON.stringify({ channels: listed }), {})
  const channels = config.channels.map((channel) => new Channel(channel))
  const health = new ChannelHealth(new ConfigStore(config, () => Promise.reject(new Error('no reload'))))
  const random = seededRandom()
  const underWay: { readonly attempt: ChannelAttempt; readonly endsAtMs: number }[] = []
  const chosen = weights.map(() => 0)
  for (let call = 0; call < CALLS; call++) {
    const index = Number(channelOrder(channels, health, random)[0]?.id)
    chosen[index] = (chosen[index] ?? 0) + 1
    const endsAtMs = performance.now() + (index === 0 ? latencyMs : 100)
    underWay.push({ attempt: health.begin(String(index)), endsAtMs })
    if (underWay.length < inFlight) continue
    underWay.sort((a, b) => a.endsAtMs - b.endsAtMs)
    const next = underWay.shift()
    jest.advanceTimersByTime(Math.max(1, Math.ceil((next?.endsAtMs ?? 0) - performance.now())))
    next?.attempt.succeeded()
  }
  return chosen.map((count) => count / CALLS)
}

describe('The share of a channel', () => {
  it.each([
    [{ weights: [9, 1], inFlight: 1 }, [0.9, 0.1]],
    [{ weights: [9, 1], inFlight: 100 }, [0.9, 0.1]],
    [{ weights: [1, 3], inFlight: 100 }, [0.25, 0.75]],
    [{ weights: [1, 1], inFlight: 100 }, [0.5, 0.5]],
    [{ weights: [6, 3, 1], inFlight: 1 }, [0.6, 0.3, 0.1]],
    [{ weights: [6, 3, 1], inFlight: 100 }, [0.6, 0.3, 0.1]],
    [{ weights: [1, 1, 1, 1, 1], inFlight: 100 }, [0.2, 0.2, 0.2, 0.2, 0.2]],
  ])('is that of its weight, however much is under way: %j', (fleet, expected) => {
    for (const [index, share] of sharesOf(fleet).entries())
      expect(Math.abs(share - (expected[index] ?? 0))).toBeLessThan(0.04)
  })

  it('is smaller than that of its weight when it is clearly slower', () => {
    expect(sharesOf({ weights: [9, 1], inFlight: 100, latencyMs: 1_000 })[0]).toBeLessThan(0.7)
  })
})
