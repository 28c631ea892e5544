import { describe, expect, it } from '@jest/globals'
import { parseScrape, valueOf } from '../../test/support/prometheus-text.js'
import { ConfigError } from '../config/config-fault.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import { GatewayMetrics } from './gateway-metrics.js'
import { Metrics } from './metrics.js'
import { Readiness } from './readiness.js'

describe('What the gateway says of itself', () => {
  it('is how its reloads went, and since when its configuration is in force', async () => {
    const config = parseConfig('{}', {})
    const outcomes = [
      () => Promise.reject(new ConfigError([{ path: 'server', message: 'is wrong' }])),
      () => Promise.resolve({ config, file: '' }),
      () => Promise.resolve(undefined),
    ]
    const store = new ConfigStore(config, () => outcomes.shift()?.() ?? Promise.resolve(undefined))
    const metrics = new Metrics()
    new GatewayMetrics(store, new Readiness(), metrics)
    const scrape = async () => parseScrape(await metrics.collectText())
    const started = valueOf(await scrape(), 'gateway_config_applied_timestamp_seconds') ?? 0
    for (let reloads = 0; reloads < 3; reloads++) await store.reload()
    const after = await scrape()
    expect(valueOf(after, 'gateway_config_reloads_total', { outcome: 'applied' })).toBe(1)
    expect(valueOf(after, 'gateway_config_reloads_total', { outcome: 'refused' })).toBe(2)
    expect(valueOf(after, 'gateway_config_applied_timestamp_seconds')).toBeGreaterThanOrEqual(started)
    expect(started).toBeGreaterThan(1_700_000_000)
  })

  it('is its version, and whether it is ready', async () => {
    const readiness = new Readiness()
    const metrics = new Metrics()
    new GatewayMetrics(new ConfigStore(parseConfig('{}', {})), readiness, metrics)
    const read = async (name: string) => parseScrape(await metrics.collectText()).get(name)?.samples[0]
    expect((await read('gateway_build_info'))?.labels).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
    })
    expect((await read('gateway_ready'))?.value).toBe(0)
    readiness.announceReady()
    expect((await read('gateway_ready'))?.value).toBe(1)
    readiness.announceStoreLost()
    expect((await read('gateway_ready'))?.value).toBe(0)
  })
})
