import { describe, expect, it } from '@jest/globals'
import { parseScrape, valueOf } from '../../test/support/prometheus-text.js'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { ErrorKind } from '../core/errors.js'
import { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'
import { AttemptMetrics } from './attempt-metrics.js'
import { Metrics } from './metrics.js'
import { CallEndings } from './request-hooks.js'

const configOf = (...ids: readonly string[]) => {
  const channels = ids.map((id) => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 'key' }))
  return parseConfig(JSON.stringify({ channels }), {})
}

/** The metrics of a gateway with the channels `one` and `two`, of which a reload leaves `two`. */
function counting() {
  const metrics = new Metrics()
  const endings = new CallEndings()
  const store = new ConfigStore(configOf('one', 'two'), () =>
    Promise.resolve({ config: configOf('two', 'three'), file: '' }),
  )
  new AttemptMetrics(store, endings, metrics)
  const end = (tried: readonly (readonly [channelId: string, failure?: ErrorKind])[], failure?: unknown): void => {
    const call = new Call('req_1', 'POST', '/v1/chat/completions', 0)
    call.log.failure = failure
    for (const [channelId, kind] of tried) {
      call.log.tried.push({ channelId, startedAtMs: 0, ...(kind === undefined ? {} : { failure: kind }) })
    }
    endings.over(call, { status: 200, left: false, totalMs: 1, gatewayMs: 1 })
  }
  const attempts = async (): Promise<Record<string, number>> => {
    const family = parseScrape(await metrics.collectText()).get('gateway_attempts_total')
    return Object.fromEntries(
      (family?.samples ?? []).map(({ labels, value }) => [
        `${String(labels['channel'])} ${String(labels['outcome'])}`,
        value,
      ]),
    )
  }
  return { metrics, store, end, attempts }
}

describe('Attempts', () => {
  it('are counted by channel and outcome', async () => {
    const { end, attempts } = counting()
    end([['one']])
    end([['one', 'upstream_failed'], ['two']])
    end([['one', 'upstream_timeout']], new GatewayError('upstream_timeout', 'late'))
    expect(await attempts()).toEqual({ 'one ok': 1, 'one upstream_failed': 1, 'one upstream_timeout': 1, 'two ok': 1 })
  })

  it('that seemed to succeed have failed when their upstream broke the answer off', async () => {
    const { end, attempts } = counting()
    end([['one', 'upstream_failed'], ['two']], new GatewayError('upstream_failed', 'cut'))
    end([['two']], new GatewayError('caller_left', 'left'))
    expect(await attempts()).toEqual({ 'one upstream_failed': 1, 'two upstream_failed': 1, 'two ok': 1 })
  })

  it('of a channel that a reload has taken away are forgotten, and those of calls that end later not begun', async () => {
    const { end, attempts, store } = counting()
    end([['one'], ['two']])
    await store.reload()
    end([['one']])
    end([['three']])
    expect(await attempts()).toEqual({ 'two ok': 1, 'three ok': 1 })
  })

  it('that failed for a reason nobody knows are faults of the gateway', async () => {
    const { end, metrics } = counting()
    end([], new Error('odd'))
    const scrape = parseScrape(await metrics.collectText())
    expect(valueOf(scrape, 'gateway_failures_total', { kind: 'internal' })).toBe(1)
    expect(valueOf(scrape, 'gateway_failures_total', { kind: 'rate_limited' })).toBe(0)
  })
})
