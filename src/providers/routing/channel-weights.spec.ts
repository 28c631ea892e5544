import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../config/config-loader.js'
import { ConfigStore } from '../../config/config-store.js'
import { Channel } from './channel.js'
import type { ChannelAttempt } from './channel-attempt.js'
import { ChannelHealth } from './channel-health.js'
import { channelOrder } from './channel-order.js'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const CALLS = 5_000

interface Fleet {
  /** Of the channels `heavy` and `light`. */
  readonly weights: readonly [number, number]
  readonly inFlight: number
  /** Of `heavy`; `light` answers within 100 ms. */
  readonly latencyMs?: number
}

/** Keeps so many calls under way, each answered when its channel would, and tells the share of `heavy`. */
function shareOfHeavy({ weights: [heavy, light], inFlight, latencyMs = 100 }: Fleet): number {
  const config = parseConfig(
    JSON.stringify({
      channels: [
        { id: 'heavy', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 's', weight: heavy },
        { id: 'light', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 's', weight: light },
      ],
    }),
    {},
  )
  const channels = config.channels.map((channel) => new Channel(channel))
  const health = new ChannelHealth(new ConfigStore(config, () => Promise.reject(new Error('no reload'))))
  const random = seeded()
  const underWay: { readonly attempt: ChannelAttempt; readonly endsAtMs: number }[] = []
  let chosen = 0
  for (let call = 0; call < CALLS; call++) {
    const [first] = channelOrder(channels, health, random)
    const isHeavy = first?.id === 'heavy'
    if (isHeavy) chosen++
    const endsAtMs = performance.now() + (isHeavy ? latencyMs : 100)
    underWay.push({ attempt: health.begin(isHeavy ? 'heavy' : 'light'), endsAtMs })
    if (underWay.length < inFlight) continue
    underWay.sort((a, b) => a.endsAtMs - b.endsAtMs)
    const next = underWay.shift()
    jest.advanceTimersByTime(Math.max(1, Math.ceil((next?.endsAtMs ?? 0) - performance.now())))
    next?.attempt.succeeded()
  }
  return chosen / CALLS
}

/** Numbers in [0, 1) that are the same in every run (a linear congruential generator). */
function seeded(): () => number {
  let state = 42
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

describe('The share of a channel', () => {
  it.each([
    [{ weights: [9, 1], inFlight: 1 }, 0.9],
    [{ weights: [9, 1], inFlight: 100 }, 0.9],
    [{ weights: [1, 3], inFlight: 100 }, 0.25],
    [{ weights: [1, 1], inFlight: 100 }, 0.5],
  ] as const)('is that of its weight, however much is under way: %j', (fleet, share) => {
    expect(Math.abs(shareOfHeavy(fleet) - share)).toBeLessThan(0.04)
  })

  it('is smaller than that of its weight when it is clearly slower', () => {
    expect(shareOfHeavy({ weights: [9, 1], inFlight: 100, latencyMs: 1_000 })).toBeLessThan(0.7)
  })
})
