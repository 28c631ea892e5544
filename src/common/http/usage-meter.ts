import { GatewayError } from '../errors/gateway-error.js'
import type { CallLog } from './call.js'

/** Told when a call is over, before anybody reads its log: what was counted stands in for what was not reported. */
export function settleUsage(log: CallLog): void {
  if (log.usage === undefined && log.meter !== undefined) log.usage = log.meter.usageSoFar()
}

/** An attempt that failed before its first byte has given nothing; a caller who left had the upstream work all the same. */
export function forgetUsage(log: CallLog, error: unknown): void {
  if (error instanceof GatewayError && error.kind === 'caller_left') return
  log.usage = undefined
  log.meter = undefined
  log.estimate = undefined
}
