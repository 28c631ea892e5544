import { Injectable } from '@nestjs/common'
import { AggregatorRegistry, Registry } from 'prom-client'

/** Whoever counts something may have to ask elsewhere first; whoever asks for the metrics must not wait for it. */
const COLLECT_DEADLINE_MS = 2_000

/** The metrics of one process as plain objects, to be handed to another one. */
export type MetricsSnapshot = readonly object[]

/** Every metric of this process; whoever measures something registers it here, under a name that begins `gateway_`. */
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
   * Everything in Prometheus' text format, as far as it is told within two seconds. Never rejects. Those who ask at the
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
    const told: Part[] = []
    for (const part of await Promise.allSettled(parts)) {
      if (part.status === 'fulfilled') told.push(part.value)
      else this.failures++
    }
    return told
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
