import { Injectable } from '@nestjs/common'
import { type Aggregator, AggregatorRegistry, Counter, Gauge, type Histogram, Registry } from 'prom-client'

/** A counter may have to be read elsewhere first; a scrape must not wait for it. */
const COLLECT_DEADLINE_MS = 2_000

/** The metrics of one process as plain objects, to be handed to another one. */
export type MetricsSnapshot = readonly object[]

/** Every metric of this process; each is registered here, under a name that begins `gateway_`. */
@Injectable()
export class Metrics {
  readonly registry = new Registry()
  private failures = 0
  private collecting: Promise<string> | undefined

  /** Parts that could not tell, or not in time, and were left out. */
  get collectFailures(): number {
    return this.failures
  }

  /**
   * Everything in Prometheus' text format, as far as it is read within two seconds. Never rejects. Those who ask at the
   * same time get the same text.
   */
  collectText(): Promise<string> {
    this.collecting ??= this.collectEach((name) => this.registry.getSingleMetricAsString(name))
      .then((parts) => `${parts.join('\n\n')}\n`)
      .finally(() => {
        this.collecting = undefined
      })
    return this.collecting
  }

  /** The same for `mergedMetricsText`. */
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

/** The metrics of several processes as those of one: added up, or as each metric's `aggregator` has it. */
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

/** Durations sorted into buckets as they come: plain numbers, as this is done several times for each call. */
export class BucketCounts {
  /** One more than there are bounds: what is longer than the last. */
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
 * Shows counts as a histogram in seconds. The library's own histograms can only count for themselves, so the registry is
 * given what it asks of one: its name, and its samples.
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

/** One number and what it is about. Labels come from short, fixed lists. */
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

/** A counter that is kept elsewhere as a plain number and read at each scrape. What is not read is not shown. */
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

/** The same for a number that goes up and down. */
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
