import { z } from 'zod'
import { type AuthSection, auth, countApart, LIMITS_NEED_REDIS } from './auth-schema.js'
import { callbacks, documents, prices, tasks, usage } from './background-schema.js'
import { breaker, type ChannelConfig, channels, models, type ProviderSettings } from './channel-schema.js'
import {
  address,
  addressRange,
  boolean,
  bothValid,
  bytes,
  connectionUrl,
  count,
  type DeepReadonly,
  durationMs,
  hostAndPort,
  hostName,
  integer,
  isNonEmpty,
  mapOf,
  numberFrom,
  oneOf,
  positiveNumber,
  settings,
  webOrigin,
  workers,
} from './value-types.js'

const port = integer({ min: 0, max: 65_535 })

const server = settings({
  host: hostName.default('0.0.0.0').describe('Address to listen on'),
  port: port.default(8080).describe('Public port; 0 takes any free one'),
  publicUrl: address('http', 'https')
    .exactOptional()
    .describe(
      'Where upstreams reach this gateway: video upstreams are then asked to call `/vidgen/callbacks/…` there when a task changes. Absent = they are only asked',
    ),
  metricsPort: port
    .default(9090)
    .describe(
      'Port of [`/metrics`](metrics.md), to be kept from the public. Must differ from `server.port`; 0 = off, as in the sandbox',
    ),
  workers: workers
    .default(1)
    .describe(
      'Processes that serve the port together, `auto` one for each processor; see [below](#one-machine-all-processors). More than one only with PostgreSQL, and with `redis.url` where keys have limits',
    ),
  explainHeaders: boolean
    .default(true)
    .describe(
      'Answers that went to an upstream carry `x-gateway-channel`, `x-gateway-attempts` and `x-gateway-overhead-ms` (see [overload.md](overload.md#headers-that-explain-an-answer))',
    ),
  trustedProxies: z
    .array(addressRange)
    .meta({ type: 'list of IP addresses or ranges (`10.0.0.0/8`)' })
    .default([])
    .describe(
      'Load balancers whose `X-Forwarded-For` tells who the caller is, in the log and in the audit log. It is read from the right for as long as the address before it is in the list; from other addresses the header is ignored',
    ),
  allowedOrigins: z
    .array(webOrigin)
    .refine(isNonEmpty, 'must hold at least one origin; leave it out for none')
    .meta({ type: 'list of origins' })
    .exactOptional()
    .describe(
      'Origins whose pages may open WebSocket connections, as browsers send them (`https://app.example.com`), or `*` for all. Absent = no page; programs, which send no `Origin`, always may',
    ),
}).refine((own) => own.port !== own.metricsPort || own.port === 0, {
  path: ['metricsPort'],
  error: 'must differ from server.port (0 switches it off)',
  when: bothValid('port', 'metricsPort'),
})

const limits = settings({
  jsonBodyBytes: bytes.default(10_485_760).describe('Largest JSON body; beyond it 413'),
  imageBodyBytes: bytes
    .default(62_914_560)
    .describe('Largest JSON body with Base64 images: creates of multi-image video'),
  audioFileBytes: bytes.default(26_214_400).describe('Largest audio file; beyond it 400 `file_too_large`'),
  audioBodyBytes: bytes
    .default(28_311_552)
    .describe('Largest multipart body around it; beyond it 413, at once where `Content-Length` says so'),
  documentBytes: integer({ min: 1, max: 268_435_456 })
    .default(26_214_400)
    .describe('One document, fetched or uploaded, after its encodings are taken off; beyond it 413'),
  realtimeSessions: count
    .default(1000)
    .describe('Realtime sessions open at once, those being dialled included; beyond it 503'),
  realtimeAudioBytes: bytes.default(15_728_640).describe('Largest audio of one append, decoded'),
  realtimeFrameBytes: integer({ min: 1, max: 1_073_741_824 })
    .default(22_020_096)
    .describe('Largest message of a client'),
  realtimeFragments: count.default(1024).describe('Into how many fragments a client may cut a message'),
  realtimeEventsPerSecond: count.default(500).describe('Events of one client'),
  realtimePingsPerSecond: count.default(20).describe('Pings and pongs of one client'),
  realtimePauseBytes: bytes
    .default(1_048_576)
    .describe('Waiting for a slow reader: from here on the other side is not read'),
  realtimeCloseBytes: bytes
    .default(4_194_304)
    .describe(
      'Waiting for a slow reader for `timeouts.realtimeStuckMs`: the session is closed. Above `limits.realtimePauseBytes`',
    ),
}).refine(({ realtimePauseBytes, realtimeCloseBytes }) => realtimePauseBytes < realtimeCloseBytes, {
  path: ['realtimeCloseBytes'],
  error: 'must be greater than limits.realtimePauseBytes',
  when: bothValid('realtimePauseBytes', 'realtimeCloseBytes'),
})

