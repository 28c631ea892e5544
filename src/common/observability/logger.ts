import { destination, type Logger, pino, stdTimeFunctions } from 'pino'
import type { LogLevel } from '../../config/gateway-config.js'
import { scrubMessage } from '../errors/message-text.js'

export type { Logger } from 'pino'

/** Lines are written in batches: one write per line would cost more than the rest of a relayed call's log. */
const BATCH_BYTES = 4096
const FLUSH_INTERVAL_MS = 250

/** Member names whose values are secrets wherever they stand. */
const SECRET_PATHS = ['authorization', 'credentials', 'secret', 'key', 'password', 'token', 'apiKey', 'bearer']

/** JSON lines on standard output. Redaction by path, and once more of every error text at the sink. */
export function createLogger(level: LogLevel): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      redact: { paths: SECRET_PATHS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
      serializers: { err: describeError },
    },
    destination({ dest: 1, sync: false, minLength: BATCH_BYTES, periodicFlush: FLUSH_INTERVAL_MS }),
  )
}

/** An error for the log: its own text and stack, scrubbed, and the chain of its causes without stacks. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: scrubMessage(String(error)) }
  const { cause } = error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return {
    type: error.name,
    message: scrubMessage(error.message),
    ...(code === undefined ? {} : { code }),
    ...(cause instanceof Error ? { cause: describeError(cause) } : { stack: scrubMessage(error.stack ?? '') }),
  }
}
