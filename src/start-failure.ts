import { WorkersRefused } from './app/cluster-messages.js'
import { ConfigError } from './config/config-fault.js'
import { MetricsPortInUse } from './observability/metrics-server.js'
import { StoreUnusable } from './storage/store-unusable.js'

/** Their messages tell the operator what to do. */
const EXPLAINED = [ConfigError, StoreUnusable, MetricsPortInUse, WorkersRefused] as const

/** Why the gateway could not start, for the operator. */
export function explainStartFailure(error: unknown): string {
  if (error instanceof Error && EXPLAINED.some((type) => error instanceof type)) return error.message
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    return 'The port is in use. Choose another with PORT=<number>.'
  }
  return `The gateway could not start: ${error instanceof Error ? (error.stack ?? error.message) : 'unknown error'}`
}
