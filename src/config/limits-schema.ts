import { FAULTED } from './config-fault.js'
import type { KeyLimits, RedisSection } from './gateway-config.js'
import { mapOf } from './schema/collection-schemas.js'
import { connectionUrl } from './schema/format-schemas.js'
import { integer, positiveNumber } from './schema/scalar-schemas.js'
import { optional, type Schema, withDefault } from './schema/schema.js'

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
