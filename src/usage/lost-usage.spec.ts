import { describe, expect, it } from '@jest/globals'
import { records } from '../../test/support/usage-writer-lab.js'
import type { LogLevel } from '../config/settings.js'
import { createLogging } from '../observability/logger.js'
import { Metrics } from '../observability/metrics.js'
import { LostUsage } from './lost-usage.js'
import { UsageMetrics } from './usage-metrics.js'

function lostUsage(level: LogLevel) {
  const metrics = new Metrics()
  const lines: unknown[] = []
  const { logger } = createLogging(level, { write: (line) => lines.push(JSON.parse(line)) })
  const dropped = async (): Promise<string[]> =>
    (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('gateway_usage_dropped_total{'))
  return { lost: new LostUsage(new UsageMetrics(metrics), logger), lines, dropped }
}

describe('Usage that is lost', () => {
  it('is in the log, each record whole in a line of its own, and counted by its reason', async () => {
    const { lost, lines, dropped } = lostUsage('info')
    const [many, refused] = [records(3), records(1)]
    lost.tell('overflow', many)
    lost.tell('refused', refused)
    const line = (reason: string) => (record: object) => ({ level: 40, msg: 'usage', reason, record })
    expect(lines).toMatchObject([...many.map(line('overflow')), ...refused.map(line('refused'))])
    expect(await dropped()).toEqual([
      'gateway_usage_dropped_total{reason="overflow"} 3',
      'gateway_usage_dropped_total{reason="refused"} 1',
    ])
  })

  it('is counted where the log tells nothing of it', async () => {
    const { lost, lines, dropped } = lostUsage('error')
    lost.tell('overflow', records(2))
    expect([lines, await dropped()]).toEqual([[], ['gateway_usage_dropped_total{reason="overflow"} 2']])
  })
})
