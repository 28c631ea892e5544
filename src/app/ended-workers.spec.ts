import { describe, expect, it } from '@jest/globals'
import { Counter, Gauge } from 'prom-client'
import { mergedMetricsText, Metrics } from '../observability/metrics.js'
import { completed, EndedWorkers } from './ended-workers.js'

/** Of a worker that counted so many requests. */
function worker(requests: number): Metrics {
  const metrics = new Metrics()
  const registers = [metrics.registry]
  new Counter({ name: 'gateway_requests_total', help: 'h', labelNames: ['status'], registers }).inc(
    { status: '200' },
    requests,
  )
  new Gauge({ name: 'gateway_in_flight', help: 'h', registers }).set(requests)
  return metrics
}

describe('workers that have ended', () => {
  it('leave what they counted to the sums, and nothing of what they were doing', async () => {
    const ended = new EndedWorkers()
    for (const requests of [5, 7]) ended.add(await worker(requests).collectSnapshot())
    const text = await mergedMetricsText([await worker(1).collectSnapshot(), await ended.snapshot()])
    expect(text).toMatch(/^gateway_requests_total\{status="200"\} 13$/m)
    expect(text).toMatch(/^gateway_in_flight 1$/m)
  })

  it('that never told anything leave nothing', async () => {
    const ended = new EndedWorkers()
    ended.add([])
    expect(await ended.snapshot()).toEqual([])
  })
})

describe('what a worker tells', () => {
  it('is made up from what it told before, where it could not tell a counter in time', async () => {
    const before = await worker(5).collectSnapshot()
    const late = (await worker(6).collectSnapshot()).filter((metric) => Reflect.get(metric, 'type') !== 'counter')
    expect(await mergedMetricsText([completed(late, before)])).toMatch(/^gateway_requests_total\{status="200"\} 5$/m)
    const text = await mergedMetricsText([completed(await worker(7).collectSnapshot(), before)])
    expect(text).toMatch(/^gateway_requests_total\{status="200"\} 7$/m)
    expect(await mergedMetricsText([completed([], before)])).not.toContain('gateway_in_flight')
  })
})
