import { Inject, Injectable } from '@nestjs/common'
import type { UsageClass } from '../core/endpoint.js'
import { UNIT_NAMES, type UnitName, type UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { Metrics, type Reading, registerCounter, registerGauge, single } from '../observability/metrics.js'
import { LOGGER } from '../observability/observability.module.js'
import type { PricedUse, UsageEntry } from './usage-entry.js'

interface Count {
  readonly labels: Readonly<Record<string, string>>
  value: number
}
/** Counts by label value; there are few values. */
type Counts = Map<string, Count>

type DropReason = 'overflow' | 'refused' | 'shutdown'

type CountedEntry = Pick<UsageEntry, 'outcome' | 'usageClass' | 'channelId'>

const NO_CHANNEL = ''

const OF_CHANNEL = ['class', 'channel'] as const

/** Totals of one model class on one channel. */
class Tally {
  readonly units = new Map<UnitName, number>()
  cost = 0
  unpriced = 0
  isNew = true

  constructor(readonly labels: Readonly<Record<(typeof OF_CHANNEL)[number], string>>) {}
}

/** Usage metrics as plain numbers of this process. Costs here are approximate: the records hold the exact ones. */
@Injectable()
export class UsageMetrics {
  private readonly records: Counts = new Map()
  private readonly dropped: Counts = new Map()
  /** By class, then by channel. Every record passes here: the lookup builds no key. */
  private readonly tallies = new Map<UsageClass, Map<string, Tally>>()
  private countPending: () => void = () => undefined

  constructor(private readonly metrics: Metrics) {
    const counter = (name: string, help: string, labelNames: readonly string[], read: () => Reading[]): void => {
      registerCounter(metrics, { name, help, labelNames }, () => {
        this.countPending()
        return read()
      })
    }
    counter('gateway_usage_records_total', 'Usage records by outcome.', ['outcome'], () => [...this.records.values()])
    counter('gateway_usage_dropped_total', 'Records that were not stored.', ['reason'], () => [
      ...this.dropped.values(),
    ])
    counter('gateway_usage_units_total', 'What was used, by unit.', ['unit', ...OF_CHANNEL], () => this.unitReadings())
    counter('gateway_usage_cost_total', 'What that cost, by the price table.', OF_CHANNEL, () =>
      this.readings(({ cost }) => cost),
    )
    counter('gateway_usage_unpriced_total', 'Records of use without a price.', OF_CHANNEL, () =>
      this.readings(({ unpriced }) => unpriced),
    )
  }

  /** Registers a callback that counts pending entries before each scrape. */
  beforeCollect(countPending: () => void): void {
    this.countPending = countPending
  }

  /** Registers the queue length, which is read at each scrape. */
  watchQueue(rows: () => number): void {
    const help = 'Usage records that wait for the store.'
    registerGauge(this.metrics, { name: 'gateway_usage_queue_rows', help, labelNames: [] }, () => single(rows()))
  }

  count({ outcome, usageClass, channelId }: CountedEntry, { units, cost }: PricedUse): void {
    add(this.records, 'outcome', outcome, 1)
    const tally = this.tallyOf(usageClass, channelId)
    for (const unit in units) {
      const name = unit as UnitName
      tally.units.set(name, (tally.units.get(name) ?? 0) + (units[name] ?? 0))
    }
    if (cost !== null) tally.cost += Number(cost)
  }

  countRefusal({ outcome }: CountedEntry, times: number): void {
    add(this.records, 'outcome', outcome, times)
  }

  countUnpriced({ usageClass, channelId }: CountedEntry): void {
    this.tallyOf(usageClass, channelId).unpriced++
  }

  /** Removes the metrics of channels that are not configured any more. */
  forgetChannelsBut(ids: readonly string[]): void {
    const known = new Set([NO_CHANNEL, ...ids])
    for (const ofClass of this.tallies.values()) {
      for (const channel of ofClass.keys()) if (!known.has(channel)) ofClass.delete(channel)
    }
  }

  /** `overflow`: the queue was full. `refused`: the store does not take this row. `shutdown`: the buffer files were full. */
  countDropped(reason: DropReason, rows: number): void {
    add(this.dropped, 'reason', reason, rows)
  }

  private tallyOf(usageClass: UsageClass, channel = NO_CHANNEL): Tally {
    const ofClass = this.tallies.get(usageClass) ?? new Map<string, Tally>()
    const tally = ofClass.get(channel) ?? new Tally({ class: usageClass, channel })
    if (tally.isNew) this.tallies.set(usageClass, ofClass.set(channel, tally))
    tally.isNew = false
    return tally
  }

  private get all(): Tally[] {
    return [...this.tallies.values()].flatMap((ofClass) => [...ofClass.values()])
  }

  private readings(valueOf: (tally: Tally) => number): Reading[] {
    return this.all.map((tally) => ({ labels: tally.labels, value: valueOf(tally) })).filter(isCounted)
  }

  private unitReadings(): Reading[] {
    return this.all.flatMap(({ labels, units }) =>
      [...units].map(([name, value]) => ({ labels: { unit: UNIT_NAMES[name], ...labels }, value })).filter(isCounted),
    )
  }
}

const isCounted = ({ value }: Reading): boolean => value > 0

function add(counts: Counts, label: string, word: string, value: number): void {
  const count = counts.get(word)
  if (count === undefined) counts.set(word, { labels: { [label]: word }, value })
  else count.value += value
}

/**
 * Drops records that a running gateway can neither store nor buffer: they are counted and logged in full, one per line,
 * so that an operator can still book them. Records dropped at the end of the process are written by `ShutdownBuffer`.
 */
@Injectable()
export class DroppedUsage {
  constructor(
    private readonly metrics: UsageMetrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  log(reason: Exclude<DropReason, 'shutdown'>, records: readonly UsageRecord[]): void {
    this.metrics.countDropped(reason, records.length)
    for (const record of records) this.logger.warn({ reason, record }, 'usage')
  }
}
