import { Inject, Injectable, type OnModuleInit, Optional } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { settledWithin } from '../core/time.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { ShutdownBuffer } from './disk-buffer-shutdown.js'
import { DiskBufferWriter } from './disk-buffer-writer.js'
import { RecordDelivery } from './usage-delivery.js'
import { storesUsage } from './usage-entry.js'
import { DroppedUsage, UsageMetrics } from './usage-metrics.js'
import { UsageRepository } from './usage.repository.js'

/** Kept where nobody has asked for a store so far: enough to look at, too few to weigh on anybody's memory or disk. */
const PENDING_ROWS = 1000

/**
 * Moved out of the queue in one go. A queue that a reload has made much smaller shrinks step by step: the files take what
 * comes in time, and what they cannot take is lost.
 */
const MOST_AT_ONCE = 1000

/** Who asks for sums waits so long for what was just noted. */
const FLUSH_MS = 2000

/** Of the shutdown: a store that is away then does not come back in time. */
const LAST_WRITES_MS = 5000

/**
 * Writes records behind the calls they are about: a batch at a time, again until the store has taken it. The queue is
 * bounded: when it is full, the oldest records wait elsewhere.
 */
@Injectable()
export class UsageWriter implements OnModuleInit {
  private readonly queue: UsageRecord[] = []
  private inFlight: readonly UsageRecord[] = []
  private readonly delivery: RecordDelivery
  private work: Promise<void> | undefined
  private isOpen = false
  /** Somebody has asked for usage: from then on it is stored, whoever opened the store. */
  private isStored = false
  private hasLoggedDropped = false

  constructor(
    private readonly records: UsageRepository,
    private readonly database: Database,
    private readonly store: ConfigStore,
    metrics: UsageMetrics,
    private readonly shutdownBuffer: ShutdownBuffer,
    private readonly overflow: DiskBufferWriter,
    lost: DroppedUsage,
    @Inject(LOGGER) private readonly logger: Logger,
    /** Given by tests only. */
    @Optional() private readonly lastWritesMs: number = LAST_WRITES_MS,
  ) {
    metrics.watchQueue(() => this.queue.length + this.inFlight.length + overflow.rows)
    this.delivery = new RecordDelivery(records, lost, logger)
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.isOpen = true
      this.begin()
    })
  }

  /** Never waits, never throws. Less than a batch waits for `begin`. */
  add(records: readonly UsageRecord[]): void {
    if (!this.isWanted) return
    this.queue.push(...records)
    const excess = this.queue.length - (this.mayWrite ? this.store.current.usage.queueRows : this.pendingRows)
    if (excess > 0) this.makeRoom(Math.min(excess, MOST_AT_ONCE))
    if (this.queue.length >= this.store.current.usage.batchRows) this.begin()
  }

  /**
   * Opens the store and resolves once it has what was added and, where it was not open yet, what earlier processes have
   * left; or after two seconds. Rejects as opening it does.
   */
  async flush(): Promise<void> {
    const wasClosed = !this.isOpen
    this.isStored = true
    await this.records.open()
    this.begin()
    const pending = wasClosed ? this.whenAllIsStored() : this.work
    if (pending !== undefined) await settledWithin(pending, FLUSH_MS)
  }

  /** Resolves once everything is written, or kept for the next start because the store did not take it in time. */
  async stop(): Promise<void> {
    this.delivery.stop(performance.now() + this.lastWritesMs)
    this.begin()
    await settledWithin(this.whenIdle(), this.lastWritesMs)
    this.keepRest()
  }

  /** What the store does not have by now is kept for the next start. For the very end: synchronous. */
  keepRest(): void {
    const rest = [...this.overflow.takeRest(), ...this.inFlight, ...this.queue.splice(0)]
    this.inFlight = []
    if (this.mayWrite) this.shutdownBuffer.keep(rest)
    else if (this.isWanted) this.logDropped(this.shutdownBuffer.keepPending(rest, this.pendingRows))
  }

  /** Writes what waits, if it is to be written at all. */
  begin(): void {
    if (this.queue.length === 0 || this.work !== undefined || !this.mayWrite) return
    this.work = this.run().finally(() => {
      this.work = undefined
    })
  }

  private async whenIdle(): Promise<void> {
    await this.work
    await this.overflow.whenIdle()
  }

  private async whenAllIsStored(): Promise<void> {
    await this.work
    await this.overflow.whenRestored()
  }

  /** Nobody opens an embedded store for the sake of a chat call. */
  private get mayWrite(): boolean {
    return this.isOpen || this.isStored || storesUsage(this.store.current)
  }

  private get isWanted(): boolean {
    return this.store.current.usage.store !== false
  }

  /** So many wait in memory, and in a file, for somebody to ask. */
  private get pendingRows(): number {
    return Math.min(this.store.current.usage.queueRows, PENDING_ROWS)
  }

  private async run(): Promise<void> {
    for (; this.queue.length > 0; this.queue.push(...this.overflow.reclaim())) await this.writeQueue()
    this.overflow.restore()
  }

  private async writeQueue(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, this.store.current.usage.batchRows)
      this.inFlight = batch
      const left = await this.delivery.deliver(batch)
      // Otherwise all of it is kept already.
      if (this.inFlight === batch) this.shutdownBuffer.keep(left)
      this.inFlight = []
    }
  }

  private makeRoom(excess: number): void {
    const oldest = this.queue.splice(0, excess)
    if (this.mayWrite) {
      this.overflow.add(oldest)
      return
    }
    this.logDropped(oldest.length)
  }

  /** Nobody stores usage here: what was used stands in the log of the calls, and is not repeated for each of them. */
  private logDropped(rows: number): void {
    if (rows === 0 || this.hasLoggedDropped) return
    this.logger.info('usage is not stored here: the oldest records are forgotten')
    this.hasLoggedDropped = true
  }
}
