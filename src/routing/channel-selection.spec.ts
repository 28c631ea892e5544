import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { healthOf } from '../../test/support/routing.js'
import { PROVIDERS } from '../app/providers.js'
import { seededRandom } from '../../test/support/eventually.js'
import type { ChannelConfig } from '../config/channel-schema.js'
import type { ProviderOf } from '../providers/contract.js'
import {
  channelOrder,
  everyChannel,
  ProviderRegistry,
  RoutingTable,
  type ServingChannels,
} from './channel-selection.js'
import { Channel } from './channel.js'
import type { BreakerState, ChannelAttempt } from './circuit-breaker.js'

const TIMEOUTS = { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 1 }

const channel = (id: string, changes: Partial<ChannelConfig> = {}): Channel =>
  new Channel(
    {
      id,
      provider: 'p1',
      baseUrl: 'http://127.0.0.1:1',
      credentials: { kind: 'own', secret: 's' },
      modelMap: {},
      priority: 0,
      weight: 1,
      options: {},
      timeouts: TIMEOUTS,
      ...changes,
    },
    'chat',
  )

interface Condition {
  readonly state?: BreakerState
  readonly openUntilMs?: number
  /** As it is known. */
  readonly waitMs?: number
  /** Where it is unknown. */
  readonly leastMs?: number
}

/** Channels that are not named are well, and how long they take is unknown. */
const health = (conditions: Readonly<Record<string, Condition>> = {}) => ({
  stateOf: (id: string) => conditions[id]?.state ?? 'closed',
  openUntilMs: (id: string) => conditions[id]?.openUntilMs ?? 0,
  expectedWaitMs: (id: string) => conditions[id]?.waitMs,
  leastWaitMs: (id: string) => conditions[id]?.waitMs ?? conditions[id]?.leastMs ?? 0,
})

const well = health()
const ids = (channels: readonly Channel[]): string => channels.map(({ id }) => id).join('')

/** How often each channel came first in ten thousand draws, as shares. */
function shares(channels: readonly Channel[], place = 0): Record<string, number> {
  const random = seededRandom()
  const counts: Record<string, number> = {}
  for (let draw = 0; draw < 10_000; draw++) {
    const id = channelOrder(channels, well, random)[place]?.id ?? ''
    counts[id] = (counts[id] ?? 0) + 1 / 10_000
  }
  return counts
}

