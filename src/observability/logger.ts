import { readFileSync } from 'node:fs'
import type { LoggerService } from '@nestjs/common'
import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino'
import type { LogLevel } from '../config/settings.js'
import { scrubMessage } from '../core/errors.js'
import { BatchedOutput } from './log-writer.js'

/** Of this gateway, as `package.json` has it. */
export function gatewayVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}

export type Logger = PinoLogger

const STANDARD_OUTPUT = 1

/** Where finished lines go; anything that writes text. */
export interface LineSink {
  write(line: string): void
}

export interface Logging {
  readonly logger: Logger
  /** For the one line per request, which is written past pino: assembling it there costs a tenth of a relayed call. */
  readonly sink: LineSink
}

/**
 * JSON lines, by default on standard output. No secret is ever handed in: lines have fixed fields, configurations and
 * headers are never logged, and error texts, the one thing from outside, are scrubbed by `describeError`. (Redaction by
 * listed paths would miss what stands elsewhere and costs a tenth of a relayed call.)
 */
export function createLogging(level: LogLevel, sink: LineSink = new BatchedOutput(STANDARD_OUTPUT)): Logging {
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

/** Nest's own messages as lines of our log; its start-up chatter only at debug level. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown): void {
    this.logger.debug(String(message))
  }

  error(message: unknown): void {
    this.logger.error(String(message))
  }

  warn(message: unknown): void {
    this.logger.warn(String(message))
  }

  debug(message: unknown): void {
    this.logger.debug(String(message))
  }

  verbose(message: unknown): void {
    this.logger.trace(String(message))
  }
}
