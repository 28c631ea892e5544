import { mergedSnapshot, type MetricsSnapshot } from '../observability/metrics.js'

/** What only ever grows. A gauge of a process that is gone tells nothing. */
const GROWING: ReadonlySet<unknown> = new Set(['counter', 'histogram'])

/** What a worker told, and what it had counted of that which it could not tell in time: sums over workers must not go down. */
export function completed(told: MetricsSnapshot, before: MetricsSnapshot): MetricsSnapshot {
  const names = new Set(told.map(nameOf))
  return [...told, ...before.filter((metric) => grows(metric) && !names.has(nameOf(metric)))]
}

const grows = (metric: object): boolean => GROWING.has(Reflect.get(metric, 'type'))
const nameOf = (metric: object): unknown => Reflect.get(metric, 'name')

/** What workers that have ended had counted: without it, the sums over all workers would go down when one dies. */
export class EndedWorkers {
  private merged: Promise<MetricsSnapshot> = Promise.resolve([])

  add(last: MetricsSnapshot): void {
    const grown = last.filter(grows)
    // Added up, as there may be any number of them.
    if (grown.length > 0) this.merged = this.merged.then((merged) => mergedSnapshot([merged, grown]))
  }

  snapshot(): Promise<MetricsSnapshot> {
    return this.merged
  }
}
