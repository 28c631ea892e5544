import {
  type ChannelConfig,
  type ChannelCredentials,
  PROVIDER_NAMES,
  type ProviderName,
  type UpstreamTimeouts,
} from './channel-config.js'
import { bySibling, listOf, mapOf, recordOf } from './checks.js'
import { integer, oneOf, positiveNumber, textAs } from './scalar-schemas.js'
import { optional, required, type Schema, withDefault } from './schema-schema.js'
import { address, clusterName, glob, identifier, modelName, pathPrefix, voiceName } from './value-types.js'

/** Node's timers fire at once beyond 2^31 - 1 ms. */
export const durationMs = integer({ min: 1, max: 2_147_483_647 })

export const globs = listOf(glob, { nonEmpty: 'must hold at least one glob; leave it out for every model' })

/** A channel as the file gives it; `timeouts` are completed afterwards (`channelTimeouts`). */
export type ChannelEntry = Omit<ChannelConfig, 'timeouts'> & { readonly timeouts: Partial<UpstreamTimeouts> }

const timeoutOverrides = mapOf<Partial<UpstreamTimeouts>>({
  connectMs: optional(durationMs),
  firstByteMs: optional(durationMs),
  idleMs: optional(durationMs),
  totalMs: optional(durationMs),
})

const noOptions = mapOf<Record<string, never>>({})
const voices = optional(recordOf(voiceName))

interface SpeedRange {
  readonly minimum: number
  readonly maximum: number
}

const speedRange = mapOf<SpeedRange>(
  { minimum: withDefault(positiveNumber, 0.8), maximum: withDefault(positiveNumber, 2) },
  ({ minimum, maximum }, at) => {
    if (minimum !== undefined && maximum !== undefined && minimum >= maximum)
      at.field('maximum').fault(`must be greater than ${at.field('minimum').path}`)
  },
)

/** A new option is declared here, under every provider that reads it. */
const OPTIONS: Readonly<Record<ProviderName, Schema<Readonly<Record<string, unknown>>>>> = {
  p1: mapOf<{ realtimeDialect: string }>({ realtimeDialect: withDefault(oneOf(['ga', 'beta']), 'ga') }),
  p2: mapOf<{ voices?: Readonly<Record<string, string>>; cluster: string; speedRange: SpeedRange }>({
    voices,
    cluster: withDefault(clusterName, 'volcano_tts'),
    speedRange: withDefault(speedRange, {}),
  }),
  p3: mapOf<{ voices?: Readonly<Record<string, string>>; groupId?: string }>({ voices, groupId: optional(identifier) }),
  p4: noOptions,
  m1: noOptions,
  vidgen: mapOf<{ unknownTasks: string; pathPrefix?: string }>({
    unknownTasks: withDefault(oneOf(['relay', 'refuse']), 'relay'),
    pathPrefix: optional(pathPrefix),
  }),
  imggen: mapOf<{ pathPrefix?: string }>({ pathPrefix: optional(pathPrefix) }),
  reader: mapOf<{ dialect: string }>({ dialect: withDefault(oneOf(['gateway', 'firecrawl', 'jina']), 'gateway') }),
}

/** Credentials travel in headers: printable ASCII, no spaces. */
const PRINTABLE = /^[\x21-\x7e]{1,4096}$/
const PRINTABLE_RULE = 'must be 1 to 4096 printable ASCII characters without spaces, or "caller"'

const credentials = textAs(PRINTABLE_RULE, readCredentials)

/** A pair `A|B`; one key without `|`, too, where `allowed` says so. */
const pair = (allowed: 'pair' | 'pair or key', rule: string): Schema<ChannelCredentials> =>
  textAs(rule, (text) => {
    const parts = text.split('|')
    const isKey = parts.length === 1 && (allowed === 'pair or key' || text === 'caller')
    return isKey || (parts.length === 2 && !parts.includes('')) ? readCredentials(text) : undefined
  })

function readCredentials(text: string): ChannelCredentials | undefined {
  if (text === 'caller') return { kind: 'caller' }
  return PRINTABLE.test(text) ? { kind: 'own', secret: text } : undefined
}

const CREDENTIALS: Readonly<Record<ProviderName, Schema<ChannelCredentials>>> = {
  p1: credentials,
  p2: pair('pair', 'must be APP_ID|ACCESS_TOKEN with two printable parts, or "caller"'),
  p3: credentials,
  p4: credentials,
  m1: credentials,
  vidgen: pair('pair or key', 'must be AK|SK with two printable parts, a bearer, or "caller"'),
  imggen: credentials,
  reader: credentials,
}

export const channelSchema = mapOf<ChannelEntry>({
  id: required(identifier),
  provider: required(oneOf(PROVIDER_NAMES)),
  baseUrl: required(address(['http', 'https', 'ws', 'wss'])),
  credentials: required(bySibling('provider', CREDENTIALS)),
  models: optional(globs),
  modelMap: withDefault(recordOf(modelName), {}),
  priority: withDefault(integer({ min: 0 }), 0),
  weight: withDefault(positiveNumber, 1),
  options: withDefault(bySibling('provider', OPTIONS), {}),
  timeouts: withDefault(timeoutOverrides, {}),
})
