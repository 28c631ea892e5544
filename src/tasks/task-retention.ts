import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { HourlySweep } from '../storage/hourly-sweep.js'
import { Clock } from './clock.js'
import { TaskRepository } from './task.repository.js'

const BATCH_ROWS = 500

/** Forgets ended tasks when their media is gone, and idempotency keys when they have expired. */
@Injectable()
export class TaskRetention {
  private readonly sweep: HourlySweep

  constructor(tasks: TaskRepository, store: ConfigStore, clock: Clock, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => {
      const nowMs = clock.nowMs()
      return tasks.prune(nowMs - store.current.tasks.retentionMs, nowMs, limit)
    }
    this.sweep = new HourlySweep({ prune, batchRows: BATCH_ROWS, failure: 'old tasks could not be deleted' }, logger)
  }

  start(): void {
    this.sweep.start()
  }

  async stop(): Promise<void> {
    await this.sweep.stop()
  }
}
