import type { BeforeApplicationShutdown, OnModuleDestroy, OnModuleInit } from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import type { Database } from './database.js'
import { HourlySweep, type Sweep } from './hourly-sweep.js'

/** Deletes old rows from the moment the store is open until the end of the process, which waits for the last batch. */
export abstract class Retention implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly sweep: HourlySweep
  private stopping: Promise<void> | undefined

  constructor(
    private readonly database: Database,
    what: Sweep,
    logger: Logger,
  ) {
    this.sweep = new HourlySweep(what, logger)
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
