import { ConfigStore } from '../../src/config/config-store.js'
import { parseConfig } from '../../src/config/load-config.js'
import type { ProviderCapabilities } from '../../src/providers/provider-capabilities.js'
import { ChannelRouter } from '../../src/routing/channel-router.js'
import { ChannelHealth } from '../../src/routing/circuit-breaker.js'
import { ProviderRegistry } from '../../src/routing/provider-registry.js'
import { RetryBudget } from '../../src/routing/retry-budget.js'
import { UpstreamClient } from '../../src/upstream/upstream-client.js'

const unused = (): Promise<never> => Promise.reject(new Error('no request is sent in these tests'))

/** Providers that can what the real ones can, and are never called: routing decides before. */
const P1: ProviderCapabilities = {
  speech: { speak: unused },
  transcription: { transcribe: unused },
  translation: { translate: unused },
  chat: { complete: unused },
  realtime: { open: unused },
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
  const registry = new ProviderRegistry({ p1: P1, p2: P2, p4: P4, m1: M1, vidgen: VIDGEN, imggen: IMGGEN })
  return { router: new ChannelRouter(store, new UpstreamClient(), registry, health, new RetryBudget()), health, store }
}
