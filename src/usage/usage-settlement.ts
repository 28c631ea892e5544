import { Inject, Injectable } from '@nestjs/common'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import type { PriceTable } from './price-table.js'
import { type PricedUse, pricedUse, settledRecord } from './priced-record.js'
import { UsageMetrics } from './usage-metrics.js'
import type { UsageNote } from './usage-note.js'

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
