import * as z from 'zod'
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
  mapOf,
  numberFrom,
  oneOf,
  originPattern,
  positiveNumber,
  settings,
  workers,
} from './value-types.js'

const port = integer({ min: 0, max: 65_535 })

/** Cross-origin resource sharing: what pages in browsers may do. Programs send no `Origin` and are not concerned. */
const cors = settings({
  allowedOrigins: z
    .array(originPattern)
    .meta({ type: 'list of origins' })
    .default([])
    .describe(
      'Origins whose pages may read responses and open WebSocket connections: as browsers send them (`https://app.example.com`), with `*.` for all names below a domain, with `:*` for any port, or `*` for all pages. Empty = only pages of the gateway itself. In the sandbox pages of `localhost`, `127.0.0.1` and `[::1]`',
    ),
  allowCredentials: boolean
    .default(false)
    .describe(
      'Browsers may send cookies and such, for a proxy before the gateway that asks for them; the gateway needs none. Not with `*` in `server.cors.allowedOrigins`',
    ),
  maxAgeSeconds: integer({ min: 0, max: 86_400 })
    .default(7200)
    .describe('How long a browser may remember the answer to a preflight'),
}).refine(({ allowedOrigins, allowCredentials }) => !allowCredentials || !allowedOrigins.includes('*'), {
  path: ['allowCredentials'],
  error: 'must be false where server.cors.allowedOrigins holds *',
  when: bothValid('allowedOrigins', 'allowCredentials'),
})

