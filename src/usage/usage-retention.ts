import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { Database } from '../common/database/database.js'
import { HourlySweep } from '../common/database/hourly-sweep.js'
import type { Logger } from '../common/observability/logger.js'
import { LOGGER } from '../common/observability/observability.module.js'
import { ConfigStore } from '../config/config-store.js'
import { UsageRepository } from './usage.repository.js'

const BATCH_ROWS = 1000

/** Forgets records that are older than the operator keeps them. */
@Injectable()
export class UsageRetention implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly sweep: HourlySweep
  private stopping: Promise<void> | undefined

  constructor(
    records: UsageRepository,
    private readonly database: Database,
    store: ConfigStore,
    @Inject(LOGGER) logger: Logger,
  ) {
    const prune = (limit: number): Promise<number> => records.prune(Date.now() - store.current.usage.retentionMs, limit)
    const failure = 'old usage records could not be deleted'
    this.sweep = new HourlySweep({ prune, batchRows: BATCH_ROWS, failure }, logger)
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.sweep.start()
    })
  }

  onModuleDestroy(): void {
    this.stopping ??= this.sweep.stop()
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.stopping
  }
}
