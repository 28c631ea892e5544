import { describe, expect, it } from '@jest/globals'
import { Metrics } from '../../src/observability/metrics.js'
import { TEST_KEY } from './gateway.js'
import { recordsOf, type UsageLab } from './usage-lab.js'

/** What holds for all the records of a suite, which are so many; to be described last. */
export function describeAllRecords(lab: () => UsageLab, count: number): void {
  describe('All of it', () => {
    it('has a price in the example’s table', async () => {
      const records = await recordsOf(lab().gateway)
      expect(records).toHaveLength(count)
      expect(records.filter(({ pricing }) => pricing === 'unpriced')).toEqual([])
      const text = await lab().gateway.application.get(Metrics).registry.metrics()
      expect(text).not.toMatch(/^gateway_usage_unpriced_total\{/m)
    })

    it('holds no secret', async () => {
      const text = JSON.stringify(await recordsOf(lab().gateway))
      expect(text).not.toMatch(new RegExp(`canary|${TEST_KEY}`))
    })
  })
}
