import { setImmediate as nextTurn } from 'node:timers/promises'
import { type BeforeApplicationShutdown, Inject, Injectable, type OnModuleInit } from '@nestjs/common'
import { Database } from '../common/database/database.js'
import type { Logger } from '../common/observability/logger.js'
import { LOGGER } from '../common/observability/observability.module.js'
import { ConfigStore } from '../config/config-store.js'
import { UsageRepository } from './usage.repository.js'

const SWEEP_EVERY_MS = 3_600_000

/** Deleted at once: few enough that nobody waits for the rows between two batches. */
const BATCH_ROWS = 1000

/** Forgets records that are older than the operator keeps them. */
@Injectable()
export class UsageRetention implements OnModuleInit, BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined
  private sweeping: Promise<void> = Promise.resolve()
  private isStopping = false

  constructor(
    private readonly records: UsageRepository,
    private readonly database: Database,
    private readonly store: ConfigStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.database.whenOpen(() => {
      if (this.isStopping) return
      const sweep = (): void => {
        this.sweeping = this.sweep()
      }
      this.timer = setInterval(sweep, SWEEP_EVERY_MS).unref()
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
      const beforeMs = Date.now() - this.store.current.usage.retentionMs
      while (!this.isStopping && (await this.records.prune(beforeMs, BATCH_ROWS)) === BATCH_ROWS) await nextTurn()
    } catch (error) {
      this.logger.warn({ err: error }, 'old usage records could not be deleted')
    }
  }
}
