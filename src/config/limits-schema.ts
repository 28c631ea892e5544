import type { AuthSection, KeyLimits } from './access-config.js'
import { mapOf } from './checks.js'
import { FAULTED } from './config-fault.js'
import { integer, positiveNumber } from './scalar-schemas.js'
import { type Cursor, optional, type Schema, withDefault } from './schema-schema.js'
import type { GatewayConfig, RedisSection } from './settings.js'
import { connectionUrl } from './value-types.js'

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
