import type { KeyLimits } from '../config/settings.js'
import type { Dialect } from '../core/endpoint.js'
import { GatewayError } from '../core/errors.js'
import { COUNT, described, type Schema } from '../core/json-schema.js'
import {
  CONCURRENCY_LIMITS,
  type ConcurrencyLimitName,
  type LimitName,
  MINUTE_LIMIT_NAMES,
  MINUTE_LIMITS,
  type MinuteLimitName,
} from '../core/quota.js'
import type { WindowState } from './counters.js'

/** Last seen states of open windows. */
interface WindowLookup {
  lastSeen(name: MinuteLimitName): WindowState | undefined
}

/** The names of three headers. */
interface HeaderNames {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

type FamilyNames = Readonly<Record<MinuteLimitName, HeaderNames | undefined>>

const namesOf = (header: (word: string, part: string) => string, names: readonly MinuteLimitName[]): FamilyNames =>
  Object.fromEntries(
    names.map((name) => {
      const { headerWord } = MINUTE_LIMITS[name]
      const part = (word: string): string => header(headerWord, word)
      return [name, { limit: part('limit'), remaining: part('remaining'), reset: part('reset') }]
    }),
  ) as FamilyNames

const COMMON_NAMES = namesOf((word, part) => `x-ratelimit-${part}-${word}`, MINUTE_LIMIT_NAMES)

/** The `messages` dialect has no header for audio. */
const MESSAGES_NAMES = namesOf(
  (word, part) => `anthropic-ratelimit-${word}-${part}`,
  ['requestsPerMinute', 'tokensPerMinute'],
)

const familyOf = (dialect: Dialect): FamilyNames => (dialect === 'messages' ? MESSAGES_NAMES : COMMON_NAMES)

/** The names of the rate limit headers that a dialect's answers may have. */
export const limitHeaderNames = (dialect: Dialect): readonly string[] =>
  MINUTE_LIMIT_NAMES.flatMap((name) => Object.values(familyOf(dialect)[name] ?? {}) as string[])

/** Every rate limit header, for the OpenAPI document. */
export const LIMIT_HEADERS: readonly { readonly name: string; readonly schema: Schema }[] = [
  { family: COMMON_NAMES, reset: 'Until all of it is there again, as in 250ms, 12s or 1m0s' },
  { family: MESSAGES_NAMES, reset: 'When all of it is there again (RFC 3339)' },
].flatMap(({ family, reset }) =>
  MINUTE_LIMIT_NAMES.flatMap((name) => {
    const names = family[name]
    const { words } = MINUTE_LIMITS[name]
    if (names === undefined) return []
    return [
      { name: names.limit, schema: described(`The limit of the key: ${words}`, COUNT) },
      { name: names.remaining, schema: described(`What is left of it: ${words}`, COUNT) },
      { name: names.reset, schema: described(reset) },
    ]
  }),
)

/** Adds the rate limit headers of a dialect to the response headers. */
export function writeLimitHeaders(
  headers: Record<string, unknown>,
  dialect: Dialect,
  limits: KeyLimits,
  windows: WindowLookup,
): void {
  const isMessages = dialect === 'messages'
  const family = familyOf(dialect)
  for (const name of MINUTE_LIMIT_NAMES) {
    const limit = limits[name]
    const names = family[name]
    if (limit === undefined || names === undefined) continue
    const state = windows.lastSeen(name)
    const resetMs = resetMsOf(state)
    headers[names.limit] = String(limit)
    headers[names.remaining] = String(remainingOf(name, limit, state))
    headers[names.reset] = isMessages ? instant(resetMs) : upstreamDuration(resetMs)
  }
}

/** Headers in which upstreams report the limits of the gateway's account with them. Most others differ in their first letter. */
const UPSTREAM_LIMIT = /^(?:x-ratelimit-|anthropic-(?:ratelimit|priority)-)/

/**
 * Removes an upstream's rate limit headers from the response to a caller with limits of the gateway: they concern an
 * account that many callers share, and would be mistaken for the caller's.
 */
export function dropUpstreamLimits(headers: object): void {
  for (const name in headers) if (UPSTREAM_LIMIT.test(name)) Reflect.deleteProperty(headers, name)
}

/** The remaining amount of a limit, in its own unit. */
export function remainingOf(name: MinuteLimitName, limit: number, state: WindowState | undefined): number {
  if (state === undefined) return limit
  return Math.max(0, Math.floor((state.allowed - state.used) / MINUTE_LIMITS[name].pointsPerUnit))
}

export const resetMsOf = (state: WindowState | undefined): number =>
  state === undefined ? 0 : Math.max(0, Math.ceil(state.endsAtMs - performance.now()))

/** In OpenAI's format: `250ms`, `12s`, `1m0s`. */
export function upstreamDuration(milliseconds: number): string {
  if (milliseconds <= 0) return '0s'
  if (milliseconds < 1000) return `${milliseconds}ms`
  const seconds = Math.ceil(milliseconds / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/** RFC 3339, whole seconds, never too early. */
function instant(milliseconds: number): string {
  const seconds = Math.ceil((Date.now() + milliseconds) / 1000)
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}

interface LimitOwner {
  readonly limits: KeyLimits
  readonly scope: string
}

const MAXIMUM_RETRY_AFTER_SECONDS = 60

/** By then a request in progress may have ended. */
const CONCURRENCY_RETRY_AFTER_SECONDS = 1

/** Whole seconds until a window ends, within the limits of `Retry-After`. */
const secondsOf = (resetMs: number): number =>
  Math.min(MAXIMUM_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(resetMs / 1000)))

export const exhaustedMessage = (name: MinuteLimitName, owner: LimitOwner, resetMs: number): string =>
  `${describe(name, owner)} is used up. It is reset in ${secondsOf(resetMs)} s.`

/** The error for an amount above the remaining one of this minute. */
export function windowRefusal(name: MinuteLimitName, owner: LimitOwner & WindowLookup, asked: number): GatewayError {
  const state = owner.lastSeen(name)
  const resetMs = resetMsOf(state)
  const remaining = remainingOf(name, owner.limits[name] ?? 0, state)
  const message =
    remaining === 0
      ? exhaustedMessage(name, owner, resetMs)
      : `${describe(name, owner)} has ${remaining} left, and this request expects to use ${asked}. ` +
        `It is reset in ${secondsOf(resetMs)} s.`
  return new GatewayError('rate_limited', message, { retryAfterSeconds: secondsOf(resetMs) })
}

/** The error for an amount above the whole limit: it tells clients that retry by themselves not to. */
export function neverFits(name: MinuteLimitName, owner: LimitOwner, asked: number): GatewayError {
  const message =
    `${describe(name, owner)} is less than the ${asked} that this request expects to use: it can never be served. ` +
    'Ask for less at once.'
  return new GatewayError('rate_limited', message, { code: 'request_exceeds_limit', retryable: false })
}

/** The error for a limit of concurrent requests or sessions that is reached. */
export function concurrencyRefusal(name: ConcurrencyLimitName, owner: LimitOwner): GatewayError {
  const message =
    `The limit of ${owner.limits[name]} ${CONCURRENCY_LIMITS[name].words} of this API key (${owner.scope}) is reached. ` +
    'Try again once one of them has ended.'
  return new GatewayError('rate_limited', message, {
    code: 'concurrency_limit_exceeded',
    retryAfterSeconds: CONCURRENCY_RETRY_AFTER_SECONDS,
  })
}

/** Value of `x-gateway-limit` for a refusal. */
export function shownRefusal(name: LimitName, scope: string, { details }: GatewayError): string {
  const reset = details.retryAfterSeconds === undefined ? '' : `; reset=${details.retryAfterSeconds}`
  return `${name}; scope=${scope}${reset}`
}

const describe = (name: MinuteLimitName, { limits, scope }: LimitOwner): string =>
  `The limit of ${limits[name]} ${MINUTE_LIMITS[name].words} of this API key (${scope})`
