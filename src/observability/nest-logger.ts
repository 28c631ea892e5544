import type { LoggerService } from '@nestjs/common'
import type { Logger } from './logger.js'

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
