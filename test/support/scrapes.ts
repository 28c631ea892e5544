import type { INestApplication } from '@nestjs/common'
import { MetricsServer } from '../../src/observability/metrics-server.js'
import { type MetricFamily, parseScrape, valueOf } from './prometheus-text.js'
import { unusedPort } from './raw-upstream.js'

export type Scrape = ReadonlyMap<string, MetricFamily>

/** A gateway that can be scraped over its own port, as Prometheus does. */
export interface Scraper {
  scrape(): Promise<Scrape>
  /** Scrapes until the condition holds: a call is counted when its response is over, not when its caller has it. */
  scrapeUntil(condition: (scrape: Scrape) => boolean): Promise<Scrape>
  /** The same until a series has this value. */
  untilValue(name: string, labels: Readonly<Record<string, string>>, value: number): Promise<Scrape>
  close(): Promise<void>
}

const PATIENCE_MS = 10_000

/** The section of a configuration that lets `startScraper` find a port. */
export const scrapable = async (): Promise<object> => ({ server: { metricsPort: await unusedPort() } })

export async function startScraper(application: INestApplication): Promise<Scraper> {
  const server = application.get(MetricsServer)
  await server.listen()
  const scrape = async (): Promise<Scrape> => {
    const answer = await fetch(`http://127.0.0.1:${String(server.port)}/metrics`)
    if (answer.status !== 200) throw new Error(`a scrape was answered with ${answer.status}`)
    return parseScrape(await answer.text())
  }
  const scrapeUntil: Scraper['scrapeUntil'] = async (condition) => {
    const deadlineAtMs = performance.now() + PATIENCE_MS
    for (;;) {
      const found = await scrape()
      if (condition(found)) return found
      if (performance.now() > deadlineAtMs) throw new Error(`no scrape met the condition ${String(condition)}`)
    }
  }
  return {
    scrape,
    scrapeUntil,
    untilValue: (name, labels, value) => scrapeUntil((found) => valueOf(found, name, labels) === value),
    close: () => server.close(),
  }
}
