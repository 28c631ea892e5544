import { setTimeout as pause } from 'node:timers/promises'
import { Inject, Injectable, type OnModuleInit, Optional } from '@nestjs/common'
import { Database } from '../common/database/database.js'
import { GatewayError } from '../common/errors/gateway-error.js'
import type { Logger } from '../common/observability/logger.js'
import { LOGGER } from '../common/observability/observability.module.js'
import { ConfigStore } from '../config/config-store.js'
import { storesUsage } from './stored-usage.js'
import { type DropReason, UsageMetrics } from './usage-metrics.js'
import type { UsageRecord } from './usage-record.js'
import { UsageRepository } from './usage.repository.js'

const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 15_000

/** Kept where nobody has asked for a store so far: enough to look at, too few to weigh on anybody's memory. */
const UNWANTED_ROWS = 1000

/** Who asks for sums waits so long for what was just noted. */
const FLUSH_MS = 2000

/** Of the shutdown: a store that is away then does not come back in time. */
const LAST_WRITES_MS = 5000

/**
 * Writes records behind the calls they are about: a batch at a time, again until the store has taken it. The queue is
 * bounded: when it is full, the oldest records go to the log instead of the store.
 */
@Injectable()
export class UsageWriter implements OnModuleInit {
  private readonly queue: UsageRecord[] = []
  private inFlight: readonly UsageRecord[] = []
  private work: Promise<void> | undefined
  private isOpen = false
  /** Somebody has asked for usage: from then on it is stored, whoever opened the store. */
  private isAskedFor = false
  private stopAtMs: number | undefined
  private wake = new AbortController()
  private hasToldOfOverflow = false

  constructor(
    private readonly records: UsageRepository,
    private readonly database: Database,
    private readonly store: ConfigStore,
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
    /** Given by tests only. */
    @Optional() private readonly lastWritesMs = LAST_WRITES_MS,
  ) {
    metrics.watchQueue(() => this.queue.length + this.inFlight.length)
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.isOpen = true
      this.begin()
    })
  }

  /** Never waits, never throws. Less than a batch waits for `begin`. */
  add(records: readonly UsageRecord[]): void {
    if (this.store.current.usage.store === false) return
    this.queue.push(...records)
    const { queueRows } = this.store.current.usage
    const excess = this.queue.length - (this.mayWrite ? queueRows : Math.min(queueRows, UNWANTED_ROWS))
    if (excess > 0) this.overflow(this.queue.splice(0, excess))
    if (this.queue.length >= this.store.current.usage.batchRows) this.begin()
  }

  /** Opens the store and resolves once it has what was added, or after two seconds. Rejects as opening it does. */
  async flush(): Promise<void> {
    this.isAskedFor = true
    await this.records.open()
    this.begin()
    if (this.work !== undefined) await inTime(this.work, FLUSH_MS)
  }

  /** Resolves once everything is written, or has gone to the log because the store did not take it in time. */
  async stop(): Promise<void> {
    this.stopAtMs = performance.now() + this.lastWritesMs
    this.wake.abort()
    this.begin()
    if (this.work !== undefined) await inTime(this.work, this.lastWritesMs)
    if (this.mayWrite) this.giveUp([...this.inFlight, ...this.queue.splice(0)], 'shutdown')
  }

  /** Nobody opens an embedded store for the sake of a chat call. */
  private get mayWrite(): boolean {
    return this.isOpen || this.isAskedFor || storesUsage(this.store.current)
  }

  /** Writes what waits, if it is to be written at all. */
  begin(): void {
    if (this.queue.length === 0 || this.work !== undefined || !this.mayWrite) return
    this.work = this.run().finally(() => {
      this.work = undefined
    })
  }

  private async run(): Promise<void> {
    while (this.queue.length > 0) {
      this.inFlight = this.queue.splice(0, this.store.current.usage.batchRows)
      await this.deliver(this.inFlight)
      this.inFlight = []
    }
  }

  /** Sent again while the store is away: by their ids, those it has taken before are not taken twice. */
  private async deliver(batch: readonly UsageRecord[]): Promise<void> {
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
      try {
        await this.records.insert(batch)
        return
      } catch (error) {
        if (!isAway(error)) {
          await this.deliverOneByOne(batch, error)
          return
        }
        if (this.stopAtMs !== undefined && performance.now() + retryMs >= this.stopAtMs) {
          this.giveUp(batch, 'shutdown')
          return
        }
        await this.rest(retryMs)
      }
    }
  }

  /** One row that the store does not take must not keep back the others. */
  private async deliverOneByOne(batch: readonly UsageRecord[], error: unknown): Promise<void> {
    if (batch.length === 1) {
      this.logger.error({ err: error }, 'a usage record was refused by the store')
      this.giveUp(batch, 'refused')
      return
    }
    const middle = Math.ceil(batch.length / 2)
    await this.deliver(batch.slice(0, middle))
    await this.deliver(batch.slice(middle))
  }

  private async rest(milliseconds: number): Promise<void> {
    this.wake = new AbortController()
    if (this.stopAtMs !== undefined) return pause(milliseconds)
    await pause(milliseconds, undefined, { signal: this.wake.signal, ref: false }).catch(() => undefined)
  }

  private overflow(oldest: readonly UsageRecord[]): void {
    if (this.mayWrite) {
      this.giveUp(oldest, 'overflow')
      return
    }
    // Nobody stores usage here: what was used stands in the log of the calls, and is not repeated for each of them.
    this.metrics.countDropped('overflow', oldest.length)
    if (!this.hasToldOfOverflow) this.logger.info('usage is not stored here: the oldest records are forgotten')
    this.hasToldOfOverflow = true
  }

  private giveUp(records: readonly UsageRecord[], reason: DropReason): void {
    if (records.length === 0) return
    this.metrics.countDropped(reason, records.length)
    for (const record of records) this.logger.warn({ reason, record }, 'usage')
  }
}

const isAway = (error: unknown): boolean => error instanceof GatewayError && error.kind === 'overloaded'

/** Waits for work that never rejects, but no longer than that. */
async function inTime(work: Promise<void>, milliseconds: number): Promise<void> {
  const timer = new AbortController()
  const late = pause(milliseconds, undefined, { signal: timer.signal }).catch(() => undefined)
  await Promise.race([work, late])
  timer.abort()
}
