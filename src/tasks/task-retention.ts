import { setImmediate as nextTurn } from 'node:timers/promises'
import { Inject, Injectable } from '@nestjs/common'
import type { Logger } from '../common/observability/logger.js'
import { LOGGER } from '../common/observability/observability.module.js'
import { ConfigStore } from '../config/config-store.js'
import { Clock } from './clock.js'
import { TaskRepository } from './task.repository.js'

const SWEEP_EVERY_MS = 3_600_000

/** Deleted at once: few enough that nobody waits for the rows between two batches. */
const BATCH_ROWS = 500

/** Forgets ended tasks when their media is gone, and idempotency keys when they have expired. */
@Injectable()
export class TaskRetention {
  private timer: NodeJS.Timeout | undefined
  private sweeping: Promise<void> = Promise.resolve()
  private isStopping = false

  constructor(
    private readonly tasks: TaskRepository,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  start(): void {
    if (this.isStopping || this.timer !== undefined) return
    const sweep = (): void => {
      this.sweeping = this.sweep()
    }
    this.timer = setInterval(sweep, SWEEP_EVERY_MS)
    sweep()
  }

  async stop(): Promise<void> {
    this.isStopping = true
    clearInterval(this.timer)
    await this.sweeping
  }

  /** Never rejects: what is left is deleted an hour later. */
  private async sweep(): Promise<void> {
    try {
      const nowMs = this.clock.nowMs()
      const beforeMs = nowMs - this.store.current.tasks.retentionMs
      while (!this.isStopping && (await this.tasks.prune(beforeMs, nowMs, BATCH_ROWS)) > 0) await nextTurn()
    } catch (error) {
      this.logger.warn({ err: error }, 'old tasks could not be deleted')
    }
  }
}
