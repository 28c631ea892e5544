import { setTimeout as pause } from 'node:timers/promises'
import { isNativeError } from 'node:util/types'
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError, hasCode } from '../core/errors.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { DiskBuffer, linesOf, recordOfRow } from './disk-buffer.js'
import { DroppedUsage } from './usage-metrics.js'
import { UsageRepository } from './usage.repository.js'

const FIRST_RETRY_MS = 500
const MAXIMUM_RETRY_MS = 15_000

/** SQLSTATE: data exceptions and violated constraints. All other errors concern the server. */
const ROW_ERROR_CODES = /^2[23]/

/** Inserts records into the store, with retries until it has them. A record that was inserted before is ignored by its id. */
export class RecordDelivery {
  private stopAtMs = Infinity
  private wake = new AbortController()
  private isFailing = false

  constructor(
    private readonly records: UsageRepository,
    private readonly dropped: DroppedUsage,
    private readonly logger: Logger,
  ) {}

  /** Stops retries after this time, on the performance clock. A delivery that waits for its next attempt makes it now. */
  stop(atMs: number): void {
    this.stopAtMs = atMs
    this.wake.abort()
  }

  /** Resolves with the records that could not be delivered in time, none before `stop`; never rejects. */
  async deliver(batch: readonly UsageRecord[]): Promise<readonly UsageRecord[]> {
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, MAXIMUM_RETRY_MS)) {
      try {
        await this.records.insert(batch)
        this.isFailing = false
        return []
      } catch (error) {
        if (isRowError(error)) return this.deliverHalves(batch, error)
        this.log(error)
        if (performance.now() + retryMs >= this.stopAtMs) return batch
        await this.pauseFor(retryMs)
      }
    }
  }

  /** Splits the batch, so that one refused row does not hold back the others. */
  private async deliverHalves(batch: readonly UsageRecord[], error: unknown): Promise<readonly UsageRecord[]> {
    const [record] = batch
    if (batch.length === 1 && record !== undefined) {
      this.logger.error({ err: error }, 'a usage record was refused by the store')
      this.dropped.log('refused', [record])
      return []
    }
    const middle = Math.ceil(batch.length / 2)
    const undelivered = await this.deliver(batch.slice(0, middle))
    return [...undelivered, ...(await this.deliver(batch.slice(middle)))]
  }

  /** An outage is logged by the database layer. */
  private log(error: unknown): void {
    const isUnavailable = error instanceof GatewayError && error.kind === 'overloaded'
    if (!isUnavailable && !this.isFailing) this.logger.warn({ err: error }, 'usage waits: the store does not take it')
    this.isFailing = !isUnavailable
  }

  private async pauseFor(milliseconds: number): Promise<void> {
    this.wake = new AbortController()
    if (this.stopAtMs !== Infinity) return pause(milliseconds)
    await pause(milliseconds, undefined, { signal: this.wake.signal, ref: false }).catch(() => undefined)
  }
}

const isRowError = (error: unknown): boolean =>
  isNativeError(error) && 'code' in error && typeof error.code === 'string' && ROW_ERROR_CODES.test(error.code)

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
    dropped: DroppedUsage,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.delivery = new RecordDelivery(records, dropped, logger)
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
