import { adminKey } from './admin-key.js'
import {
  type BreakerSection,
  type ChannelEntry,
  channelSchema,
  durationMs,
  globs,
  type ModelRow,
  providerName,
  type ProviderSettings,
} from './channel-schema.js'
import { listOf, mapOf, optional, type PresentField, required, type Schema, withDefault } from './checks.js'
import { admission, assertLimitsHold, keyLimits, observability, redisSection } from './limits-schema.js'
import { MODEL_CLASS_NAMES } from './model-classes.js'
import {
  type AuthSection,
  type CallbacksSection,
  type DatabaseSection,
  type DocumentsSection,
  type GatewayConfig,
  type KeyLimits,
  type LimitsSection,
  LOG_LEVELS,
  type PriceRow,
  type ServerSection,
  type TasksSection,
  type TimeoutsSection,
  type UsageSection,
} from './settings.js'
import {
  accessKey,
  address,
  addressRange,
  boolean,
  connectionUrl,
  decimal,
  hostAndPort,
  hostName,
  identifier,
  integer,
  keyHash,
  keyIdentifier,
  modelName,
  oneOf,
  webhookSecret,
  webOrigin,
  workers,
} from './value-types.js'

const usageSection = mapOf<UsageSection>({
  store: optional(boolean),
  queueRows: withDefault(integer({ min: 1, max: 1_000_000 }), 50_000),
  batchRows: withDefault(integer({ min: 1, max: 5000 }), 500),
  batchMs: withDefault(integer({ min: 1, max: 60_000 }), 1000),
  retentionMs: withDefault(integer({ min: 1 }), 7_776_000_000),
})

const price = optional(decimal)

const priceRow = mapOf<PriceRow>(
  {
    models: required(globs),
    channels: optional(listOf(identifier, { nonEmpty: 'must name at least one channel; leave it out for all' })),
    kind: optional(oneOf(['input_transcription'])),
    promptTokens: price,
    cachedTokens: price,
    cachedAudioTokens: price,
    cacheWriteTokens: price,
    cacheWriteHourTokens: price,
    audioInputTokens: price,
    completionTokens: price,
    audioOutputTokens: price,
    reasoningTokens: price,
    characters: price,
    audioMinutes: price,
    audioSeconds: price,
    videos: price,
    images: price,
    documents: price,
    pages: price,
    requests: price,
  },
  ({ audioMinutes, audioSeconds }, at) => {
    if (audioMinutes !== undefined && audioSeconds !== undefined)
      at.field('audioSeconds').fault('must not stand beside audioMinutes: both price the same')
  },
)

const prices: Schema<readonly PriceRow[]> = listOf(priceRow)

/** An access key as the file gives it, but hashed already. */
export interface KeyEntry {
  readonly id: string
  readonly key: string
  readonly models?: readonly string[]
  readonly limits?: KeyLimits
}

export interface AuthEntry extends Omit<AuthSection, 'keys' | 'mistakableKeys'> {
  readonly keys: readonly KeyEntry[]
}

/** The file's own shape; `GatewayConfig` follows from it without a further check. */
export interface ConfigDocument extends Omit<GatewayConfig, 'auth' | 'channels'> {
  readonly auth: AuthEntry
  readonly channels: readonly ChannelEntry[]
}

const bytes = integer({ min: 1 })
const count = integer({ min: 1, max: 1_000_000 })
const asText = (raw: unknown): string | undefined => (typeof raw === 'string' ? raw : undefined)

const section = <T>(schema: Schema<T>): PresentField<T> => withDefault(schema, {})

const server = mapOf<ServerSection>(
  {
    host: withDefault(hostName, '0.0.0.0'),
    port: withDefault(integer({ min: 0, max: 65_535 }), 8080),
    publicUrl: optional(address(['http', 'https'])),
    metricsPort: withDefault(integer({ min: 0, max: 65_535 }), 9090),
    workers: withDefault(workers, 1),
    explainHeaders: withDefault(boolean, true),
    trustedProxies: withDefault(listOf(addressRange), []),
    allowedOrigins: optional(listOf(webOrigin, { nonEmpty: 'must hold at least one origin; leave it out for none' })),
  },
  ({ port, metricsPort }, at) => {
    if (port !== undefined && port === metricsPort && port !== 0)
      at.field('metricsPort').fault('must differ from server.port (0 switches it off)')
  },
)

