import {
  bySibling,
  isAbsent,
  isMap,
  listOf,
  mapOf,
  optional,
  recordOf,
  required,
  type Schema,
  withDefault,
} from './checks.js'
import {
  address,
  clusterName,
  glob,
  identifier,
  integer,
  modelName,
  oneOf,
  pathPrefix,
  positiveNumber,
  textAs,
  voiceName,
} from './value-types.js'

export const PROVIDER_NAMES = ['p1', 'p2', 'p3', 'p4', 'm1', 'vidgen', 'imggen', 'reader'] as const
export type ProviderName = (typeof PROVIDER_NAMES)[number]

export const MODEL_CLASSES = [
  'tts',
  'tts-style',
  'stt-standard',
  'stt-generation',
  'stt-diarize',
  'chat',
  'chat-audio',
  'messages',
  'realtime',
  'video',
  'image',
] as const
export type ModelClass = (typeof MODEL_CLASSES)[number]

/** Four separate deadlines of one upstream call, all in milliseconds. */
export interface UpstreamTimeouts {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** What a channel authenticates with: a secret of its own, or the caller's own bearer passed on. */
type ChannelCredentials = { readonly kind: 'own'; readonly secret: string } | { readonly kind: 'caller' }

export interface ChannelConfig {
  readonly id: string
  readonly provider: ProviderName
  /** http(s) or ws(s), may carry a path prefix; never ends in a slash. */
  readonly baseUrl: string
  readonly credentials: ChannelCredentials
  /** Globs; absent = every catalogue model of the provider. */
  readonly models?: readonly string[]
  readonly modelMap: Readonly<Record<string, string>>
  /** Lower is tried first. */
  readonly priority: number
  /** Draw within one priority; greater than 0. */
  readonly weight: number
  readonly options: Readonly<Record<string, unknown>>
  /** Complete: the gateway's, the provider's and this channel's own, already laid over each other. */
  readonly timeouts: UpstreamTimeouts
}

export interface ModelRow {
  readonly id: string
  readonly class: ModelClass
  readonly providers: readonly ProviderName[]
}

/** When a channel is spared. Times in milliseconds. */
export interface BreakerSection {
  /** In a row, by the channel's own fault, after which it is spared. */
  readonly failures: number
  /** For the first time; twice as long each further time, up to the maximum. */
  readonly coolDownMs: number
  readonly maximumCoolDownMs: number
}

/** Where an upstream's own client waits for other times than the gateway's defaults. A new one is declared here. */
const PROVIDER_TIMEOUTS: Readonly<Partial<Record<ProviderName, Partial<UpstreamTimeouts>>>> = {
  // The vendor's SDK gives a handshake 12 s and a socket that says nothing 8 s.
  p2: { connectMs: 12_000, idleMs: 8_000 },
}

/**
 * The timeouts of a channel, the stronger over the weaker: built-in defaults, the provider's, what the file sets for all
 * channels, what it sets for this one. `section` is the checked section `timeouts`, complete with the built-in defaults;
 * `document` is the raw file, which alone knows what was set.
 */
export function channelTimeouts(
  provider: ProviderName,
  own: Partial<UpstreamTimeouts>,
  section: UpstreamTimeouts,
  document: unknown,
): UpstreamTimeouts {
  const raw = isMap(document) ? document['timeouts'] : undefined
  const isSet = (name: keyof UpstreamTimeouts): boolean => isMap(raw) && !isAbsent(raw[name])
  const fallback = PROVIDER_TIMEOUTS[provider] ?? {}
  const timeout = (name: keyof UpstreamTimeouts): number =>
    own[name] ?? (isSet(name) ? section[name] : (fallback[name] ?? section[name]))
  return {
    connectMs: timeout('connectMs'),
    firstByteMs: timeout('firstByteMs'),
    idleMs: timeout('idleMs'),
    totalMs: timeout('totalMs'),
  }
}

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