const server = settings({
  host: hostName.default('0.0.0.0').describe('Address to listen on'),
  port: port.default(8080).describe('Public port; 0 = any free port'),
  docs: oneOf(['local', 'public', 'off'])
    .default('local')
    .describe(
      'Who can read `/docs`: `local` = callers on this machine, not through a proxy that sends `X-Forwarded-For` or `Forwarded`; `public` = all; `off` = none. Others get 404. In the image the default is `public`',
    ),
  publicUrl: address('http', 'https')
    .exactOptional()
    .describe(
      'Address under which upstreams reach this gateway: video upstreams call `/vidgen/callbacks/…` there when a task changes. Absent = tasks are only polled',
    ),
  metricsPort: port
    .default(9090)
    .describe(
      'Port of [`/metrics`](metrics.md), which should not be public. Must differ from `server.port`; 0 = off, as in the sandbox',
    ),
  workers: workers
    .default(1)
    .describe(
      'Processes that serve the port together, `auto` one for each processor; see [below](#one-machine-all-processors). More than one only with PostgreSQL, and with `redis.url` where keys have limits',
    ),
  explainHeaders: boolean
    .default(true)
    .describe(
      'Responses to requests that reached an upstream carry `x-gateway-channel`, `x-gateway-attempts` and `x-gateway-overhead-ms` (see [overload.md](overload.md#headers-that-explain-an-answer))',
    ),
  trustedProxies: z
    .array(addressRange)
    .meta({ type: 'list of IP addresses or ranges (`10.0.0.0/8`)' })
    .default([])
    .describe(
      'Load balancers whose `X-Forwarded-For` gives the client address for the log and the audit log. It is read from the right while the preceding address is in the list; from other addresses the header is ignored',
    ),
  cors: cors
    .prefault({})
    .describe('Cross-origin resource sharing (CORS): what pages in browsers may do; see [below](#browsers)'),
  realtimeClientDialect: oneOf(['auto', 'beta', 'ga'])
    .default('auto')
    .describe(
      'Dialect of realtime clients that have not shown theirs. `auto` = beta, with a `session.created` that both can read; see [realtime.md](realtime.md#two-dialects)',
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
    .describe('Largest multipart body with such a file; beyond it 413, before reading if `Content-Length` exceeds it'),
  documentBytes: integer({ min: 1, max: 268_435_456 })
    .default(26_214_400)
    .describe('Largest document, fetched or uploaded, after content decoding; beyond it 413'),
  realtimeSessions: count
    .default(1000)
    .describe('Concurrent realtime sessions, including those being connected; beyond it 503'),
  realtimeAudioBytes: bytes.default(15_728_640).describe('Largest decoded audio of one append event'),
  realtimeFrameBytes: integer({ min: 1, max: 1_073_741_824 })
    .default(22_020_096)
    .describe('Largest message of a client'),
  realtimeFragments: count.default(1024).describe('Fragments of one client message'),
  realtimeEventsPerSecond: count
    .default(500)
    .describe('Events per second read from one client; see `timeouts.realtimeBurstMs`'),
  realtimePingsPerSecond: count.default(20).describe('Pings and pongs per second of one client'),
  realtimePauseBytes: bytes
    .default(1_048_576)
    .describe('Bytes buffered for a slow receiver from which on the other side is not read'),
  realtimeCloseBytes: bytes
    .default(4_194_304)
    .describe(
      'Bytes buffered for a slow receiver which, after `timeouts.realtimeStuckMs`, close the session. Above `limits.realtimePauseBytes`',
    ),
}).refine(({ realtimePauseBytes, realtimeCloseBytes }) => realtimePauseBytes < realtimeCloseBytes, {
  path: ['realtimeCloseBytes'],
  error: 'must be greater than limits.realtimePauseBytes',
  when: bothValid('realtimePauseBytes', 'realtimeCloseBytes'),
})

const timeouts = settings({
  connectMs: durationMs.default(5000).describe('Connecting to the upstream, including TLS'),
  firstByteMs: durationMs.default(120_000).describe("From sending the request to the head of the upstream's response"),
  idleMs: durationMs.default(60_000).describe('Between two chunks of a response'),
  totalMs: durationMs
    .default(570_000)
    .describe('The whole request including its retry; the value of the first channel applies'),
  shutdownGraceMs: durationMs
    .default(30_000)
    .describe('Time for requests and realtime responses in progress after a stop signal'),
  drainDelayMs: integer({ min: 0, max: 600_000 })
    .default(0)
    .describe(
      'Behind a load balancer: how long the process serves on after a stop signal, while `/health/ready` returns 503',
    ),
  realtimeBurstMs: durationMs.default(30_000).describe('How long a realtime client may exceed its rate of events'),
  realtimeStuckMs: durationMs
    .default(10_000)
    .describe('How long a realtime session may buffer `limits.realtimeCloseBytes`'),
  realtimePingMs: durationMs
    .default(20_000)
    .describe('Ping interval of a realtime connection; two unanswered pings close it'),
  realtimeIdleMs: durationMs.default(300_000).describe('Idle timeout of a realtime session'),
  realtimeAgeMs: durationMs.default(3_480_000).describe('Maximum duration of a realtime session'),
})

const share = numberFrom(0.01, 1)
const delayMs = integer({ min: 5, max: 10_000 })

/** Load shedding: when requests are refused before any work is done for them. */
const admission = settings({
  concurrentRequests: count.default(10_000).describe('Concurrent requests, including open streams and sockets'),
  bytesInFlight: bytes
    .default(314_572_800)
    .describe('Total of request bodies in memory and responses buffered for slow clients'),
  callerShare: share
    .default(0.5)
    .describe(
      'Share of `admission.bytesInFlight` that one caller may hold, and of realtime sessions and callbacks; of requests, document processes and fetches while others ask; `1` = all',
    ),
  loopDelayHighMs: delayMs
    .default(100)
    .describe('Event loop delay in milliseconds above which new requests are refused'),
  loopDelayLowMs: delayMs
    .default(5)
    .describe('Event loop delay below which requests are admitted again; below `admission.loopDelayHighMs`'),
  memoryBytes: integer({ min: 67_108_864 })
    .exactOptional()
    .describe('Memory the gateway may use; absent = that of the container or machine minus the document processes'),
  memoryHighShare: share
    .default(0.9)
    .describe('Share of that memory, and of the JavaScript heap, above which requests are refused'),
  memoryLowShare: share
    .default(0.8)
    .describe('Share below which requests are admitted again; below `admission.memoryHighShare`'),
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
        'Private addresses that URLs from callers and upstream responses may lead to, for tests; see [below](#security-notes); must be empty when `NODE_ENV=production`',
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
  maxConnections: integer({ min: 1, max: 1000 }).default(10).describe('PostgreSQL connections per replica'),
})

/** Redis, in which limits are counted for all replicas together. */
const redis = settings({
  url: connectionUrl('redis', 'rediss')
    .exactOptional()
    .describe(
      'Redis in which limits are counted for all replicas; absent = each process counts for itself, and limits in the configuration allow only one worker. See [limits.md](limits.md)',
    ),
  timeoutMs: integer({ min: 1, max: 10_000 })
    .default(250)
    .describe(
      'Timeout of a Redis command; beyond it this process counts by itself. Up to eight times as long while replies come late, as on a busy machine',
    ),
  localShare: positiveNumber
    .refine((value) => value <= 1, 'must be a number > 0, at most 1')
    .meta({ type: 'above 0, at most 1' })
    .default(0.5)
    .describe('The part of each limit that one replica allows while Redis is unavailable'),
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
  metricsHost: hostName
    .default('127.0.0.1')
    .describe('Address of `/metrics`, which needs no key. In the image the default is `0.0.0.0`'),
  otlpUrl: address('http', 'https')
    .exactOptional()
    .describe(
      'Trace collector (OTLP/HTTP with JSON); `/v1/traces` is appended. Absent = no tracing. See [metrics.md](metrics.md#traces)',
    ),
  otlpHeaders: headers.prefault({}).describe('Headers sent to the collector, such as its credentials'),
  traceSampleRatio: numberFrom(0, 1)
    .default(1)
    .describe('Sampled share of the traces that begin here; with `traceparent` a caller with a key decides'),
})

/** Any model behind any dialect (docs/dialects.md). */
const dialects = settings({
  translate: oneOf(['off', 'on'])
    .default('off')
    .describe(
      'Whether chat, messages and responses requests are translated for models whose upstreams do not speak these dialects; `off` = such models are unknown there',
    ),
  rememberThinking: boolean
    .default(true)
    .describe(
      'What a model thought before it called tools is remembered for an hour, for clients that do not send it back',
    ),
  keepResponses: boolean
    .default(true)
    .describe(
      'Responses of translated models are kept in the store for 30 days unless their request says `store: false`; `false` = none are',
    ),
  secret: z
    .string()
    .min(32, 'must have at least 32 characters')
    .meta({ type: 'text of at least 32 characters', secret: true })
    .exactOptional()
    .describe(
      'Seals what clients keep for the gateway, such as encrypted reasoning; the same for all replicas. Absent = drawn by each process at its start',
    ),
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
    dialects: dialects.prefault({}),
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
    // Without Redis each worker allows its part of a limit, but at least 1.
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

/** Limits and timeouts of one realtime session. */
export type RealtimeLimits = Omit<RealtimeOf<LimitsSection>, 'realtimeSessions'> & RealtimeOf<TimeoutsSection>
type RealtimeOf<T> = Pick<T, Extract<keyof T, `realtime${string}`>>
