import { hash } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { createApplication } from '../../src/app/create-app.js'
import { ConfigStore } from '../../src/config/config-store.js'
import { parseConfig } from '../../src/config/load-config.js'
import type { GatewayConfig } from '../../src/config/settings.js'
import { createLogging } from '../../src/observability/logger.js'
import { Metrics } from '../../src/observability/metrics.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { startGateway, type TestGatewayOptions } from '../support/gateway.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function started(...parameters: Parameters<typeof startLimitedGateway>): Promise<LimitedGateway> {
  const lab = await startLimitedGateway(...parameters)
  closers.push(() => lab.close())
  return lab
}

describe('GET /v1/limits', () => {
  it('shows each limit of the key, what is left of it and when it is whole again', async () => {
    const lab = await started({
      team: {
        requestsPerMinute: 10,
        tokensPerMinute: 5000,
        audioSecondsPerMinute: 60,
        concurrency: 3,
        realtimeSessions: 2,
      },
    })
    const fresh = { remaining: 10, reset_seconds: 0 }
    expect((await lab.limits('team')).limits['requestsPerMinute']).toEqual({ limit: 10, ...fresh })
    const controller = new AbortController()
    const hanging = lab.chat('team', '#hang', { max_tokens: 100 }, controller.signal).catch(() => 'aborted')
    await eventually(async () => (await lab.limits('team')).limits['tokensPerMinute']?.remaining !== 5000)
    const answer = await lab.limits('team')
    expect(answer).toMatchObject({ object: 'limits', scope: 'key:team', shared: false })
    expect(answer.limits).toEqual({
      requestsPerMinute: { limit: 10, remaining: 9, reset_seconds: expect.any(Number) },
      tokensPerMinute: { limit: 5000, remaining: expect.any(Number), reset_seconds: expect.any(Number) },
      audioSecondsPerMinute: { limit: 60, remaining: 60, reset_seconds: 0 },
      concurrency: { limit: 3, remaining: 2, in_use: 1 },
      realtimeSessions: { limit: 2, remaining: 2, in_use: 0 },
    })
    expect(answer.limits['requestsPerMinute']?.reset_seconds).toBeGreaterThan(50)
    expect(answer.limits['tokensPerMinute']?.remaining).toBeLessThan(4900)
    controller.abort()
    await hanging
  })

  it('is for known callers alone', async () => {
    const lab = await started({ team: {} })
    const answer = await lab.get('nobody', '/v1/limits')
    expect([answer.status, await answer.json()]).toMatchObject([401, { error: { code: 'invalid_api_key' } }])
  })
})

/** A gateway whose `auth` section is this one, in front of an upstream that takes any key. */
async function startWith(
  auth: object,
  credentials = 'upstream',
): Promise<{ readonly url: string; readonly logText: () => string }> {
  const simulator = await startP1Simulator({})
  closers.push(() => simulator.close())
  const channels: TestGatewayOptions['channels'] = [{ id: 'p1', provider: 'p1', baseUrl: simulator.url, credentials }]
  const gateway = await startGateway({ channels, sections: { auth } })
  closers.push(() => gateway.close())
  return gateway
}

const chatOf = (url: string, key: string): Promise<Response> =>
  fetch(url + CHAT_PATH, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: chatText('Hi'),
  })

async function statusesOf(url: string, keys: readonly string[]): Promise<number[]> {
  const statuses: number[] = []
  for (const key of keys) statuses.push((await chatOf(url, key)).status)
  return statuses
}

describe('Limits in the configuration', () => {
  it('are the defaults for keys without any of their own, each key by itself', async () => {
    const keys = [
      { id: 'one', key: 'one' },
      { id: 'two', key: 'two' },
      { id: 'own', key: 'own', limits: { concurrency: 5 } },
      { id: 'none', key: 'none', limits: {} },
    ]
    const { url } = await startWith({ keys, defaultLimits: { requestsPerMinute: 1 } })
    expect(await statusesOf(url, ['one', 'one', 'two', 'two'])).toEqual([200, 429, 200, 429])
    expect(await statusesOf(url, ['own', 'own', 'none', 'none'])).toEqual([200, 200, 200, 200])
  })

  it('are the defaults for callers with a bearer of their own, told apart by a digest', async () => {
    const { url, logText } = await startWith({ keys: [], defaultLimits: { requestsPerMinute: 1 } }, 'caller')
    expect(await statusesOf(url, ['bearer-one', 'bearer-one', 'bearer-two'])).toEqual([200, 429, 200])
    const refused = await chatOf(url, 'bearer-one')
    const scope = `bearer:${hash('sha256', 'bearer-one', 'hex').slice(0, 32)}`
    expect(refused.headers.get('x-gateway-limit')).toMatch(
      new RegExp(`^requestsPerMinute; scope=${scope}; reset=\\d+$`),
    )
    expect(logText() + (await refused.text())).not.toContain('bearer-one')
  })

  it('hold at once when they are changed, and what was counted stays', async () => {
    const simulator = await startP1Simulator({})
    closers.push(() => simulator.close())
    const channels = [{ id: 'p1', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream' }]
    let requestsPerMinute = 2
    const configuration = (): GatewayConfig => {
      const keys = [{ id: 'team', key: 'team', limits: { requestsPerMinute } }]
      // What is not stored is not left behind, in the folder the tests run in.
      return parseConfig(JSON.stringify({ auth: { keys }, channels, usage: { store: false } }), {})
    }
    const application = await createApplication({
      config: configuration(),
      reloadFrom: () => Promise.resolve({ config: configuration(), file: '' }),
      logging: createLogging('silent'),
      sandbox: false,
    })
    closers.push(() => application.close())
    await application.listen(0, '127.0.0.1')
    const { port } = (application.getHttpServer() as Server).address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    expect(await statusesOf(url, ['team', 'team', 'team'])).toEqual([200, 200, 429])
    requestsPerMinute = 3
    await application.get(ConfigStore).reload()
    expect(await statusesOf(url, ['team', 'team'])).toEqual([200, 429])
    requestsPerMinute = 1
    await application.get(ConfigStore).reload()
    expect(await statusesOf(url, ['team'])).toEqual([429])
  })
})

describe('The metrics of limits', () => {
  it('count refusals by the name of the limit, and say that no Redis is missed', async () => {
    const lab = await started({ team: { requestsPerMinute: 1 } })
    await lab.chat('team')
    await lab.chat('team')
    await lab.chat('team')
    const text = await lab.gateway.application.get(Metrics).registry.metrics()
    expect(text).toContain('gateway_limit_refusals_total{limit="requestsPerMinute"} 2')
    expect(text).toContain('gateway_limit_refusals_total{limit="concurrency"} 0')
    expect(text).toMatch(/^gateway_redis_away 0$/m)
  })
})
