import type { Histogram } from 'prom-client'
import type { Metrics } from './metrics.js'

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

export interface BucketHistogram {
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