describe('The order of channels', () => {
  it('puts lower priorities first, whatever the weights', () => {
    const channels = [
      channel('c', { priority: 2 }),
      channel('a', { weight: 0.001 }),
      channel('b', { priority: 1, weight: 99 }),
    ]
    const random = seededRandom()
    for (let draw = 0; draw < 100; draw++) expect(ids(channelOrder(channels, well, random))).toBe('abc')
  })

  it('draws by weight within one priority', () => {
    const { a, b, c } = shares([channel('a', { weight: 1 }), channel('b', { weight: 3 }), channel('c', { weight: 6 })])
    expect(a).toBeCloseTo(0.1, 1)
    expect(b).toBeCloseTo(0.3, 1)
    expect(c).toBeCloseTo(0.6, 1)
  })

  it('draws the second by weight among those that are left', () => {
    const { a, b } = shares(
      [channel('a', { weight: 1 }), channel('b', { weight: 3 }), channel('z', { weight: 1e9 })],
      1,
    )
    expect(a).toBeCloseTo(0.25, 1)
    expect(b).toBeCloseTo(0.75, 1)
  })

  it('leaves out the channels that are spared, and keeps one that may be probed at its place', () => {
    const channels = ['a', 'b', 'c', 'd'].map((id, priority) => channel(id, { priority }))
    const conditions = health({ a: { state: 'open' }, b: { state: 'half_open' }, c: { state: 'open' } })
    expect(ids(channelOrder(channels, conditions))).toBe('bd')
    expect(ids(everyChannel(channels, conditions))).toBe('bdac')
  })

  it('never leaves out the last one: when all are spared, the one that opens soonest comes first', () => {
    const channels = ['a', 'b', 'c'].map((id, priority) => channel(id, { priority }))
    const open = (openUntilMs: number): Condition => ({ state: 'open', openUntilMs })
    expect(ids(channelOrder(channels, health({ a: open(9), b: open(7), c: open(8) })))).toBe('bca')
    expect(ids(channelOrder(channels, health({ a: open(7), b: open(7), c: open(7) })))).toBe('abc')
    expect(ids(channelOrder([channel('a')], health({ a: open(7) })))).toBe('a')
  })

  it.each([
    [{ a: { waitMs: 201 }, b: { waitMs: 100 } }, 0],
    [{ a: { waitMs: 200 }, b: { waitMs: 100 } }, 0.9],
    [{ a: { waitMs: 201 } }, 0.9],
    [{ b: { waitMs: 1 } }, 0.9],
    [{ a: { leastMs: 201 }, b: { waitMs: 100 } }, 0],
    [{ a: { leastMs: 200 }, b: { waitMs: 100 } }, 0.9],
    [{ a: { waitMs: 201 }, b: { leastMs: 1 } }, 0.9],
    [{ a: { waitMs: 201, state: 'half_open' }, b: { waitMs: 100 } }, 0.9],
  ] as const)('follows the draw unless it is known to be clearly slower and no probe is due: %j', (waits, share) => {
    const channels = [channel('a', { weight: 9 }), channel('b', { weight: 1 })]
    const random = seededRandom()
    let first = 0
    for (let draw = 0; draw < 1000; draw++) {
      if (channelOrder(channels, health(waits), random)[0]?.id === 'a') first++
    }
    expect(first / 1000).toBeCloseTo(share, 1)
  })

  it.each([
    [{ a: { waitMs: 1000 }, b: { waitMs: 1000 }, c: { waitMs: 100 } }, { c: 1 }],
    [{ a: { waitMs: 1000 }, b: { waitMs: 400 }, c: { waitMs: 100 } }, { c: 1 }],
    [
      { a: { waitMs: 1000 }, c: { waitMs: 100 } },
      { b: 1 / 3, c: 2 / 3 },
    ],
    [
      { a: { waitMs: 1000 }, b: { waitMs: 150 }, c: { waitMs: 100 } },
      { b: 1 / 2, c: 1 / 2 },
    ],
  ])('leads with no channel of three that is clearly slower than another: %j', (waits, shares) => {
    const channels = ['a', 'b', 'c'].map((id) => channel(id))
    const random = seededRandom()
    const first: Record<string, number> = {}
    for (let draw = 0; draw < 3000; draw++) {
      const order = channelOrder(channels, health(waits), random).map(({ id }) => id)
      expect(order.toSorted()).toEqual(['a', 'b', 'c'])
      const lead = order[0] ?? ''
      first[lead] = (first[lead] ?? 0) + 1 / 3000
    }
    expect(Object.keys(first).sort()).toEqual(Object.keys(shares))
    for (const [id, share] of Object.entries(shares)) expect(first[id]).toBeCloseTo(share, 1)
  })

  it('never prefers a channel of another priority for its speed', () => {
    const channels = [channel('a'), channel('b', { priority: 1 })]
    expect(ids(channelOrder(channels, health({ a: { waitMs: 5000 }, b: { waitMs: 1 } })))).toBe('ab')
  })

  it('is defined for the extremes of the draw', () => {
    const channels = [channel('a'), channel('b')]
    for (const number of [0, 1 - 2 ** -53]) expect(channelOrder(channels, well, () => number)).toHaveLength(2)
    expect(channelOrder([], well)).toEqual([])
  })
})

