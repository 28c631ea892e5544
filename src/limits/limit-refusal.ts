import type { KeyLimits } from '../config/access-config.js'
import { GatewayError } from '../core/gateway-error.js'
import {
  HELD_LIMITS,
  type HeldLimitName,
  type LimitName,
  MINUTE_LIMITS,
  type MinuteLimitName,
} from '../core/limit-names.js'
import { remainingOf, resetMsOf, type WindowLookup } from './limit-errors.js'

/** Whose limits they are. */
interface LimitOwner {
  readonly limits: KeyLimits
  readonly scope: string
}

const LONGEST_RETRY_AFTER_SECONDS = 60

/** When something under way may have ended. */
const HELD_RETRY_AFTER_SECONDS = 1

/** Whole seconds until a window ends, as `Retry-After` may say it. */
const secondsOf = (resetMs: number): number =>
  Math.min(LONGEST_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(resetMs / 1000)))

export const spentMessage = (name: MinuteLimitName, owner: LimitOwner, resetMs: number): string =>
  `${describe(name, owner)} is used up. It is reset in ${secondsOf(resetMs)} s.`

/** Too much for what is left of this minute. */
export function windowRefusal(name: MinuteLimitName, owner: LimitOwner & WindowLookup, asked: number): GatewayError {
  const state = owner.lastSeen(name)
  const resetMs = resetMsOf(state)
  const remaining = remainingOf(name, owner.limits[name] ?? 0, state)
  const message =
    remaining === 0
      ? spentMessage(name, owner, resetMs)
      : `${describe(name, owner)} has ${remaining} left, and this request expects to use ${asked}. ` +
        `It is reset in ${secondsOf(resetMs)} s.`
  return new GatewayError('rate_limited', message, { retryAfterSeconds: secondsOf(resetMs) })
}

/** More than a whole minute allows: trying again is of no use, and a client that does so by itself must be told. */
export function neverFits(name: MinuteLimitName, owner: LimitOwner, asked: number): GatewayError {
  const message =
    `${describe(name, owner)} is less than the ${asked} that this request expects to use: it can never be served. ` +
    'Ask for less at once.'
  return new GatewayError('rate_limited', message, { code: 'request_exceeds_limit', retryable: false })
}

/** As many under way as the limit allows. */
export function heldRefusal(name: HeldLimitName, owner: LimitOwner): GatewayError {
  const message =
    `The limit of ${owner.limits[name]} ${HELD_LIMITS[name].words} of this API key (${owner.scope}) is reached. ` +
    'Try again once one of them has ended.'
  return new GatewayError('rate_limited', message, {
    code: 'concurrency_limit_exceeded',
    retryAfterSeconds: HELD_RETRY_AFTER_SECONDS,
  })
}

/** A refusal as `x-gateway-limit` has it. */
export function shownRefusal(name: LimitName, scope: string, { details }: GatewayError): string {
  const reset = details.retryAfterSeconds === undefined ? '' : `; reset=${details.retryAfterSeconds}`
  return `${name}; scope=${scope}${reset}`
}

const describe = (name: MinuteLimitName, { limits, scope }: LimitOwner): string =>
  `The limit of ${limits[name]} ${MINUTE_LIMITS[name].words} of this API key (${scope})`
