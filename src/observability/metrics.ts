import { Injectable } from '@nestjs/common'
import { type Aggregator, AggregatorRegistry, Counter, Gauge, type Histogram, Registry } from 'prom-client'

/** Some counters are read from a store; a scrape must not wait longer for them. */
const COLLECT_DEADLINE_MS = 2_000

/** The metrics of one process as plain objects, to be sent to another process. */
export type MetricsSnapshot = readonly object[]

/** Registry of all metrics of this process; their names begin with `gateway_`. */
@Injectable()
export class Metrics {
  readonly registry = new Registry()
  private failures = 0
  private collecting: Promise<string> | undefined

  /** Metrics left out of scrapes because they failed or timed out. */
  get collectFailures(): number {
    return this.failures
  }

  /**
   * All metrics in Prometheus' text format, as far as they are read within two seconds. Never rejects. Simultaneous
   * calls share one text.
   */
  collectText(): Promise<string> {
    this.collecting ??= this.collectEach((name) => this.registry.getSingleMetricAsString(name))
      .then((parts) => `${parts.join('\n\n')}\n`)
      .finally(() => {
        this.collecting = undefined
      })
    return this.collecting
  }

  /** All metrics as objects, for `mergedMetricsText`. */
  collectSnapshot(): Promise<MetricsSnapshot> {
    return this.collectEach<object>(async (name) => (await this.registry.getSingleMetric(name)?.get()) ?? {})
  }

  private async collectEach<Part>(collect: (name: string) => Promise<Part>): Promise<readonly Part[]> {
    const parts = this.registry.getMetricsAsArray().map(({ name }) => withinDeadline(collect(name)))
    const read: Part[] = []
    for (const part of await Promise.allSettled(parts)) {
      if (part.status === 'fulfilled') read.push(part.value)
      else this.failures++
    }
    return read
  }
}

/** Merges the metrics of several processes: sums, or by each metric's `aggregator`. */
export const mergedMetricsText = (snapshots: readonly MetricsSnapshot[]): Promise<string> =>
  AggregatorRegistry.aggregate(snapshots.map((snapshot) => [...snapshot])).metrics()

/** The same, to be handed on. */
export const mergedSnapshot = (snapshots: readonly MetricsSnapshot[]): Promise<MetricsSnapshot> =>
  AggregatorRegistry.aggregate(snapshots.map((snapshot) => [...snapshot])).getMetricsAsJSON()

function withinDeadline<Part>(part: Promise<Part>): Promise<Part> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error('not told in time'))
    }, COLLECT_DEADLINE_MS)
    part.then(resolve, reject).finally(() => {
      clearTimeout(timer)
    })
  })
}

/** Counts of durations by bucket, as plain numbers, since several are observed per request. */
export class BucketCounts {
  /** One more than the bounds, for longer durations. */
  readonly counts: number[]
  sumMs = 0

  constructor(private readonly boundsMs: readonly number[]) {
    this.counts = new Array<number>(boundsMs.length + 1).fill(0)
  }

  observe(durationMs: number): void {
    const { boundsMs, counts } = this
    let index = 0
    while (index < boundsMs.length && durationMs > (boundsMs[index] ?? 0)) index++
    counts[index] = (counts[index] ?? 0) + 1
    this.sumMs += durationMs
  }
}

export interface LabelledCounts {
  readonly labels: Readonly<Record<string, string>>
  readonly counts: BucketCounts
}

interface BucketHistogram {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  readonly boundsMs: readonly number[]
}

interface Sample {
  readonly metricName: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

/**
 * Registers counts as a histogram in seconds. The library's histograms cannot read external counts, so the registry is
 * given an object with the members that it reads: name and samples.
 */
export function registerHistogram(
  metrics: Metrics,
  { name, help, labelNames, boundsMs }: BucketHistogram,
  read: () => readonly LabelledCounts[],
): void {
  const samples = (): Sample[] => read().flatMap((each) => samplesOf(name, boundsMs, each))
  const metric = {
    name,
    help,
    labelNames,
    type: 'histogram',
    aggregator: 'sum',
    get: () => Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values: samples() }),
  }
  metrics.registry.registerMetric(metric as unknown as Histogram)
}

function samplesOf(name: string, boundsMs: readonly number[], { labels, counts }: LabelledCounts): Sample[] {
  let total = 0
  const buckets = counts.counts.map((count, index) => {
    const bound = boundsMs[index]
    total += count
    const le = bound === undefined ? '+Inf' : bound / 1000
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: counts.sumMs / 1000 },
    { metricName: `${name}_count`, labels, value: total },
  ]
}

/** One value with its labels, which come from short, fixed lists. */
export interface Reading {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

interface ReadMetric {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  /** How the values of several processes of one gateway are combined; default `sum`. */
  readonly aggregator?: Aggregator
}

export type Read = () => readonly Reading[] | Promise<readonly Reading[]>

/** Registers a counter that its owner keeps as a plain number, read at each scrape. */
export function registerCounter(metrics: Metrics, metric: ReadMetric, read: Read): void {
  new Counter({
    ...metric,
    registers: [metrics.registry],
    async collect() {
      const readings = await read()
      this.reset()
      for (const { labels, value } of readings) this.inc(labels, value)
    },
  })
}

/** Registers a gauge in the same way. */
export function registerGauge(metrics: Metrics, metric: ReadMetric, read: Read): void {
  new Gauge({
    ...metric,
    registers: [metrics.registry],
    async collect() {
      const readings = await read()
      this.reset()
      for (const { labels, value } of readings) this.set(labels, value)
    },
  })
}

/** The one reading of a metric without labels. */
export const single = (value: number): readonly Reading[] => [{ labels: {}, value }]

/** A reading for each key of a record, under the label `name`. */
export const byLabel = (name: string, values: Readonly<Record<string, number>>): readonly Reading[] =>
  Object.entries(values).map(([label, value]) => ({ labels: { [name]: label }, value }))