const timeouts = settings({
  connectMs: durationMs.default(5000).describe('Until the connection to the upstream stands, TLS included'),
  firstByteMs: durationMs.default(120_000).describe("From the request sent to the head of the upstream's answer"),
  idleMs: durationMs.default(60_000).describe('Between two pieces of an answer'),
  totalMs: durationMs.default(570_000).describe('The whole call with its retry; that of the first channel counts'),
  shutdownGraceMs: durationMs
    .default(30_000)
    .describe('What running requests and realtime answers get when the process is told to stop'),
  drainDelayMs: integer({ min: 0, max: 600_000 })
    .default(0)
    .describe(
      'Behind a load balancer: how long a process that was told to stop serves on while `/health/ready` says 503',
    ),
  realtimeStuckMs: durationMs
    .default(10_000)
    .describe('How long a realtime session may hold `limits.realtimeCloseBytes`'),
  realtimePingMs: durationMs
    .default(20_000)
    .describe('Between two pings on a realtime connection; two without an answer end it'),
  realtimeIdleMs: durationMs.default(300_000).describe('A realtime session without an event'),
  realtimeAgeMs: durationMs.default(3_480_000).describe('A realtime session as a whole'),
})

const share = numberFrom(0.01, 1)
const delayMs = integer({ min: 5, max: 10_000 })

/** When requests are refused before any work is done for them: the process could not keep up. */
const admission = settings({
  concurrentRequests: count.default(10_000).describe('Requests under way at once, open streams and sockets included'),
  bytesInFlight: bytes
    .default(314_572_800)
    .describe('Bodies held in memory and answers that wait for slow readers, together'),
  callerShare: share.default(0.5).describe('Of `admission.bytesInFlight`, what one key may hold while others ask'),
  loopDelayHighMs: delayMs
    .default(100)
    .describe('What a turn of the event loop may last, in milliseconds, before new requests are refused'),
  loopDelayLowMs: delayMs.default(5).describe('What it is brought back to; below `admission.loopDelayHighMs`'),
  memoryBytes: integer({ min: 67_108_864 })
    .exactOptional()
    .describe('Memory the gateway may use; absent = what container or machine has without its documents'),
  memoryHighShare: share
    .default(0.9)
    .describe('Of that memory, and of the JavaScript heap: from here on requests are refused'),
  memoryLowShare: share.default(0.8).describe('Until this is reached again; below `admission.memoryHighShare`'),
})
  .refine(({ loopDelayHighMs, loopDelayLowMs }) => loopDelayLowMs < loopDelayHighMs, {
    path: ['loopDelayLowMs'],
    error: 'must be less than admission.loopDelayHighMs',
    when: bothValid('loopDelayHighMs', 'loopDelayLowMs'),
  })
  .refine(({ memoryHighShare, memoryLowShare }) => memoryLowShare < memoryHighShare, {
    path: ['memoryLowShare'],
    error: 'must be less than admission.memoryHighShare',
    when: bothValid('memoryHighShare', 'memoryLowShare'),
  })

const ssrf = (production: boolean) =>
  settings({
    allow: z
      .array(hostAndPort)
      .meta({ type: 'list of `host:port`' })
      .default([])
      .describe(
        'Private addresses that URLs of callers and in answers of upstreams may lead to, for tests; see [below](#security-notes); must be empty when `NODE_ENV=production`',
      ),
  }).refine(({ allow }) => !production || allow.length === 0, {
    path: ['allow'],
    error: 'must be empty when NODE_ENV is production',
    when: bothValid('allow'),
  })

const database = settings({
  url: connectionUrl('postgres', 'postgresql')
    .exactOptional()
    .describe('PostgreSQL 14 or later instead of the embedded store'),
  maxConnections: integer({ min: 1, max: 1000 })
    .default(10)
    .describe('Connections to PostgreSQL at once, for each replica'),
})

