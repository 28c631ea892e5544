import { setImmediate as nextTurn } from 'node:timers/promises'
import { type BeforeApplicationShutdown, Inject, Injectable, type OnModuleInit } from '@nestjs/common'
import { Database } from '../database/database.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { AdminAuditRepository } from './admin-audit.repository.js'

const SWEEP_EVERY_MS = 3_600_000
const BATCH_ROWS = 500

/** Longer than a year: whoever looks once a year finds everything. */
const RETENTION_MS = 400 * 86_400_000

/** Forgets what the audit log holds of long ago. */
@Injectable()
export class AuditRetention implements OnModuleInit, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined
  private sweeping: Promise<void> = Promise.resolve()
  private isStopping = false

  constructor(
    private readonly database: Database,
    private readonly audit: AdminAuditRepository,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.database.whenOpen(() => {
      if (this.isStopping) return
      const sweep = (): void => {
        this.sweeping = this.sweep()
      }
      this.timer = setInterval(sweep, SWEEP_EVERY_MS)
      this.timer.unref()
      sweep()
    })
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true
    clearInterval(this.timer)
    await this.sweeping
  }

  /** Never rejects: what is left is deleted an hour later. */
  private async sweep(): Promise<void> {
    try {
      const beforeMs = Date.now() - RETENTION_MS
      while (!this.isStopping && (await this.audit.prune(beforeMs, BATCH_ROWS)) > 0) await nextTurn()
    } catch (error) {
      this.logger.warn({ err: error }, 'the audit log could not be cut')
    }
  }
}