describe('A channel', () => {
  it('maps the models its operator maps, and no word of JavaScript', () => {
    const mapped = channel('a', { modelMap: { 'tts-1': 'upstream-tts' } })
    expect(mapped.upstreamModel('tts-1')).toBe('upstream-tts')
    for (const model of ['tts-2', 'constructor', '__proto__', 'toString'])
      expect(mapped.upstreamModel(model)).toBe(model)
  })

  it.each([
    ['https://api.example.com', 'https://api.example.com', ''],
    ['https://api.example.com/a/b/', 'https://api.example.com', '/a/b'],
    ['wss://api.example.com:8443/x', 'https://api.example.com:8443', '/x'],
    ['ws://127.0.0.1:1', 'http://127.0.0.1:1', ''],
  ])('with the address %s sends to %s behind %j', (baseUrl, origin, pathPrefix) => {
    expect(channel('a', { baseUrl }).target).toMatchObject({ origin, pathPrefix })
  })

  it('keeps its connections through a reload that does not move it', () => {
    const { poolKey } = channel('a').target
    expect(channel('a', { priority: 9, weight: 2 }).target.poolKey).toBe(poolKey)
    expect(channel('a', { baseUrl: 'http://127.0.0.1:2' }).target.poolKey).not.toBe(poolKey)
    expect(channel('b').target.poolKey).not.toBe(poolKey)
  })
})

describe('The share of a channel', () => {
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
    const channels = config.channels.map((channel) => new Channel(channel, 'chat'))
    const health = healthOf()
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

describe('Who serves a model', () => {
  const CHAT: ProviderOf<'chat'> = { respond: () => Promise.reject(new Error('never asked')) }
  const SPEECH: ProviderOf<'speech'> = { speak: () => Promise.reject(new Error('never asked')) }

  const channel = (id: string, more: object) => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', ...more })

  const table = (...channels: object[]): RoutingTable =>
    new RoutingTable(
      parseConfig(JSON.stringify({ channels, auth: { keys: [] } }), {}),
      new ProviderRegistry(PROVIDERS, { p1: { chat: CHAT, speech: SPEECH } }),
    )

  const idsOf = ({ native }: ServingChannels): string => native.map(({ id }) => id).join()

  const routing = table(
    channel('own', { credentials: 's', models: ['chat-*'] }),
    channel('second', { credentials: 's', models: ['chat-1'] }),
    channel('callers', { credentials: 'caller', models: ['chat-*', 'tts-1'] }),
  )

  it.each([
    ['chat', 'chat-1', 'own,second', 'callers'],
    ['chat', 'chat-2', 'own', 'callers'],
    ['chat', 'other', '', ''],
    ['chat', 'tts-1', '', ''],
    ['speech', 'tts-1', '', 'callers'],
    ['speech', 'chat-1', '', ''],
  ] as const)('is the same however often it is asked: %s with %s', (capability, model, own, callers) => {
    for (let asked = 0; asked < 3; asked++) {
      const serving = routing.serving(capability, model)
      expect([idsOf(serving.own), idsOf(serving.callers)]).toEqual([own, callers])
    }
  })

  it('is found once for a name that comes again', () => {
    expect(routing.serving('chat', 'chat-again')).toBe(routing.serving('chat', 'chat-again'))
  })

  it('is not kept for more names than callers may make up, and found all the same', () => {
    const flooded = table(channel('own', { credentials: 's', models: ['*'] }))
    for (let made = 0; made < 2_000; made++) flooded.serving('chat', `made-up-${made}`)
    const [first, again] = [flooded.serving('chat', 'real'), flooded.serving('chat', 'real')]
    expect(first).not.toBe(again)
    expect([idsOf(first.own), idsOf(again.own)]).toEqual(['own', 'own'])
    expect(flooded.serving('chat', 'made-up-0')).toBe(flooded.serving('chat', 'made-up-0'))
  })

  it('is not kept for a name that is longer than any', () => {
    const routed = table(channel('own', { credentials: 's', models: ['*'] }))
    expect(routed.serving('chat', 'm'.repeat(257))).not.toBe(routed.serving('chat', 'm'.repeat(257)))
    expect(routed.serving('chat', 'm'.repeat(256))).toBe(routed.serving('chat', 'm'.repeat(256)))
  })
})
