import { destination, type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import type { LogLevel } from '../../config/gateway-config.js'
import { scrubMessage } from '../errors/message-text.js'

export type { Logger } from 'pino'

/** Lines are written in batches: one write per line would cost more than the rest of a relayed call's log. */
const BATCH_BYTES = 16_000
const FLUSH_INTERVAL_MS = 250

/** Where finished lines go; anything that writes text. */
export interface LineSink {
  write(line: string): void
}

export interface Logging {
  readonly logger: Logger
  /** For the one line per request, which is written past pino: assembling it there costs a tenth of a relayed call. */
  readonly sink: LineSink
}

const standardOutput = (): DestinationStream =>
  destination({ dest: 1, sync: false, minLength: BATCH_BYTES, periodicFlush: FLUSH_INTERVAL_MS })

/**
 * JSON lines, by default on standard output. No secret is ever handed in: lines have fixed fields, configurations and
 * headers are never logged, and error texts, the one thing from outside, are scrubbed by `describeError`. (Redaction by
 * listed paths would miss what stands elsewhere and costs a tenth of a relayed call.)
 */
export function createLogging(level: LogLevel, sink: DestinationStream = standardOutput()): Logging {
  const logger = pino(
    { level, base: null, timestamp: stdTimeFunctions.isoTime, serializers: { err: describeError } },
    sink,
  )
  return { logger, sink }
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