const limits = mapOf<LimitsSection>(
  {
    jsonBodyBytes: withDefault(bytes, 10_485_760),
    imageBodyBytes: withDefault(bytes, 62_914_560),
    audioFileBytes: withDefault(bytes, 26_214_400),
    audioBodyBytes: withDefault(bytes, 28_311_552),
    documentBytes: withDefault(integer({ min: 1, max: 268_435_456 }), 26_214_400),
    realtimeSessions: withDefault(count, 1000),
    realtimeAudioBytes: withDefault(bytes, 15_728_640),
    realtimeFrameBytes: withDefault(integer({ min: 1, max: 1_073_741_824 }), 22_020_096),
    realtimeFragments: withDefault(count, 1024),
    realtimeEventsPerSecond: withDefault(count, 500),
    realtimePingsPerSecond: withDefault(count, 20),
    realtimePauseBytes: withDefault(bytes, 1_048_576),
    realtimeCloseBytes: withDefault(bytes, 4_194_304),
  },
  ({ realtimePauseBytes, realtimeCloseBytes }, at) => {
    if (
      realtimePauseBytes !== undefined &&
      realtimeCloseBytes !== undefined &&
      realtimePauseBytes >= realtimeCloseBytes
    )
      at.field('realtimeCloseBytes').fault('must be greater than limits.realtimePauseBytes')
  },
)

const timeouts = mapOf<TimeoutsSection>({
  connectMs: withDefault(durationMs, 5000),
  firstByteMs: withDefault(durationMs, 120_000),
  idleMs: withDefault(durationMs, 60_000),
  totalMs: withDefault(durationMs, 570_000),
  shutdownGraceMs: withDefault(durationMs, 30_000),
  drainDelayMs: withDefault(integer({ min: 0, max: 600_000 }), 0),
  realtimeStuckMs: withDefault(durationMs, 10_000),
  realtimePingMs: withDefault(durationMs, 20_000),
  realtimeIdleMs: withDefault(durationMs, 300_000),
  realtimeAgeMs: withDefault(durationMs, 3_480_000),
})

const keys = listOf(
  mapOf<KeyEntry>({
    id: required(keyIdentifier),
    key: required(accessKey),
    models: optional(globs),
    limits: optional(keyLimits),
  }),
  {
    unique: [
      { field: 'id', identity: asText },
      { field: 'key', identity: keyHash },
    ],
  },
)

const auth = mapOf<AuthEntry>(
  {
    keys: withDefault(keys, []),
    defaultLimits: optional(keyLimits),
    expectedOutputTokens: withDefault(integer({ min: 0, max: 1_000_000 }), 1000),
    adminKey: optional(adminKey),
    // A revoked key is to be dead within 5 s on every replica.
    keyRefreshMs: withDefault(integer({ min: 100, max: 4000 }), 2000),
  },
  ({ keys, adminKey }, at) => {
    if (adminKey !== undefined && keys?.some(({ key }) => key === adminKey.sha256) === true)
      at.field('adminKey').fault('must differ from every key of auth.keys')
  },
)

const modelRow = (providers: readonly ProviderSettings[]): Schema<ModelRow> =>
  mapOf<ModelRow>({
    id: required(modelName),
    class: required(oneOf(MODEL_CLASS_NAMES)),
    providers: required(listOf(providerName(providers), { nonEmpty: 'must name at least one provider' })),
  })

const ssrf = mapOf<{ allow: readonly string[] }>({ allow: withDefault(listOf(hostAndPort), []) }, ({ allow }, at) => {
  if (at.context.production && allow !== undefined && allow.length > 0)
    at.field('allow').fault('must be empty when NODE_ENV is production')
})

