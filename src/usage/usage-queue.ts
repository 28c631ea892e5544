import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import {
  type EndedTask,
  type SettledTask,
  type ResponseUsage,
  type UsageRecord,
  UsageRecorder,
} from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { PriceTable } from './prices.js'
import { RefusalEntries } from './refusals.js'
import {
  entryFromRequest,
  entryFromResponse,
  entryFromTask,
  type PricedUse,
  pricedUse,
  settledRecord,
  type UsageEntry,
} from './usage-entry.js'
import { UsageMetrics } from './usage-metrics.js'
import { UsageWriter } from './usage-writer.js'

/** Limit of models whose missing price was logged; more are neither remembered nor logged. */
const MAXIMUM_WARNINGS = 1000

/** Prices entries, counts them for the metrics, and makes records of them. */
@Injectable()
export class UsageSettlement {
  private readonly warnings = new Set<string>()
  private warnedModels: PriceTable | undefined

  constructor(
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Counts all entries; records are made where they are stored. Failures are logged. */
  settled(entries: readonly UsageEntry[], wantsRecords: boolean): readonly UsageRecord[] {
    const records: UsageRecord[] = []
    for (const entry of entries) {
      try {
        const use = pricedUse(entry)
        if (wantsRecords) records.push(settledRecord(entry, use))
        this.count(entry, use)
      } catch (error) {
        this.log(entry, error)
      }
    }
    return records
  }

  /** The record of an entry, not counted yet; undefined when it cannot be made, which is logged. */
  record(entry: UsageEntry): UsageRecord | undefined {
    try {
      return settledRecord(entry, pricedUse(entry))
    } catch (error) {
      this.log(entry, error)
      return undefined
    }
  }

  count(entry: UsageEntry, use: PricedUse): void {
    this.metrics.count(entry, use)
    // Without a price table no prices are expected, and no row of one has a price for what is not known.
    if (use.pricing !== 'unpriced' || entry.prices.isEmpty || entry.usage === undefined) return
    this.metrics.countUnpriced(entry)
    this.warn(entry, use)
  }

  private log({ requestId, model }: UsageEntry, error: unknown): void {
    this.logger.error({ err: error, requestId, model }, 'usage could not be recorded')
  }

  private warn({ model, channelId, kind, prices }: UsageEntry, { units }: PricedUse): void {
    // A new table may still have no price for a model.
    if (this.warnedModels !== prices) this.warnings.clear()
    this.warnedModels = prices
    const key = `${kind}\n${model ?? ''}`
    if (this.warnings.has(key) || this.warnings.size >= MAXIMUM_WARNINGS) return
    this.warnings.add(key)
    this.logger.warn({ model, channelId, kind, units }, 'no price for what was used; see prices in the configuration')
  }
}

/** Entries that are settled before the batch is full: thousands at once would delay requests under way by milliseconds. */
const SETTLE_EARLY_ENTRIES = 50

/**
 * Queues an entry for everything that was used, and makes records of them in batches between requests. Adding an entry
 * costs next to nothing, as every request pays for it.
 */
@Injectable()
export class UsageQueue
  extends UsageRecorder
  implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown
{
  private entries: UsageEntry[] = []
  private prices: PriceTable
  private timer: NodeJS.Timeout | undefined
  private readonly refusals = new RefusalEntries()
  private refusalTimer: NodeJS.Timeout | undefined
  private settling: NodeJS.Immediate | undefined
  private stopping: Promise<void> | undefined

  constructor(
    private readonly hooks: RequestHooks,
    private readonly store: ConfigStore,
    private readonly settlement: UsageSettlement,
    private readonly writer: UsageWriter,
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    super()
    this.prices = new PriceTable(store.current.prices)
    metrics.beforeCollect(() => {
      this.settle()
    })
  }

