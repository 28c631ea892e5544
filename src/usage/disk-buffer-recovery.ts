import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { hasCode } from '../core/errors.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { linesOf, recordOfRow, DiskBuffer } from './disk-buffer.js'
import { RecordDelivery } from './usage-delivery.js'
import { DroppedUsage } from './usage-metrics.js'
import { UsageRepository } from './usage.repository.js'

/**
 * Stores the rows of buffer files once the store is open: those that earlier processes could not store or had not been
 * asked to store, and those that overflowed this process' queue. A file is removed once the store has all of it.
 */
@Injectable()
export class DiskBufferRecovery implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly delivery: RecordDelivery
  private recovery: Promise<void> = Promise.resolve()
  private isStopping = false

  constructor(
    records: UsageRepository,
    private readonly database: Database,
    private readonly store: ConfigStore,
    private readonly folder: DiskBuffer,
    lost: DroppedUsage,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.delivery = new RecordDelivery(records, lost, logger)
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.begin(() => this.folder.take(), false)
    })
  }

  /** Restores files of this process that are not written to any more. */
  restore(files: readonly string[]): void {
    this.begin(() => files, true)
  }

  /** A file that is being read is left for the next start. */
  onModuleDestroy(): void {
    this.isStopping = true
    this.delivery.stop(performance.now())
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.whenIdle()
  }

  /** Resolves when no file is being read; never rejects. */
  whenIdle(): Promise<void> {
    return this.recovery
  }

  /** Recoveries run one after the other. */
  private begin(take: () => readonly string[], areOwn: boolean): void {
    if (this.store.current.usage.store !== false) this.recovery = this.recovery.then(() => this.recover(take, areOwn))
  }

  /** Never rejects: a file that cannot be read stays where it is. */
  private async recover(take: () => readonly string[], areOwn: boolean): Promise<void> {
    if (this.isStopping) return
    try {
      for (const file of take()) {
        if (!(await this.settled(file, areOwn))) return
        await this.folder.discard(file)
      }
    } catch (error) {
      this.logger.error({ err: error, folder: this.folder.path }, 'usage that waits in files cannot be read')
    }
  }

  /** Whether the store has everything that can be read in the file. */
  private async restored(file: string, isOwn: boolean): Promise<boolean> {
    const { batchRows } = this.store.current.usage
    let rows = 0
    let unreadable = 0
    let batch: UsageRecord[] = []
    for await (const line of linesOf(file)) {
      const record = recordOfRow(line)
      if (record !== undefined) batch.push(record)
      else if (line !== '') unreadable++
      if (batch.length < batchRows) continue
      if (!(await this.delivered(batch))) return false
      rows += batch.length
      batch = []
    }
    if (!(await this.delivered(batch))) return false
    rows += batch.length
    if (unreadable > 0) this.logger.warn({ file, lines: unreadable }, 'lines of kept usage cannot be read: left out')
    this.logger.info(
      { file, rows },
      isOwn
        ? 'usage is stored that had no room in the queue'
        : 'usage is stored that an earlier process could not store any more',
    )
    return true
  }

  /** `restored`, also for a file that is gone: another process on the same folder has stored it meanwhile. */
  private async settled(file: string, isOwn: boolean): Promise<boolean> {
    try {
      return await this.restored(file, isOwn)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return true
      throw error
    }
  }

  private async delivered(batch: readonly UsageRecord[]): Promise<boolean> {
    if (this.isStopping) return false
    return batch.length === 0 || (await this.delivery.deliver(batch)).length === 0
  }
}
