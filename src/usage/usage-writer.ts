import { Inject, Injectable, type OnModuleInit, Optional } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { settledWithin } from '../core/time.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { ShutdownBuffer } from './disk-buffer-shutdown.js'
import { DiskBufferWriter } from './disk-buffer-writer.js'
import { RecordDelivery } from './record-delivery.js'
import { storesUsage } from './usage-entry.js'
import { DroppedUsage, UsageMetrics } from './usage-metrics.js'
import { UsageRepository } from './usage.repository.js'

/** Records kept in memory while storage is off: enough for a first report. */
const PENDING_ROWS = 1000

/**
 * Records evicted at once. After a reload with a much smaller limit the queue shrinks step by step, so that the buffer
 * files have time to take most of them.
 */
const MAXIMUM_EVICTED_ROWS = 1000

/** How long a report waits for the newest records. */
const FLUSH_MS = 2000

/** At shutdown a store that is unavailable for longer is given up. */
const SHUTDOWN_TIMEOUT_MS = 5000

/**
 * Writes records to the store in the background, in batches, with retries. The queue is bounded: when it is full, the
 * oldest records go to the disk buffer.
 */
@Injectable()
export class UsageWriter implements OnModuleInit {
  private readonly queue: UsageRecord[] = []
  private inFlight: readonly UsageRecord[] = []
  private readonly delivery: RecordDelivery
  private writing: Promise<void> | undefined
  private isOpen = false
  /** Set by the first report: from then on usage is stored. */
  private isStored = false
  private hasLoggedDropped = false

  constructor(
    private readonly records: UsageRepository,
    private readonly database: Database,
    private readonly config: ConfigStore,
    metrics: UsageMetrics,
    private readonly shutdownBuffer: ShutdownBuffer,
    private readonly overflow: DiskBufferWriter,
    dropped: DroppedUsage,
    @Inject(LOGGER) private readonly logger: Logger,
    /** Set by tests only. */
    @Optional() private readonly shutdownTimeoutMs: number = SHUTDOWN_TIMEOUT_MS,
  ) {
    metrics.watchQueue(() => this.queue.length + this.inFlight.length + overflow.rows)
    this.delivery = new RecordDelivery(records, dropped, logger)
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.isOpen = true
      this.startWriting()
    })
  }

  /** Queues records; never waits, never throws. A partial batch is written at the next `startWriting`. */
  add(records: readonly UsageRecord[]): void {
    if (!this.isEnabled) return
    this.queue.push(...records)
    const excess = this.queue.length - (this.mayWrite ? this.config.current.usage.queueRows : this.pendingRows)
    if (excess > 0) this.evictOldest(Math.min(excess, MAXIMUM_EVICTED_ROWS))
    if (this.queue.length >= this.config.current.usage.batchRows) this.startWriting()
  }

  /**
   * Opens the store and resolves once it has the queued records and, where it was not open yet, those of the buffer
   * files; or after two seconds. Rejects when the store cannot be opened.
   */
  async flush(): Promise<void> {
    const wasClosed = !this.isOpen
    this.isStored = true
    await this.records.open()
    this.startWriting()
    const pending = wasClosed ? this.whenAllIsStored() : this.writing
    if (pending !== undefined) await settledWithin(pending, FLUSH_MS)
  }

  /** Resolves once everything is written, or buffered for the next start because the store did not take it in time. */
  async stop(): Promise<void> {
    this.delivery.stop(performance.now() + this.shutdownTimeoutMs)
    this.startWriting()
    await settledWithin(this.whenIdle(), this.shutdownTimeoutMs)
    this.persistRemaining()
  }

  /** Buffers all unwritten records for the next start; for the end of the process: synchronous. */
  persistRemaining(): void {
    const rest = [...this.overflow.takeUnwritten(), ...this.inFlight, ...this.queue.splice(0)]
    this.inFlight = []
    if (this.mayWrite) this.shutdownBuffer.keep(rest)
    else if (this.isEnabled) this.logDropped(this.shutdownBuffer.keepPending(rest, this.pendingRows))
  }

  /** Writes the queue, if usage is stored. */
  startWriting(): void {
    if (this.queue.length === 0 || this.writing !== undefined || !this.mayWrite) return
    this.writing = this.run().finally(() => {
      this.writing = undefined
    })
  }

  private async whenIdle(): Promise<void> {
    await this.writing
    await this.overflow.whenIdle()
  }

  private async whenAllIsStored(): Promise<void> {
    await this.writing
    await this.overflow.whenRestored()
  }

  /** Usage records alone are no reason to start the embedded database. */
  private get mayWrite(): boolean {
    return this.isOpen || this.isStored || storesUsage(this.config.current)
  }

  private get isEnabled(): boolean {
    return this.config.current.usage.store !== false
  }

  /** Limit of pending rows, in memory and in a file. */
  private get pendingRows(): number {
    return Math.min(this.config.current.usage.queueRows, PENDING_ROWS)
  }

  private async run(): Promise<void> {
    for (; this.queue.length > 0; this.queue.push(...this.overflow.reclaim())) await this.writeQueue()
    this.overflow.restore()
  }

  private async writeQueue(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, this.config.current.usage.batchRows)
      this.inFlight = batch
      const undelivered = await this.delivery.deliver(batch)
      // If `inFlight` changed, `persistRemaining` has already buffered this batch.
      if (this.inFlight === batch) this.shutdownBuffer.keep(undelivered)
      this.inFlight = []
    }
  }

  private evictOldest(excess: number): void {
    const oldest = this.queue.splice(0, excess)
    if (this.mayWrite) {
      this.overflow.add(oldest)
      return
    }
    this.logDropped(oldest.length)
  }

  /** Usage is not stored: the request log has it, and dropped records are logged once. */
  private logDropped(rows: number): void {
    if (rows === 0 || this.hasLoggedDropped) return
    this.logger.info('usage is not stored here: the oldest records are forgotten')
    this.hasLoggedDropped = true
  }
}
