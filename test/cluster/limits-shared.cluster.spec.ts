import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { WebSocket } from 'ws'
import { Metrics } from '../../src/common/observability/metrics.js'
import type { LimitsAnswer } from '../../src/limits/limits.service.js'
import { startP1Simulator } from '../../src/sandbox/p1/p1.simulator.js'
import type { Simulator } from '../../src/sandbox/simulator.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { realtimeChannel, type RealtimeUpstream, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { askUpgrade, REALTIME_PATH } from '../support/upgrade-client.js'
import { comesTrue } from './daemon.js'
import { startRedis, type TestRedis } from './redis.js'

jest.setTimeout(120_000)

const KEYS = {
  rush: { requestsPerMinute: 600 },
  tokens: { tokensPerMinute: 20_000 },
  places: { concurrency: 3 },
  sessions: { realtimeSessions: 1 },
  outage: { requestsPerMinute: 100 },
  shown: { requestsPerMinute: 10, concurrency: 4 },
} as const
type KeyName = keyof typeof KEYS

/** After that its window is over, and more would be served. */
const RUSH_MS = 55_000

/** Requests that one client has under way at once. */
const AT_ONCE = 25

let redis: TestRedis
let simulator: Simulator
let realtime: RealtimeUpstream
let gateways: readonly [TestGateway, TestGateway]

beforeAll(async () => {
  redis = await startRedis()
  simulator = await startP1Simulator({})
  realtime = await startRealtimeUpstream()
  const start = (): Promise<TestGateway> =>
    startGateway({
      channels: [
        { id: 'p1', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream', models: ['gpt-4o-mini'] },
        realtimeChannel(realtime, { models: ['gpt-realtime'] }),
      ],
      keys: Object.entries(KEYS).map(([id, limits]) => ({ id, key: id, limits })),
      // A busy machine is no outage.
      sections: { redis: { url: redis.url, timeoutMs: 2000 } },
    })
  gateways = [await start(), await start()]
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.close()
  await realtime.close()
  await simulator.close()
  await redis.close()
})

function chat(replica: 0 | 1, key: KeyName, text = 'Hi', more: object = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(gateways[replica].url + CHAT_PATH, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: chatText(text, more),
    signal: signal ?? null,
  })
}

async function limitsOf(replica: 0 | 1, key: KeyName): Promise<LimitsAnswer> {
  const answer = await fetch(`${gateways[replica].url}/v1/limits`, { headers: { authorization: `Bearer ${key}` } })
  return (await answer.json()) as LimitsAnswer
}

/** How often each status was answered to so many requests, half of them to each replica. */
async function rush(key: KeyName, requests: number): Promise<ReadonlyMap<number, number>> {
  const statuses = new Map<number, number>()
  let next = 0
  const client = async (): Promise<void> => {
    while (next < requests) {
      const answer = await chat(next++ % 2 === 0 ? 0 : 1, key)
      await answer.arrayBuffer()
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  return statuses
}

describe('Two replicas on one Redis', () => {
  it(
    'serve 600 of 1,000 requests that come to both at once, within two in a hundred',
    async () => {
      const statuses = await rush('rush', 1000)
      expect(statuses.get(200)).toBeGreaterThanOrEqual(588)
      expect(statuses.get(200)).toBeLessThanOrEqual(612)
      expect((statuses.get(200) ?? 0) + (statuses.get(429) ?? 0)).toBe(1000)
    },
    RUSH_MS,
  )

  it('agree on what is left', async () => {
    const first = await chat(0, 'shown')
    const second = await chat(1, 'shown')
    const remaining = [first, second].map(({ headers }) => headers.get('x-ratelimit-remaining-requests'))
    expect(remaining).toEqual(['9', '8'])
    for (const replica of [0, 1] as const) {
      const { shared, limits } = await limitsOf(replica, 'shown')
      expect([shared, limits['requestsPerMinute']?.remaining]).toEqual([true, 8])
    }
  })

  it('count what one of them has settled against requests to the other', async () => {
    const answer = await chat(0, 'tokens', 'Hi', { max_tokens: 19_000 })
    const { usage } = (await answer.json()) as { usage: { total_tokens: number } }
    const remaining = async (): Promise<number | undefined> =>
      (await limitsOf(1, 'tokens')).limits['tokensPerMinute']?.remaining
    await comesTrue(async () => (await remaining()) === 20_000 - usage.total_tokens)
    expect((await chat(1, 'tokens', 'Hi', { max_tokens: 19_000 })).status).toBe(200)
  })

  it('let no more be under way than the limit says, wherever they came', async () => {
    const inUse = async (): Promise<number | undefined> => (await limitsOf(0, 'places')).limits['concurrency']?.in_use
    const controller = new AbortController()
    const hanging = Array.from({ length: 3 }, (_, index) =>
      chat(index % 2 === 0 ? 0 : 1, 'places', '#hang', {}, controller.signal).catch(() => 'aborted'),
    )
    await comesTrue(async () => (await inUse()) === 3)
    for (const replica of [0, 1] as const) {
      const answer = await chat(replica, 'places')
      expect([answer.status, answer.headers.get('x-gateway-limit')]).toEqual([
        429,
        'concurrency; scope=key:places; reset=1',
      ])
    }
    controller.abort()
    await Promise.all(hanging)
    await comesTrue(async () => (await inUse()) === 0)
    expect((await chat(1, 'places')).status).toBe(200)
  })

  it('hold one session between them where the key has one', async () => {
    const client = new WebSocket(gateways[0].url.replace('http', 'ws') + REALTIME_PATH, {
      headers: { authorization: 'Bearer sessions' },
    })
    await once(client, 'open')
    const refused = await askUpgrade(gateways[1].url, { headers: { authorization: 'Bearer sessions' } })
    expect([refused.status, refused.headers.get('x-gateway-limit')]).toEqual([
      429,
      'realtimeSessions; scope=key:sessions; reset=1',
    ])
    client.close()
    await comesTrue(async () => (await limitsOf(1, 'sessions')).limits['realtimeSessions']?.in_use === 0)
  })

  it('keep to half of a limit each while Redis is away, never to none, and share again once it is back', async () => {
    const away = (): Promise<boolean[]> =>
      Promise.all(
        gateways.map(async ({ application }) =>
          /^gateway_redis_away 1$/m.test(await application.get(Metrics).registry.metrics()),
        ),
      )
    await redis.kill()
    await comesTrue(async () => (await away()).every(Boolean))
    const during = await rush('outage', 300)
    expect(Object.fromEntries(during)).toEqual({ 200: 100, 429: 200 })
    expect((await limitsOf(0, 'outage')).shared).toBe(false)
    await redis.start()
    await comesTrue(async () => !(await away()).some(Boolean))
    const after = await rush('outage', 300)
    expect(Object.fromEntries(after)).toEqual({ 200: 100, 429: 200 })
    for (const { logText } of gateways) {
      expect(logText().match(/redis is away/g)).toHaveLength(1)
      expect(logText().match(/redis is back/g)).toHaveLength(1)
    }
  })

  it('serve on at their shares when Redis dies in the middle of a rush, and refuse nobody for it', async () => {
    let hasDied: Promise<void> | undefined
    const statuses = new Map<number, number>()
    for (let index = 0; index < 40; index++) {
      if (index === 20) hasDied = redis.kill()
      const answer = await chat(index % 2 === 0 ? 0 : 1, 'tokens')
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      await answer.arrayBuffer()
    }
    await hasDied
    await redis.start()
    expect(Object.fromEntries(statuses)).toEqual({ 200: 40 })
  })
})
