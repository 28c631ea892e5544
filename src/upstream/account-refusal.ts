import type { ErrorKind } from '../core/errors.js'
import { type FailedAttempt, GatewayError } from '../core/gateway-error.js'

/**
 * What about the account behind the key that was sent stood in the way: `key` = the key itself, `access` = what it may
 * ask for, `quota` = its balance, `busy` = its limits for the moment.
 */
export type AccountFault = 'key' | 'access' | 'quota' | 'busy'

export interface AccountRefusalDetails {
  /** For the log only. */
  readonly cause?: unknown
  /** With `busy` alone; default 1. */
  readonly retryAfterSeconds?: number
  /** How far the attempt went; default `answered`. */
  readonly phase?: FailedAttempt['phase']
}

/**
 * The failure that such a fault is. The caller's own key is the caller's to know about, and says nothing about the
 * channel; the channel's own is the operator's: the caller never hears of it, and no retry of the caller's helps unless
 * the upstream is only busy.
 */
export function accountRefusal(
  fault: AccountFault,
  callersKey: boolean,
  { cause, phase = 'answered', retryAfterSeconds = 1 }: AccountRefusalDetails = {},
): GatewayError {
  const [kind, message, more] = callersKey ? OF_CALLER[fault] : fault === 'busy' ? BUSY_CHANNEL : REFUSED_CHANNEL
  return new GatewayError(kind, message, {
    attempt: callersKey ? { phase } : { phase, channelFault: true },
    ...more,
    ...(fault === 'busy' ? { retryAfterSeconds } : {}),
    ...(cause === undefined ? {} : { cause }),
  })
}

type Row = readonly [ErrorKind, message: string, more: { readonly code?: string; readonly retryable?: false }]

const OF_CALLER: Readonly<Record<AccountFault, Row>> = {
  key: ['unauthorized', 'The upstream does not accept this API key.', {}],
  access: ['forbidden_model', 'This API key has no access to what was asked for at the upstream.', {}],
  quota: [
    'rate_limited',
    'The account behind this API key has no quota left at the upstream.',
    { code: 'insufficient_quota', retryable: false },
  ],
  busy: ['rate_limited', 'The upstream limits this API key.', {}],
}

const REFUSED_CHANNEL: Row = [
  'upstream_failed',
  'The upstream does not serve this gateway at the moment.',
  { retryable: false },
]

const BUSY_CHANNEL: Row = ['rate_limited', 'The upstream is busy. Please try again later.', {}]
