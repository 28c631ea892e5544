import { GatewayError } from './gateway-error.js'
import type { CallLog } from './request-context.js'

/**
 * Told when a call is over, before anybody reads its log: what was counted stands in for what was not reported, and
 * beside what was.
 */
export function settleUsage(log: CallLog): void {
  const { meter } = log
  if (meter === undefined) return
  if (log.usage === undefined) log.usage = meter.usageSoFar()
  else log.estimate ??= meter.counted?.()
}

/** An attempt that failed before its first byte has given nothing; a caller who left had the upstream work all the same. */
export function forgetUsage(log: CallLog, error: unknown): void {
  if (error instanceof GatewayError && error.kind === 'caller_left') return
  log.usage = undefined
  log.meter = undefined
  log.estimate = undefined
}
