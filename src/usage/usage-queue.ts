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
import { type PricedUse, pricedUse, settledRecord } from './priced-record.js'
import { PriceTable } from './prices.js'
import { entryFromResponse, entryFromRequest, entryFromTask, type UsageEntry } from './usage-entry.js'
import { UsageMetrics } from './usage-metrics.js'
import { UsageWriter } from './usage-writer.js'

/** Models that were said to have no price; more are not remembered, nor said. */
const MAXIMUM_WARNINGS = 1000

/** Prices what was noted, counts it for the metrics, and makes records of it. */
@Injectable()
export class UsageSettlement {
  private readonly warnings = new Set<string>()
  private warnedModels: PriceTable | undefined

  constructor(
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Counts all of them; the records are made where they are wanted. What cannot be done the log tells. */
  settled(notes: readonly UsageEntry[], wantsRecords: boolean): readonly UsageRecord[] {
    const records: UsageRecord[] = []
    for (const note of notes) {
      try {
        const use = pricedUse(note)
        if (wantsRecords) records.push(settledRecord(note, use))
        this.count(note, use)
      } catch (error) {
        this.log(note, error)
      }
    }
    return records
  }

  /** One that is not counted yet; undefined where none can be made, which the log tells. */
  record(note: UsageEntry): UsageRecord | undefined {
    try {
      return settledRecord(note, pricedUse(note))
    } catch (error) {
      this.log(note, error)
      return undefined
    }
  }

  count(note: UsageEntry, use: PricedUse): void {
    this.metrics.count(note, use)
    // Who has no table wants no prices.
    if (use.pricing !== 'unpriced' || note.prices.isEmpty) return
    this.metrics.countUnpriced(note)
    this.warn(note, use)
  }

  private log({ requestId, model }: UsageEntry, error: unknown): void {
    this.logger.error({ err: error, requestId, model }, 'usage could not be recorded')
  }

  private warn({ model, channelId, kind, prices }: UsageEntry, { units }: PricedUse): void {
    // What had no price before may still have none.
    if (this.warnedModels !== prices) this.warnings.clear()
    this.warnedModels = prices
    const key = `${kind}\n${model ?? ''}`
    if (this.warnings.has(key) || this.warnings.size >= MAXIMUM_WARNINGS) return
    this.warnings.add(key)
    this.logger.warn({ model, channelId, kind, units }, 'no price for what was used; see prices in the configuration')
  }
}

/** Not left to the end of the batch: thousands in one go would hold up the calls that are under way by milliseconds. */
const SETTLED_EARLY = 50

/**
 * Takes notes of everything that was used; between the calls, many at a time, records are made of them and handed to the
 * writer. Taking a note costs next to nothing, as every call pays for it.
 */
@Injectable()
export class UsageQueue
  extends UsageRecorder
  implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown
{
  private entries: UsageEntry[] = []
  private prices: PriceTable
  private timer: NodeJS.Timeout | undefined
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
      const note = entryFromRequest(call, outcome, this.prices)
      if (note !== undefined) this.add(note)
    })
    this.store.onChange(({ prices, channels }) => {
      this.settle()
      this.prices = new PriceTable(prices)
      this.metrics.forgetChannelsBut(channels.map(({ id }) => id))
    })
    // Before the log, which has to say it, and which a reader who stands still may hold up.
    process.prependListener('exit', this.keepRest)
  }

  /** The first of all hooks: what is noted is written while other work ends, and does not wait for it. */
  onModuleDestroy(): void {
    this.settle()
    clearTimeout(this.timer)
    this.stopping ??= this.writer.stop()
  }

  /** Nothing that was acknowledged is lost: the store closes after this. */
  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.stopping
  }

  onApplicationShutdown(): void {
    this.keepRest()
    process.off('exit', this.keepRest)
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
    const note = entryFromTask(task, this.prices)
    const record = this.settlement.record(note)
    if (record === undefined) return undefined
    return {
      record: this.wantsRecords ? record : undefined,
      whenWritten: () => {
        this.settlement.count(note, record)
      },
    }
  }

  /** Hands everything noted so far to the writer, and waits for it as the writer does. */
  async flush(): Promise<void> {
    this.settle()
    await this.writer.flush()
  }

  private add(note: UsageEntry): void {
    this.entries.push(note)
    // After the end there is nobody to wait for company with.
    if (this.stopping !== undefined) this.write()
    else if (this.entries.length >= SETTLED_EARLY) this.settling ??= setImmediate(this.settleSoon)
    else this.timer ??= setTimeout(this.write, this.store.current.usage.batchMs).unref()
  }

  private readonly settleSoon = (): void => {
    this.settling = undefined
    this.settle()
  }

  private readonly write = (): void => {
    this.timer = undefined
    this.settle()
    this.writer.begin()
  }

  /** For the very end, however it came: synchronous. */
  private readonly keepRest = (): void => {
    this.settle()
    this.writer.keepRest()
  }

  private settle(): void {
    const { entries: notes } = this
    if (notes.length === 0) return
    this.entries = []
    this.writer.add(this.settlement.settled(notes, this.wantsRecords))
  }

  private get wantsRecords(): boolean {
    return this.store.current.usage.store !== false
  }
}
