import type { BreakerSection, ChannelConfig, ModelRow, UpstreamTimeouts } from './channel-schema.js'
import type { WorkerCount } from './value-types.js'

/** What one key may use. Absent = no limit. */
export interface KeyLimits {
  readonly requestsPerMinute?: number
  /** Prompt and completion together. */
  readonly tokensPerMinute?: number
  /** Heard and spoken. */
  readonly audioSecondsPerMinute?: number
  /** Requests under way at once. */
  readonly concurrency?: number
  /** Open at once. */
  readonly realtimeSessions?: number
}

export interface AccessKey {
  /** Shown in logs, metrics and usage; never the key itself. */
  readonly id: string
  /** SHA-256 of the whole key, 64 lower-case hex digits. The key itself is forgotten at load. */
  readonly sha256: string
  /** Globs; absent = every model. */
  readonly models?: readonly string[]
  readonly limits?: KeyLimits
}

/** The operator's own key, known by its SHA-256 alone, 64 lower-case hex digits. */
export interface AdminKey {
  readonly sha256: string
  /** False where the configuration gave the hash: how easily the key is guessed is not known. */
  readonly isJudged: boolean
}

export interface AuthSection {
  readonly keys: readonly AccessKey[]
  /**
   * Ids of keys that a gateway which does not know them may take for an upstream's and pass on; absent where no channel
   * passes any on, or all keys begin as they should.
   */
  readonly mistakableKeys?: readonly string[]
  /** Of keys that have none of their own, and of callers with a bearer of their own. */
  readonly defaultLimits?: KeyLimits
  /** Reserved of `tokensPerMinute` for each answer that has no maximum. */
  readonly expectedOutputTokens: number
  /** Opens `/admin`; absent = there is no such thing. */
  readonly adminKey?: AdminKey
  /** How often keys of the store are read anew, in milliseconds. */
  readonly keyRefreshMs: number
}

export interface ServerSection {
  /** Processes that serve the port together; more than one only with PostgreSQL. `auto` = one for each processor. */
  readonly workers: WorkerCount
  readonly host: string
  readonly port: number
  readonly publicUrl?: string
  /** 0 switches the metrics port off. */
  readonly metricsPort: number
  /** Whether answers say which channel gave them, at which attempt, and what the gateway took itself. */
  readonly explainHeaders: boolean
  /** Addresses or ranges whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[]
  /** Origins whose pages may open sockets, or `*`; absent = no page at all. */
  readonly allowedOrigins?: readonly string[]
}

/** What one realtime session may take before it is refused something, slowed down or closed. */
export interface RealtimeSizes {
  /** Decoded audio of one append. */
  readonly realtimeAudioBytes: number
  /** One message of a client. */
  readonly realtimeFrameBytes: number
  /** Of one message of a client. */
  readonly realtimeFragments: number
  readonly realtimeEventsPerSecond: number
  readonly realtimePingsPerSecond: number
  /** Waiting for a slow reader: from here on the other side is not read any more. */
  readonly realtimePauseBytes: number
  /** Waiting for a slow reader: held for `realtimeStuckMs`, the session is closed. */
  readonly realtimeCloseBytes: number
}

export interface RealtimeTimes {
  readonly realtimeStuckMs: number
  /** Between two pings; two without an answer end the connection. */
  readonly realtimePingMs: number
  /** Without an event in either direction. */
  readonly realtimeIdleMs: number
  /** Of a session as a whole. */
  readonly realtimeAgeMs: number
}

/** Everything a session obeys: parts of the sections `limits` and `timeouts`, under the names they have there. */
export type RealtimeLimits = RealtimeSizes & RealtimeTimes

export interface LimitsSection extends RealtimeSizes {
  readonly jsonBodyBytes: number
  readonly imageBodyBytes: number
  readonly audioFileBytes: number
  readonly audioBodyBytes: number
  /** One document, fetched or uploaded, after its encodings are taken off. */
  readonly documentBytes: number
  /** Open at once, those being dialled included. */
  readonly realtimeSessions: number
}

export interface TimeoutsSection extends UpstreamTimeouts, RealtimeTimes {
  readonly shutdownGraceMs: number
  /** Between the signal to stop and the end of listening: the process says that it is not ready, and serves on. */
  readonly drainDelayMs: number
}

/** Times in milliseconds. */
export interface TasksSection {
  /** In a task's first minute; three times as long afterwards. */
  readonly pollIntervalMs: number
  /** A task that has not ended by then is closed as failed. */
  readonly maxAgeMs: number
  /** How long a create whose answer was lost is looked for at its upstream. */
  readonly reconcileMs: number
  /** Ended tasks are forgotten afterwards, as the media is. */
  readonly retentionMs: number
  /** Polls under way at once on one channel. */
  readonly pollsPerChannel: number
  /** Polls that one process begins; with more tasks each of them is asked for less often. */
  readonly pollsPerSecond: number
}

export interface CallbacksSection {
  /** `whsec_<base64>`; absent = deliveries are unsigned. */
  readonly secret?: string
  /** One delay per attempt. */
  readonly scheduleMs: readonly number[]
  readonly timeoutMs: number
  /** Deliveries under way at once to one host. */
  readonly perHost: number
}

