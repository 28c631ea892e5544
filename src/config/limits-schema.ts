import { type Cursor, FAULTED, mapOf, optional, recordOf, type Schema, withDefault } from './checks.js'
import type {
  AdmissionSection,
  AuthSection,
  GatewayConfig,
  KeyLimits,
  ObservabilitySection,
  RedisSection,
} from './settings.js'
import { address, connectionUrl, hostName, integer, numberFrom, positiveNumber, textMatching } from './value-types.js'

const fractionOfOne = numberFrom({ min: 0.01, max: 1 })
const delayMs = integer({ min: 5, max: 10_000 })

export const admission = mapOf<AdmissionSection>(
  {
    concurrentRequests: withDefault(integer({ min: 1, max: 1_000_000 }), 10_000),
    bytesInFlight: withDefault(integer({ min: 1 }), 314_572_800),
    callerShare: withDefault(fractionOfOne, 0.5),
    loopDelayHighMs: withDefault(delayMs, 100),
    loopDelayLowMs: withDefault(delayMs, 5),
    memoryBytes: optional(integer({ min: 67_108_864 })),
    memoryHighShare: withDefault(fractionOfOne, 0.9),
    memoryLowShare: withDefault(fractionOfOne, 0.8),
  },
  ({ loopDelayHighMs, loopDelayLowMs, memoryHighShare, memoryLowShare }, at) => {
    if (loopDelayHighMs !== undefined && loopDelayLowMs !== undefined && loopDelayLowMs >= loopDelayHighMs)
      at.field('loopDelayLowMs').fault('must be less than admission.loopDelayHighMs')
    if (memoryHighShare !== undefined && memoryLowShare !== undefined && memoryLowShare >= memoryHighShare)
      at.field('memoryLowShare').fault('must be less than admission.memoryHighShare')
  },
)

/** RFC 9110, section 5.1. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/

const headerValues = recordOf(
  textMatching(/^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/, 'must be 1 to 4096 printable ASCII characters'),
)

const headers: Schema<Readonly<Record<string, string>>> = {
  read(value, at) {
    const read = headerValues.read(value, at)
    if (read === FAULTED) return FAULTED
    if (Object.keys(read).every((name) => HEADER_NAME.test(name))) return read
    return at.fault('must hold names of headers')
  },
}

export const observability = mapOf<ObservabilitySection>({
  metricsHost: optional(hostName),
  otlpUrl: optional(address(['http', 'https'])),
  otlpHeaders: withDefault(headers, {}),
  traceSampleRatio: withDefault(numberFrom({ min: 0, max: 1 }), 1),
})

const perMinute = integer({ min: 1, max: 1_000_000_000 })
const atOnce = integer({ min: 1, max: 1_000_000 })

/** What one key may use. */
export const keyLimits = mapOf<KeyLimits>({
  requestsPerMinute: optional(perMinute),
  tokensPerMinute: optional(perMinute),
  audioSecondsPerMinute: optional(perMinute),
  concurrency: optional(atOnce),
  realtimeSessions: optional(atOnce),
})

const share: Schema<number> = {
  read(value, at) {
    const number = positiveNumber.read(value, at)
    return number === FAULTED || number <= 1 ? number : at.fault('must be a number > 0, at most 1')
  },
}

export const redisSection = mapOf<RedisSection>({
  url: optional(connectionUrl(['redis', 'rediss'])),
  timeoutMs: withDefault(integer({ min: 1, max: 10_000 }), 250),
  localShare: withDefault(share, 0.5),
})

const isLimited = (limits: KeyLimits | undefined): boolean =>
  limits !== undefined && Object.values(limits).some((limit) => limit !== undefined)

interface LimitedAuth extends Pick<AuthSection, 'defaultLimits'> {
  readonly keys: readonly { readonly limits?: KeyLimits }[]
}

/** Whether the configuration gives any key, or callers with bearers of their own, a limit. */
export const hasLimits = ({ keys, defaultLimits }: LimitedAuth): boolean =>
  isLimited(defaultLimits) || keys.some(({ limits }) => isLimited(limits))

interface LimitedSections extends Pick<GatewayConfig, 'server' | 'redis'> {
  readonly auth: LimitedAuth
}

export const LIMITS_NEED_REDIS =
  'server.workers must be 1, or redis.url must be set, where auth.defaultLimits or auth.keys[].limits are: ' +
  'workers count together in Redis alone'

/** Whether these processes would count limits by themselves: for what runs, or will. */
export function countApart({ server, auth, redis }: LimitedSections): boolean {
  return server.workers !== 'auto' && server.workers > 1 && redis.url === undefined && hasLimits(auth)
}

/** Workers that count by themselves grant a limit of 1 as often as there are workers, and only a part of any other. */
export function assertLimitsHold({ server, auth, redis }: Partial<LimitedSections>, at: Cursor): void {
  if (server === undefined || auth === undefined || redis === undefined) return
  if (countApart({ server, auth, redis })) at.field('server').field('workers').fault(LIMITS_NEED_REDIS)
}
