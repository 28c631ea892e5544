import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { parseScrape, valueOf } from '../../test/support/prometheus-text.js'
import { Metrics } from './metrics.js'
import { ProcessMetrics } from './process-metrics.js'

const BLOCK_MS = 150

async function blockLoop(): Promise<void> {
  const untilMs = performance.now() + BLOCK_MS
  while (performance.now() < untilMs);
  await nextTurn()
}

describe('What a scrape says of the process', () => {
  it('is how late the event loop was since the scrape before, and nothing of the time before that', async () => {
    const metrics = new Metrics()
    const watch = new ProcessMetrics(metrics)
    const worst = async (): Promise<number | undefined> =>
      valueOf(parseScrape(await metrics.collectText()), 'gateway_event_loop_delay_seconds', { statistic: 'max' })
    try {
      expect(await worst()).toBeUndefined()
      // Only what comes between two of its looks is counted, and it has looked at nothing yet.
      for (let blocks = 0; blocks < 3; blocks++) await blockLoop()
      expect(await worst()).toBeGreaterThan((BLOCK_MS - 50) / 1000)
      // A machine that is busy with others may be late again, but not every time.
      while (((await worst()) ?? 0) > (BLOCK_MS - 50) / 1000);
    } finally {
      watch.onApplicationShutdown()
    }
  })

  it('is what it takes of the machine', async () => {
    const metrics = new Metrics()
    const watch = new ProcessMetrics(metrics)
    const scrape = parseScrape(await metrics.collectText())
    watch.onApplicationShutdown()
    expect(valueOf(scrape, 'process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
    expect(valueOf(scrape, 'gateway_memory_bytes', { use: 'heap_used' })).toBeGreaterThan(1_000_000)
    expect(valueOf(scrape, 'process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(valueOf(scrape, 'process_open_fds')).toBeGreaterThan(2)
    expect(valueOf(scrape, 'process_start_time_seconds')).toBeLessThan(Date.now() / 1000)
  })
})
