import { jest } from '@jest/globals'
import { ConfigError } from '../../src/config/faults.js'
import { PROVIDERS } from '../../src/app/providers.js'
import { ConfigStore } from '../../src/config/config-store.js'
import type { Variables } from '../../src/config/environment.js'
import { Metrics } from '../../src/observability/metrics.js'
import type { ProviderCapabilities } from '../../src/providers/contract.js'
import { ChannelRouter } from '../../src/routing/channel-router.js'
import { channelOrder, ProviderRegistry } from '../../src/routing/channel-selection.js'
import { Channel } from '../../src/routing/channel.js'
import { ChannelHealth } from '../../src/routing/circuit-breaker.js'
import { RetryBudget } from '../../src/routing/retry.js'
import { Translations } from '../../src/routing/translations.js'
import { UnknownUpstreamWords } from '../../src/routing/unknown-words.js'
import { UpstreamClient } from '../../src/upstream/upstream-client.js'
import { parseConfig } from './config.js'
import { seededRandom } from './eventually.js'

export interface TrafficShape {
  /** Of as many channels of one priority. */
  readonly weights: readonly number[]
  readonly callsEveryMs: number
  readonly seed: number
}

/** How an answer comes; times from the begin of its call. */
export interface AnswerTimes {
  /** Infinity = never. */
  readonly firstByteMs: number
  /** Streamed until then; by default it is whole at once. */
  readonly endMs?: number | undefined
}

/** A request without a response has failed by then. */
export const DEADLINE_MS = 40_000
/** A breaker that tests of other things do not meet. */
export const NEVER_OPEN = { failures: 1_000 }

/** The health of channels with this breaker, or with the default one. */
export const healthOf = (breaker: object = {}): ChannelHealth =>
  new ChannelHealth(new ConfigStore(parseConfig(JSON.stringify({ breaker }), {})))

/** Requests at a steady rate with the given responses; needs jest's fake timers. Breakers never open. */
export class ChannelTraffic {
  /** Of the channel with that index. */
  answerOf: (index: number) => AnswerTimes = () => ({ firstByteMs: this.around(500) })
  private readonly channels: readonly Channel[]
  private readonly health: ChannelHealth
  private readonly draws: () => number
  private readonly spread: () => number

  constructor(private readonly shape: TrafficShape) {
    const listed = shape.weights.map((weight, index) => ({
      id: String(index),
      provider: 'p1',
      baseUrl: 'http://127.0.0.1:1',
      credentials: 's',
      weight,
    }))
    const config = parseConfig(JSON.stringify({ channels: listed }), {})
    this.channels = config.channels.map((channel) => new Channel(channel, 'chat'))
    this.health = healthOf(NEVER_OPEN)
    this.draws = mixed(shape.seed)
    this.spread = mixed(shape.seed + 1_000)
  }

  /** Up to 30 % more or less. */
  around(ms: number): number {
    return Math.round(ms * (0.7 + 0.6 * this.spread()))
  }

  /** A call on the channel with that index. */
  begin(index: number, { firstByteMs, endMs = firstByteMs }: AnswerTimes, deadlineMs = DEADLINE_MS): void {
    const attempt = this.health.begin(String(index))
    if (firstByteMs > deadlineMs) {
      setTimeout(() => {
        attempt.failed({})
      }, deadlineMs)
      return
    }
    setTimeout(() => {
      attempt.answered()
    }, firstByteMs)
    setTimeout(() => {
      attempt.succeeded()
    }, endMs)
  }

  /** Lets so much time pass, and tells how many of its calls went to the first channel. */
  run(durationMs: number): number {
    let counted = 0
    for (let passedMs = 0; passedMs < durationMs; passedMs += this.shape.callsEveryMs) {
      jest.advanceTimersByTime(this.shape.callsEveryMs)
      const index = Number(channelOrder(this.channels, this.health, this.draws)[0]?.id)
      this.begin(index, this.answerOf(index))
      if (index === 0) counted++
    }
    return counted
  }
}

/** The first numbers of neighbouring seeds are neighbours. */
function mixed(seed: number): () => number {
  const random = seededRandom(seed * 7919)
  for (let skipped = 0; skipped < 20; skipped++) random()
  return random
}

/** What is wrong with a configuration, each with its place; nothing when it is taken. */
export function faultsOf(yaml: string, env: Variables = {}): string[] {
  try {
    parseConfig(yaml, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
  return []
}

const unused = (): Promise<never> => Promise.reject(new Error('no request is sent in these tests'))

/** Providers that can what the real ones can, and are never called: routing decides before. */
const P1: ProviderCapabilities = {
  speech: { speak: unused },
  transcription: { transcribe: unused },
  translation: { translate: unused },
  chat: { respond: unused },
  responses: {
    create: unused,
    countInputTokens: unused,
    read: unused,
    events: unused,
    inputItems: unused,
    cancel: unused,
    delete: unused,
    progress: unused,
  },
  realtime: { open: unused },
  realtime_transcription: { open: unused },
}
const P2: ProviderCapabilities = { speech: { speak: unused } }
const P4: ProviderCapabilities = { transcription: { transcribe: unused }, translation: { translate: unused } }
const M1: ProviderCapabilities = { messages: { create: unused, countTokens: unused } }
const VIDGEN: ProviderCapabilities = { video: { create: unused, read: unused } }
const IMGGEN: ProviderCapabilities = { image: { fetch: unused, seed: unused } }

export interface TestRouting {
  readonly router: ChannelRouter
  readonly health: ChannelHealth
  readonly store: ConfigStore
}

export interface RoutingDocument {
  readonly channels: readonly object[]
  readonly models?: readonly object[]
  readonly timeouts?: object
  readonly dialects?: object
}

/** A channel entry with an address and a secret; what is given replaces the defaults. */
export const channelEntry = (id: string, changes: object = {}): object => ({
  id,
  provider: 'p1',
  baseUrl: 'http://127.0.0.1:1',
  credentials: `secret-of-${id}`,
  ...changes,
})

/** The router on a configuration as an operator would write it; `reloads` are what the file holds afterwards. */
export function routingOf(document: RoutingDocument, ...reloads: RoutingDocument[]): TestRouting {
  const parse = (source: RoutingDocument) => parseConfig(JSON.stringify(source), {})
  const store = new ConfigStore(parse(document), () =>
    Promise.resolve({ config: parse(reloads.shift() ?? document), file: '' }),
  )
  const health = new ChannelHealth(store)
  const registry = new ProviderRegistry(PROVIDERS, { p1: P1, p2: P2, p4: P4, m1: M1, vidgen: VIDGEN, imggen: IMGGEN })
  const words = new UnknownUpstreamWords(new Metrics(), { warn: () => undefined })
  const translations = new Translations(store, words)
  const router = new ChannelRouter(store, new UpstreamClient(), registry, health, new RetryBudget(), translations)
  return { router, health, store }
}
