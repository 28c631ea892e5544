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
export type ChannelCredentials = { readonly kind: 'own'; readonly secret: string } | { readonly kind: 'caller' }

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
