import { type BeforeApplicationShutdown, Inject, Injectable, type OnModuleInit } from '@nestjs/common'
import { ownerOf } from '../common/auth/owner.js'
import { CallEndings } from '../common/observability/call-endings.js'
import type { Logger } from '../common/observability/logger.js'
import { LOGGER } from '../common/observability/observability.module.js'
import { type EndedTask, type UsageEntry, UsageRecorder } from '../common/usage/usage-recorder.js'
import { ConfigStore } from '../config/config-store.js'
import type { PriceRow } from '../config/gateway-config.js'
import { PriceTable } from './price-table.js'
import { requestNote } from './request-note.js'
import { settledRecord } from './settled-record.js'
import { UsageMetrics } from './usage-metrics.js'
import type { UsageNote, UsageRecord } from './usage-record.js'
import { UsageWriter } from './usage-writer.js'

/** A batch in one go would hold up the calls that are under way by milliseconds. */
const SETTLED_AT_ONCE = 50

/** Models that were said to have no price; more are not remembered, nor said. */
const MAXIMUM_ALARMS = 1000

/**
 * Takes notes of everything that was used, and a batch at a time makes records of them: priced, counted for the metrics,
 * handed to the writer. Taking a note costs next to nothing, as every call pays for it.
 */
@Injectable()
export class UsageLedger extends UsageRecorder implements OnModuleInit, BeforeApplicationShutdown {
  private notes: UsageNote[] = []
  private timer: NodeJS.Timeout | undefined
  private prices: { readonly rows: readonly PriceRow[]; readonly table: PriceTable } | undefined
  private readonly alarms = new Set<string>()
  private isStopping = false

  constructor(
    private readonly endings: CallEndings,
    private readonly store: ConfigStore,
    private readonly writer: UsageWriter,
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    super()
  }

  onModuleInit(): void {
    this.endings.watch((call, outcome) => {
      const note = requestNote(call, outcome)
      if (note !== undefined) this.add(note)
    })
  }

  /** Nothing that was acknowledged is lost: the store closes after this. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isStopping = true
    this.settle()
    clearTimeout(this.timer)
    await this.writer.stop()
  }

  override record({ call, channelId, model, kind, units, estimated }: UsageEntry): void {
    const { requestId, caller, log } = call
    this.logger.info({ requestId, keyId: caller.keyId, channelId, model, kind, units, estimated }, 'usage')
    this.add({
      id: undefined,
      atMs: Date.now(),
      requestId,
      keyId: caller.keyId,
      ownerId: ownerOf(caller),
      kind,
      route: call.path,
      model,
      usageClass: log.modelClass ?? 'realtime',
      channelId,
      outcome: 'ok',
      durationMs: undefined,
      usage: { units, estimated },
      estimate: undefined,
    })
  }

  override taskEnded(task: EndedTask): void {
    const { id, ownerId, taskClass, route, model, channelId, hasSucceeded, reported, durationMs } = task
    const made = hasSucceeded ? 1 : 0
    this.add({
      id: `task ${id}`,
      atMs: Date.now(),
      requestId: undefined,
      keyId: ownerId.startsWith('bearer:') ? 'caller' : ownerId,
      ownerId,
      kind: 'task',
      route,
      model,
      usageClass: taskClass,
      channelId,
      outcome: hasSucceeded ? 'ok' : 'upstream_failed',
      durationMs,
      usage: {
        units: { ...reported, ...(taskClass === 'video' ? { videos: made } : { images: made }) },
        estimated: false,
      },
      estimate: undefined,
    })
  }

  /** Hands everything noted so far to the writer, and waits for it as the writer does. */
  async flush(): Promise<void> {
    this.settle()
    await this.writer.flush()
  }

  private add(note: UsageNote): void {
    this.notes.push(note)
    if (this.notes.length >= SETTLED_AT_ONCE) this.settle()
    // After the end there is nobody to wait for company with.
    if (this.isStopping) this.write()
    else this.timer ??= setTimeout(this.write, this.store.current.usage.batchMs).unref()
  }

  private readonly write = (): void => {
    this.timer = undefined
    this.settle()
    this.writer.begin()
  }

  private settle(): void {
    const { notes } = this
    if (notes.length === 0) return
    this.notes = []
    const prices = this.priceTable()
    const records: UsageRecord[] = []
    for (const note of notes) {
      try {
        records.push(this.settled(note, prices))
      } catch (error) {
        this.logger.error({ err: error, note }, 'usage could not be recorded')
      }
    }
    this.writer.add(records)
  }

  private settled(note: UsageNote, prices: PriceTable): UsageRecord {
    const record = settledRecord(note, prices)
    this.metrics.count(record, note.usageClass)
    // Who has no table wants no prices.
    if (record.pricing === 'unpriced' && !prices.isEmpty) this.alarm(record, note)
    return record
  }

  private alarm({ model, channelId, kind, units }: UsageRecord, { usageClass }: UsageNote): void {
    this.metrics.countUnpriced(usageClass, channelId)
    const key = `${kind}\n${model ?? ''}`
    if (this.alarms.has(key) || this.alarms.size >= MAXIMUM_ALARMS) return
    this.alarms.add(key)
    this.logger.warn({ model, channelId, kind, units }, 'no price for what was used; see prices in the configuration')
  }

  private priceTable(): PriceTable {
    const rows = this.store.current.prices
    if (this.prices?.rows !== rows) {
      this.prices = { rows, table: new PriceTable(rows) }
      // What had no price before may still have none.
      this.alarms.clear()
    }
    return this.prices.table
  }
}