export interface DatabaseSection {
  /** PostgreSQL; absent = the embedded store. */
  readonly url?: string
  /** Connections to PostgreSQL at once. */
  readonly maxConnections: number
}

/** Where limits are counted for all replicas together; absent url = each process counts for itself. */
export interface RedisSection {
  readonly url?: string
  /** What a request waits for Redis at most; then the limits of this process alone hold. */
  readonly timeoutMs: number
  /** Of each limit, above 0 and at most 1: what one replica allows while Redis is away. */
  readonly localShare: number
}

/** Documents that the gateway reads itself. Times in milliseconds. */
export interface DocumentsSection {
  /** When the caller names no `timeout`. */
  readonly defaultTimeoutMs: number
  /** Longer wishes are cut to it. */
  readonly maximumTimeoutMs: number
  /** Of one document in its process, within the caller's own deadline. */
  readonly parseMs: number
  /** Of a PDF; more are refused. */
  readonly pages: number
  /** Documents that are read at once, each in a process of its own. */
  readonly processes: number
  /** Documents that wait for a process; beyond it callers get 503. */
  readonly queue: number
  /** Of one process; whoever needs more is ended. */
  readonly memoryBytes: number
  /** URLs that are fetched at once; beyond it callers get 503. */
  readonly fetchesInFlight: number
  /** How long a result is given again; 0 = never. */
  readonly cacheMs: number
  /** Of all results kept. */
  readonly cacheBytes: number
}

/** Records of what was used. Times in milliseconds. */
export interface UsageSection {
  /** Absent = where there is a store that was asked for by name (`storesUsage`). */
  readonly store?: boolean
  /** Records that may wait for the store in memory; beyond it the oldest wait in files. */
  readonly queueRows: number
  /** Written at once. */
  readonly batchRows: number
  /** How long a record waits for company. */
  readonly batchMs: number
  /** Records are forgotten afterwards. */
  readonly retentionMs: number
}

/** What some models cost; the first row that fits counts. Decimal text, in whatever currency the operator reckons. */
export interface PriceRow {
  /** Globs. */
  readonly models: readonly string[]
  /** Ids; absent = on every channel. */
  readonly channels?: readonly string[]
  /** A row for what realtime sessions hear, written down by another model; others are not for that. */
  readonly kind?: 'input_transcription'
  /** Tokens: per million. A part without a price of its own costs what its whole costs. */
  readonly promptTokens?: string
  readonly cachedTokens?: string
  readonly cachedAudioTokens?: string
  readonly cacheWriteTokens?: string
  readonly cacheWriteHourTokens?: string
  readonly audioInputTokens?: string
  readonly completionTokens?: string
  readonly audioOutputTokens?: string
  readonly reasoningTokens?: string
  /** Per million. */
  readonly characters?: string
  /** Per minute, or per second; never both. */
  readonly audioMinutes?: string
  readonly audioSeconds?: string
  /** Each. */
  readonly videos?: string
  readonly images?: string
  readonly documents?: string
  readonly pages?: string
  /** Each; whatever else was used and has no price is included. */
  readonly requests?: string
}

export interface ObservabilitySection {
  /** Where `/metrics` listens; absent = where the gateway does. */
  readonly metricsHost?: string
  /** Of a collector of traces, without `/v1/traces`; absent = nothing is traced. */
  readonly otlpUrl?: string
  /** Sent to the collector: its credentials. */
  readonly otlpHeaders: Readonly<Record<string, string>>
  /** Share of the traces that begin here and are sent, 0 to 1. */
  readonly traceSampleRatio: number
}

/** When requests are refused before any work is done for them: the process could not keep up. */
export interface AdmissionSection {
  /** Under way at once, open streams and sockets included. */
  readonly concurrentRequests: number
  /** Bodies held in memory and answers that wait for slow readers, together; of all workers. */
  readonly bytesInFlight: number
  /** Of `bytesInFlight`, what one caller may hold while others ask. */
  readonly callerShare: number
  /** What a turn of the event loop may last before new requests are refused. */
  readonly loopDelayHighMs: number
  /** What it is brought back to, and below which nothing is refused any more. */
  readonly loopDelayLowMs: number
  /** What all workers may use; absent = what their container or machine has. */
  readonly memoryBytes?: number
  /** Shares of that memory: from the first on requests are refused, until the second is reached again. */
  readonly memoryHighShare: number
  readonly memoryLowShare: number
}

/**
 * The whole configuration as the rest of the house sees it: validated, complete with defaults, frozen.
 * Source: docs/operations.md (configuration contract). Only `src/config` builds one.
 */
export interface GatewayConfig {
  readonly server: ServerSection
  readonly limits: LimitsSection
  readonly timeouts: TimeoutsSection
  readonly auth: AuthSection
  readonly channels: readonly ChannelConfig[]
  /** Rows added to the built-in catalogue. */
  readonly models: readonly ModelRow[]
  readonly breaker: BreakerSection
  readonly admission: AdmissionSection
  readonly ssrf: { readonly allow: readonly string[] }
  readonly tasks: TasksSection
  readonly callbacks: CallbacksSection
  readonly documents: DocumentsSection
  readonly usage: UsageSection
  readonly prices: readonly PriceRow[]
  readonly database: DatabaseSection
  readonly redis: RedisSection
  readonly logging: { readonly level: LogLevel }
  readonly observability: ObservabilitySection
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