const breaker = mapOf<BreakerSection>(
  {
    failures: withDefault(integer({ min: 1, max: 1000 }), 3),
    coolDownMs: withDefault(durationMs, 5000),
    maximumCoolDownMs: withDefault(durationMs, 300_000),
  },
  ({ coolDownMs, maximumCoolDownMs }, at) => {
    if (coolDownMs !== undefined && maximumCoolDownMs !== undefined && coolDownMs > maximumCoolDownMs)
      at.field('coolDownMs').fault('must not be greater than breaker.maximumCoolDownMs')
  },
)

const tasks = mapOf<TasksSection>({
  pollIntervalMs: withDefault(durationMs, 5000),
  maxAgeMs: withDefault(integer({ min: 1 }), 86_400_000),
  reconcileMs: withDefault(integer({ min: 1 }), 600_000),
  retentionMs: withDefault(integer({ min: 1 }), 2_592_000_000),
  pollsPerChannel: withDefault(integer({ min: 1, max: 1000 }), 16),
  pollsPerSecond: withDefault(integer({ min: 1, max: 1_000_000 }), 250),
})

const callbacks = mapOf<CallbacksSection>({
  secret: optional(webhookSecret),
  scheduleMs: withDefault(
    listOf(integer({ min: 0, max: 2_147_483_647 }), { nonEmpty: 'must hold at least one delay' }),
    [0, 5000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000],
  ),
  timeoutMs: withDefault(durationMs, 15_000),
  perHost: withDefault(integer({ min: 1, max: 1000 }), 2),
})

const documents = mapOf<DocumentsSection>(
  {
    defaultTimeoutMs: withDefault(durationMs, 30_000),
    maximumTimeoutMs: withDefault(durationMs, 120_000),
    parseMs: withDefault(durationMs, 15_000),
    pages: withDefault(integer({ min: 1, max: 100_000 }), 500),
    processes: withDefault(integer({ min: 1, max: 64 }), 2),
    queue: withDefault(integer({ min: 0, max: 10_000 }), 4),
    memoryBytes: withDefault(integer({ min: 134_217_728, max: 68_719_476_736 }), 805_306_368),
    fetchesInFlight: withDefault(integer({ min: 1, max: 10_000 }), 32),
    cacheMs: withDefault(integer({ min: 0, max: 2_147_483_647 }), 3_600_000),
    cacheBytes: withDefault(bytes, 67_108_864),
  },
  ({ defaultTimeoutMs, maximumTimeoutMs }, at) => {
    if (defaultTimeoutMs !== undefined && maximumTimeoutMs !== undefined && defaultTimeoutMs > maximumTimeoutMs)
      at.field('defaultTimeoutMs').fault('must not be greater than documents.maximumTimeoutMs')
  },
)

const database = mapOf<DatabaseSection>({
  url: optional(connectionUrl(['postgres', 'postgresql'])),
  maxConnections: withDefault(integer({ min: 1, max: 1000 }), 10),
})

/** Everything the configuration file may hold, with every default (docs/operations.md, configuration contract). */
export const configSchema = (providers: readonly ProviderSettings[]): Schema<ConfigDocument> =>
  mapOf<ConfigDocument>(
    {
      server: section(server),
      limits: section(limits),
      timeouts: section(timeouts),
      auth: section(auth),
      channels: withDefault(listOf(channelSchema(providers), { unique: [{ field: 'id', identity: asText }] }), []),
      models: withDefault(listOf(modelRow(providers), { unique: [{ field: 'id', identity: asText }] }), []),
      breaker: section(breaker),
      admission: section(admission),
      ssrf: section(ssrf),
      tasks: section(tasks),
      callbacks: section(callbacks),
      documents: section(documents),
      usage: section(usageSection),
      prices: withDefault(prices, []),
      database: section(database),
      redis: section(redisSection),
      logging: section(
        mapOf<{ level: (typeof LOG_LEVELS)[number] }>({ level: withDefault(oneOf(LOG_LEVELS), 'info') }),
      ),
      observability: section(observability),
    },
    assertLimitsHold,
  )
