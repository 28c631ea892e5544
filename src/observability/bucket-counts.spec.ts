import { describe, expect, it } from '@jest/globals'
import { BucketCounts, registerHistogram } from './bucket-counts.js'
import { mergedMetricsText, Metrics } from './metrics.js'

const shown = (durations: readonly number[]): Metrics => {
  const metrics = new Metrics()
  const boundsMs = [10, 250]
  const counts = new BucketCounts(boundsMs)
  for (const duration of durations) counts.observe(duration)
  registerHistogram(metrics, { name: 'gateway_test_seconds', help: 'Test.', labelNames: ['route'], boundsMs }, () => [
    { labels: { route: '/a' }, counts },
  ])
  return metrics
}

describe('Counted durations', () => {
  it('are shown in seconds, each bucket with the shorter ones, its bound included', async () => {
    const text = await shown([0, 10, 10.5, 250, 250.5, 4000]).collectText()
    expect(text.trimEnd().split('\n')).toEqual([
      '# HELP gateway_test_seconds Test.',
      '# TYPE gateway_test_seconds histogram',
      'gateway_test_seconds_bucket{route="/a",le="0.01"} 2',
      'gateway_test_seconds_bucket{route="/a",le="0.25"} 4',
      'gateway_test_seconds_bucket{route="/a",le="+Inf"} 6',
      'gateway_test_seconds_sum{route="/a"} 4.521',
      'gateway_test_seconds_count{route="/a"} 6',
    ])
  })

  it('of several processes are added up, bucket by bucket', async () => {
    const snapshots = await Promise.all([shown([5, 20]), shown([5])].map((metrics) => metrics.collectSnapshot()))
    // As they come over a channel between processes.
    const text = await mergedMetricsText(JSON.parse(JSON.stringify(snapshots)) as object[][])
    expect(text).toContain('gateway_test_seconds_bucket{route="/a",le="0.01"} 2')
    expect(text).toContain('gateway_test_seconds_bucket{route="/a",le="+Inf"} 3')
    expect(text).toContain('gateway_test_seconds_sum{route="/a"} 0.03')
    expect(text).toContain('gateway_test_seconds_count{route="/a"} 3')
  })
})
