import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type MetricFamily, parseScrape } from '../../support/prometheus-text.js'

/** Whatever is not 0 of these when nobody asks for anything is work that was forgotten, or lost. */
const NOTHING_AT_REST = [
  'gateway_requests_in_flight',
  'gateway_realtime_sessions',
  'gateway_channel_waiting',
  'gateway_documents',
  'gateway_admission_requests',
  'gateway_admission_bytes',
  'gateway_admission_shedding',
  'gateway_usage_queue_rows',
  'gateway_usage_dropped_total',
  'gateway_collect_failures_total',
]
const TIMEOUT_MS = 10_000

/** Scrapes a gateway as Prometheus does, over a connection that it keeps. */
export class MetricsWatch {
  scrapes = 0
  /** Scrapes that found Redis away. */
  redisAway = 0
  /** What went wrong with a scrape. */
  readonly faults: string[] = []
  private readonly agent = new Agent({ connections: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })
  private families: ReadonlyMap<string, MetricFamily> = new Map()

  constructor(private readonly url: string) {}

  /** Until it is told to stop. */
  async run(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.scrape()
      await pause(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Never rejects. */
  async scrape(): Promise<void> {
    try {
      const { statusCode, body } = await request(`${this.url}/metrics`, { dispatcher: this.agent })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`status ${statusCode}`)
      this.families = parseScrape(text)
      this.scrapes += 1
      if (this.sumOf('gateway_redis_away') > 0) this.redisAway += 1
    } catch (error) {
      this.faults.push(`a scrape failed: ${String(error)}`)
    }
  }

  /** Of the last scrape: all series of a metric together. 0 where it tells of none. */
  sumOf(name: string): number {
    return this.valuesOf(name, '').reduce((sum, [, value]) => sum + value, 0)
  }

  /** Each series of a metric by one of its labels. */
  valuesOf(name: string, label: string): readonly (readonly [string, number])[] {
    const { samples = [] } = this.families.get(name) ?? {}
    return samples.map(({ labels, value }) => [labels[label] ?? '', value] as const)
  }

  /** What the last scrape tells of that must not be there while the gateway is at rest. */
  leftAtRest(): readonly string[] {
    return NOTHING_AT_REST.flatMap((name) => {
      const sum = this.sumOf(name)
      return sum === 0 ? [] : [`${name} is ${sum} at rest`]
    })
  }

  close(): Promise<void> {
    return this.agent.destroy()
  }
}