/** Where limits are counted for all replicas together. */
const redis = settings({
  url: connectionUrl('redis', 'rediss')
    .exactOptional()
    .describe(
      'Limits are counted there for all replicas; absent = each process counts for itself, and with limits in the configuration there can be only one worker. See [limits.md](limits.md)',
    ),
  timeoutMs: integer({ min: 1, max: 10_000 })
    .default(250)
    .describe('What a request waits for Redis at most; after that the limits of this process alone hold'),
  localShare: positiveNumber
    .refine((value) => value <= 1, 'must be a number > 0, at most 1')
    .meta({ type: 'above 0, at most 1' })
    .default(0.5)
    .describe('The part of each limit that one replica allows while Redis is away'),
})

const logging = settings({
  level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Messages of this level and above are logged'),
})

/** RFC 9110, section 5.1. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/

const headers = mapOf(
  z.string().regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/, 'must be 1 to 4096 printable ASCII characters'),
)
  .refine((named) => Object.keys(named).every((name) => HEADER_NAME.test(name)), 'must hold names of headers')
  .meta({ type: 'map of headers', secret: true })

const observability = settings({
  metricsHost: hostName.exactOptional().describe('Where `/metrics` listens; absent = `server.host`'),
  otlpUrl: address('http', 'https')
    .exactOptional()
    .describe(
      'Collector of traces, spoken to in OTLP/HTTP with JSON; `/v1/traces` is appended. Absent = nothing is traced. See [metrics.md](metrics.md#traces)',
    ),
  otlpHeaders: headers.prefault({}).describe('Sent to the collector: its credentials'),
  traceSampleRatio: numberFrom(0, 1)
    .default(1)
    .describe('Share of the traces that begin here and are sent; a caller who sends `traceparent` decides for its own'),
})

/** Everything the configuration file may hold, with every default (docs/operations.md, configuration contract). */
export const configSchema = (providers: readonly ProviderSettings[], production = false) =>
  settings({
    server: server.prefault({}),
    limits: limits.prefault({}),
    timeouts: timeouts.prefault({}),
    auth: auth.prefault({}),
    channels: channels(providers),
    models: models(providers),
    breaker: breaker.prefault({}),
    admission: admission.prefault({}),
    ssrf: ssrf(production).prefault({}),
    tasks: tasks.prefault({}),
    callbacks: callbacks.prefault({}),
    documents: documents.prefault({}),
    usage: usage.prefault({}),
    prices,
    database: database.prefault({}),
    redis: redis.prefault({}),
    logging: logging.prefault({}),
    observability: observability.prefault({}),
  })
    // Workers that count by themselves grant a limit of 1 as often as there are workers, and only a part of any other.
    .refine((sections) => !countApart(sections), {
      path: ['server', 'workers'],
      error: LIMITS_NEED_REDIS,
      when: bothValid('server', 'auth', 'redis'),
    })

/** The file's own shape; `GatewayConfig` follows from it without a further check. */
export type ConfigDocument = DeepReadonly<z.output<ReturnType<typeof configSchema>>>

/**
 * The whole configuration as the rest of the gateway sees it: validated, complete with defaults, frozen.
 * Source: docs/operations.md (configuration contract). Only `src/config` builds one.
 */
export interface GatewayConfig extends Omit<ConfigDocument, 'auth' | 'channels'> {
  readonly auth: AuthSection
  readonly channels: readonly ChannelConfig[]
}

export type ServerSection = GatewayConfig['server']
export type AccessKey = AuthSection['keys'][number]
export type KeyLimits = NonNullable<AuthSection['defaultLimits']>
export type LimitsSection = GatewayConfig['limits']
export type TimeoutsSection = GatewayConfig['timeouts']
export type AdmissionSection = GatewayConfig['admission']
export type DatabaseSection = GatewayConfig['database']
export type RedisSection = GatewayConfig['redis']
export type DocumentsSection = GatewayConfig['documents']
export type PriceRow = GatewayConfig['prices'][number]
export type LogLevel = GatewayConfig['logging']['level']

/** What one realtime session may take before it is refused something, slowed down or closed, and its times. */
export type RealtimeLimits = Omit<RealtimeOf<LimitsSection>, 'realtimeSessions'> & RealtimeOf<TimeoutsSection>
type RealtimeOf<T> = Pick<T, Extract<keyof T, `realtime${string}`>>
