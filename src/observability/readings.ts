import { type Aggregator, Counter, Gauge } from 'prom-client'
import type { Metrics } from './metrics.js'

/** One number and what it is about. Labels come from short, fixed lists. */
export interface Reading {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface ReadMetric {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  /** How several processes of one gateway are told as one; default `sum`. */
  readonly aggregator?: Aggregator
}

export type Read = () => readonly Reading[] | Promise<readonly Reading[]>

/** A counter that is kept elsewhere as a plain number and read when somebody asks. What is not read is not shown. */
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
