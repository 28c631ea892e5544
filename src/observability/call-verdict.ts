import type { ErrorKind } from '../core/errors.js'
import { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import type { CallOutcome } from './request-hooks.js'

/**
 * How a call ended, in one word: `ok`; `left` = its caller left; `refused` = by its own fault, or a limit's; `overloaded` =
 * the gateway had no room; `upstream_failed`; `gateway_failed`.
 */
export const CALL_VERDICTS = ['ok', 'left', 'refused', 'overloaded', 'upstream_failed', 'gateway_failed'] as const
export type CallVerdict = (typeof CALL_VERDICTS)[number]

const FIRST_ERROR = 400

/** Every other kind is the caller's fault, or a limit's. */
const VERDICTS: Partial<Record<ErrorKind, CallVerdict>> = {
  upstream_failed: 'upstream_failed',
  upstream_timeout: 'upstream_failed',
  overloaded: 'overloaded',
  internal: 'gateway_failed',
}

export function verdictOf({ log: { failure } }: Call, { status, left }: CallOutcome): CallVerdict {
  if (left) return 'left'
  if (failure === undefined) return status < FIRST_ERROR ? 'ok' : 'refused'
  return failure instanceof GatewayError ? (VERDICTS[failure.kind] ?? 'refused') : 'gateway_failed'
}
