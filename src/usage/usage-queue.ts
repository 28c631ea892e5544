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
  type UsageEntry,
  type UsageRecord,
  UsageRecorder,
} from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { CallEndings } from '../observability/request-hooks.js'
import { type PricedUse, pricedUse, settledRecord } from './priced-record.js'
import { PriceTable } from './prices.js'
import { entryNote, requestNote, taskNote, type UsageNote } from './usage-entry.js'
import { UsageMetrics } from './usage-metrics.js'
import { UsageWriter } from './usage-writer.js'

/** Models that were said to have no price; more are not remembered, nor said. */
const MAXIMUM_ALARMS = 1000

/** Prices what was noted, counts it for the metrics, and makes records of it. */
@Injectable()
export class UsageSettlement {
  private readonly alarms = new Set<string>()
  private alarmedFor: PriceTable | undefined

  constructor(
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Counts all of them; the records are made where they are wanted. What cannot be done the log tells. */
  settled(notes: readonly UsageNote[], wantsRecords: boolean): readonly UsageRecord[] {
    const records: UsageRecord[] = []
    for (const note of notes) {
      try {
        const use = pricedUse(note)
        if (wantsRecords) records.push(settledRecord(note, use))
        this.count(note, use)
      } catch (error) {
        this.tell(note, error)
      }
    }
    return records
  }

  /** One that is not counted yet; undefined where none can be made, which the log tells. */
  record(note: UsageNote): UsageRecord | undefined {
    try {
      return settledRecord(note, pricedUse(note))
    } catch (error) {
      this.tell(note, error)
      return undefined
    }
  }

  count(note: UsageNote, use: PricedUse): void {
    this.metrics.count(note, use)
    // Who has no table wants no prices.
    if (use.pricing !== 'unpriced' || note.prices.isEmpty) return
    this.metrics.countUnpriced(note)
    this.alarm(note, use)
  }

  private tell({ requestId, model }: UsageNote, error: unknown): void {
    this.logger.error({ err: error, requestId, model }, 'usage could not be recorded')
  }

  private alarm({ model, channelId, kind, prices }: UsageNote, { units }: PricedUse): void {
    // What had no price before may still have none.
    if (this.alarmedFor !== prices) this.alarms.clear()
    this.alarmedFor = prices
    const key = `${kind}\n${model ?? ''}`
    if (this.alarms.has(key) || this.alarms.size >= MAXIMUM_ALARMS) return
    this.alarms.add(key)
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
export class UsageLedger
  extends UsageRecorder
  implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown
{
  private notes: UsageNote[] = []
  private prices: PriceTable
  private timer: NodeJS.Timeout | undefined
  private settling: NodeJS.Immediate | undefined
  private stopping: Promise<void> | undefined

  constructor(
    private readonly endings: CallEndings,
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
    this.endings.watch((call, outcome) => {
      const note = requestNote(call, outcome, this.prices)
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

  override record(entry: UsageEntry): void {
    const { call, channelId, model, kind, units, estimated } = entry
    const { requestId, caller } = call
    this.logger.info({ requestId, keyId: caller.keyId, channelId, model, kind, units, estimated }, 'usage')
    this.add(entryNote(entry, this.prices))
  }

  override taskEnded(task: EndedTask): void {
    this.add(taskNote(task, this.prices))
  }

  override settleTask(task: EndedTask): SettledTask | undefined {
    const note = taskNote(task, this.prices)
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

  private add(note: UsageNote): void {
    this.notes.push(note)
    // After the end there is nobody to wait for company with.
    if (this.stopping !== undefined) this.write()
    else if (this.notes.length >= SETTLED_EARLY) this.settling ??= setImmediate(this.settleSoon)
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
    const { notes } = this
    if (notes.length === 0) return
    this.notes = []
    this.writer.add(this.settlement.settled(notes, this.wantsRecords))
  }

  private get wantsRecords(): boolean {
    return this.store.current.usage.store !== false
  }
}