  onModuleInit(): void {
    this.hooks.onFinished((call, outcome) => {
      const entry = entryFromRequest(call, outcome, this.prices)
      if (entry === undefined) return
      if (entry.reason === undefined) this.add(entry)
      else this.addRefusal(entry)
    })
    this.hooks.onRepeated((call, outcome, times) => {
      const entry = entryFromRequest(call, outcome, this.prices)
      if (entry?.reason !== undefined) this.addRefusal(entry, times)
    })
    this.store.onChange(({ prices, channels }) => {
      this.settle()
      this.prices = new PriceTable(prices)
      this.metrics.forgetChannelsBut(channels.map(({ id }) => id))
    })
    // Before the log's own listener, as this one may log, and a slow reader may delay the log.
    process.prependListener('exit', this.persistRemaining)
  }

  /** The first of all shutdown hooks: entries are written in parallel with other work that ends. */
  onModuleDestroy(): void {
    this.settle()
    this.settleRefusals()
    clearTimeout(this.timer)
    this.stopping ??= this.writer.stop()
  }

  /** The store closes after this: no entry that was acknowledged is lost. */
  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.stopping
  }

  onApplicationShutdown(): void {
    this.persistRemaining()
    process.off('exit', this.persistRemaining)
  }

  override record(entry: ResponseUsage): void {
    const { call, channelId, model, kind, units, estimated } = entry
    const { requestId, caller } = call
    this.logger.info({ requestId, keyId: caller.keyId, channelId, model, kind, units, estimated }, 'usage')
    this.add(entryFromResponse(entry, this.prices))
  }

  override taskEnded(task: EndedTask): void {
    this.add(entryFromTask(task, this.prices))
  }

  override settleTask(task: EndedTask): SettledTask | undefined {
    const entry = entryFromTask(task, this.prices)
    const record = this.settlement.record(entry)
    if (record === undefined) return undefined
    return {
      record: this.wantsRecords ? record : undefined,
      whenWritten: () => {
        this.settlement.count(entry, record)
      },
    }
  }

  /** Passes all entries to the writer and waits for the store as `UsageWriter.flush` does. */
  async flush(): Promise<void> {
    this.settle()
    this.settleRefusals()
    await this.writer.flush()
  }

  private add(entry: UsageEntry): void {
    this.entries.push(entry)
    // After the stop there is no next batch.
    if (this.stopping !== undefined) this.write()
    else if (this.entries.length >= SETTLE_EARLY_ENTRIES) this.settling ??= setImmediate(this.settleSoon)
    else this.timer ??= setTimeout(this.write, this.store.current.usage.batchMs).unref()
  }

  /** Counted at once, and recorded with others of its kind once their minute is over. */
  private addRefusal(entry: UsageEntry, times = 1): void {
    this.metrics.countRefusal(entry, times)
    const complete = this.refusals.add(entry, times)
    if (complete.length > 0) {
      this.stopRefusalTimer()
      this.recordRefusals(complete)
      this.writer.startWriting()
    }
    if (this.stopping !== undefined) this.writeRefusals()
    else this.refusalTimer ??= setTimeout(this.writeRefusals, RefusalEntries.untilComplete(entry.atMs)).unref()
  }

  /** No call may follow that would have them written. */
  private readonly writeRefusals = (): void => {
    this.settleRefusals()
    this.writer.startWriting()
  }

  private settleRefusals(): void {
    this.stopRefusalTimer()
    this.recordRefusals(this.refusals.take())
  }

  /** That of an earlier minute would cut this one in two. */
  private stopRefusalTimer(): void {
    clearTimeout(this.refusalTimer)
    this.refusalTimer = undefined
  }

  private recordRefusals(entries: readonly UsageEntry[]): void {
    if (entries.length === 0 || !this.wantsRecords) return
    this.writer.add(entries.flatMap((entry) => this.settlement.record(entry) ?? []))
  }

  private readonly settleSoon = (): void => {
    this.settling = undefined
    this.settle()
  }

  private readonly write = (): void => {
    this.timer = undefined
    this.settle()
    this.writer.startWriting()
  }

  /** For the end of the process, regular or not: synchronous. */
  private readonly persistRemaining = (): void => {
    this.settle()
    this.settleRefusals()
    this.writer.persistRemaining()
  }

  private settle(): void {
    const { entries } = this
    if (entries.length === 0) return
    this.entries = []
    this.writer.add(this.settlement.settled(entries, this.wantsRecords))
  }

  private get wantsRecords(): boolean {
    return this.store.current.usage.store !== false
  }
}
