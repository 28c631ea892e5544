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
import type { ModelClass } from './model-classes.js'
import { address, glob, identifier, integer, modelName, oneOf, positiveNumber, textAs } from './value-types.js'

/** Four separate deadlines of one upstream call, all in milliseconds. */
export interface UpstreamTimeouts {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** What a channel authenticates with: a secret of its own, or the caller's own bearer passed on. */
export type ChannelCredentials = { readonly kind: 'own'; readonly secret: string } | { readonly kind: 'caller' }

/** What the configuration asks of channels of one provider. Each provider's manifest declares its own. */
export interface ProviderSettings {
  /** What channels and models call it. */
  readonly name: string
  readonly credentialsSchema: Schema<ChannelCredentials>
  readonly optionsSchema: Schema<Readonly<Record<string, unknown>>>
  /** Where the upstream's own client waits for other times than the gateway's defaults. */
  readonly timeouts?: Partial<UpstreamTimeouts>
}

export interface ChannelConfig {
  readonly id: string
  /** The name of a provider. */
  readonly provider: string
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
  readonly providers: readonly string[]
}

/** When a channel is spared. Times in milliseconds. */
export interface BreakerSection {
  /** In a row, by the channel's own fault, after which it is spared. */
  readonly failures: number
  /** For the first time; twice as long each further time, up to the maximum. */
  readonly coolDownMs: number
  readonly maximumCoolDownMs: number
}

/**
 * The timeouts of a channel, the stronger over the weaker: built-in defaults, the provider's, what the file sets for all
 * channels, what it sets for this one (`own`). `section` is the checked section `timeouts`, complete with the built-in defaults;
 * `document` is the raw file, which alone knows what was set.
 */
export function channelTimeouts(
  provider: ProviderSettings | undefined,
  own: Partial<UpstreamTimeouts>,
  section: UpstreamTimeouts,
  document: unknown,
): UpstreamTimeouts {
  const raw = isMap(document) ? document['timeouts'] : undefined
  const isSet = (name: keyof UpstreamTimeouts): boolean => isMap(raw) && !isAbsent(raw[name])
  const fallback = provider?.timeouts ?? {}
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

/** For providers without options of their own. */
export const noOptions = mapOf<Record<string, never>>({})

/** Credentials travel in headers: printable ASCII, no spaces. */
const PRINTABLE = /^[\x21-\x7e]{1,4096}$/
const PRINTABLE_RULE = 'must be 1 to 4096 printable ASCII characters without spaces, or "caller"'

/** One printable secret, or the caller's own. */
export const keyCredentials = textAs(PRINTABLE_RULE, readCredentials)

/** A pair `A|B`; one key without `|`, too, where `allowed` says so. */
export const pairCredentials = (allowed: 'pair' | 'pair or key', rule: string): Schema<ChannelCredentials> =>
  textAs(rule, (text) => {
    const parts = text.split('|')
    const isKey = parts.length === 1 && (allowed === 'pair or key' || text === 'caller')
    return isKey || (parts.length === 2 && !parts.includes('')) ? readCredentials(text) : undefined
  })

function readCredentials(text: string): ChannelCredentials | undefined {
  if (text === 'caller') return { kind: 'caller' }
  return PRINTABLE.test(text) ? { kind: 'own', secret: text } : undefined
}

/** A name among those of the providers. */
export const providerName = (providers: readonly ProviderSettings[]): Schema<string> =>
  oneOf(providers.map(({ name }) => name))

/** A channel of one of `providers`, with the credentials and options of its own. */
export function channelSchema(providers: readonly ProviderSettings[]): Schema<ChannelEntry> {
  const credentialsSchemas = Object.fromEntries(
    providers.map((provider) => [provider.name, provider.credentialsSchema]),
  )
  const optionsSchemas = Object.fromEntries(providers.map((provider) => [provider.name, provider.optionsSchema]))
  return mapOf<ChannelEntry>({
    id: required(identifier),
    provider: required(providerName(providers)),
    baseUrl: required(address(['http', 'https', 'ws', 'wss'])),
    credentials: required(bySibling('provider', credentialsSchemas)),
    models: optional(globs),
    modelMap: withDefault(recordOf(modelName), {}),
    priority: withDefault(integer({ min: 0 }), 0),
    weight: withDefault(positiveNumber, 1),
    options: withDefault(bySibling('provider', optionsSchemas), {}),
    timeouts: withDefault(timeoutOverrides, {}),
  })
}
