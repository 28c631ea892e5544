import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { Metrics } from '../../src/observability/metrics.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { realtimeChannel, type RealtimeUpstream, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { comesTrue } from './daemon.js'
import { keysWith, LimitedCaller, refusalOf } from './limited-caller.js'
import { startRedis, type TestRedis } from './redis.js'
import { ofStatus, rush, type RushAnswer } from './rush.js'

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
      keys: keysWith(KEYS),
      sections: { redis: { url: redis.url } },
    })
  gateways = [await start(), await start()]
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.close()
  await realtime.close()
  await simulator.close()
  await redis.close()
})

const at = (replica: 0 | 1, key: KeyName): LimitedCaller => new LimitedCaller(gateways[replica].url, key)

interface ReplicaAnswer extends RushAnswer {
  readonly replica: 0 | 1
}

/** So many requests at once, every other one to each replica. */
const rushToBoth = (key: KeyName, requests: number): Promise<readonly ReplicaAnswer[]> =>
  rush(requests, async (number) => {
    const replica = number % 2 === 0 ? 0 : 1
    const answer = await at(replica, key).chat()
    await answer.arrayBuffer()
    return { status: answer.status, replica }
  })

/** How often each status was answered. */
function statusesOf(answers: readonly RushAnswer[]): Readonly<Record<number, number>> {
  const statuses: Record<number, number> = {}
  for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1
  return statuses
}

/** How many of the requests each replica served. */
const servedByEach = (answers: readonly ReplicaAnswer[]): number[] =>
  [0, 1].map((each) => ofStatus(answers, 200).filter(({ replica }) => replica === each).length)

describe('Two replicas on one Redis', () => {
  it(
    'serve 600 of 1,000 requests that come to both at once, within two in a hundred',
    async () => {
      const answers = await rushToBoth('rush', 1000)
      const served = ofStatus(answers, 200).length
      expect(served).toBeGreaterThanOrEqual(588)
      expect(served).toBeLessThanOrEqual(612)
      expect(served + ofStatus(answers, 429).length).toBe(1000)
      for (const part of servedByEach(answers)) expect(part).toBeGreaterThan(served / 4)
    },
    RUSH_MS,
  )

  it('agree on what is left', async () => {
    const first = await at(0, 'shown').chat()
    const second = await at(1, 'shown').chat()
    const remaining = [first, second].map(({ headers }) => headers.get('x-ratelimit-remaining-requests'))
    expect(remaining).toEqual(['9', '8'])
    for (const replica of [0, 1] as const) {
      const { shared, limits } = await at(replica, 'shown').limits()
      expect([shared, limits['requestsPerMinute']?.remaining]).toEqual([true, 8])
    }
  })

  it('count what one of them has settled against requests to the other', async () => {
    const answer = await at(0, 'tokens').chat('Hi', { max_tokens: 19_000 })
    const { usage } = (await answer.json()) as { usage: { total_tokens: number } }
    const other = at(1, 'tokens')
    await comesTrue(async () => (await other.remaining('tokensPerMinute')) === 20_000 - usage.total_tokens)
    expect((await other.chat('Hi', { max_tokens: 19_000 })).status).toBe(200)
  })

  it('let no more be under way than the limit says, wherever they came', async () => {
    const inUse = (): Promise<number | undefined> => at(0, 'places').inUse('concurrency')
    const controller = new AbortController()
    const hanging = Array.from({ length: 3 }, (_, index) =>
      at(index % 2 === 0 ? 0 : 1, 'places')
        .chat('#hang', {}, controller.signal)
        .catch(() => 'aborted'),
    )
    await comesTrue(async () => (await inUse()) === 3)
    for (const replica of [0, 1] as const) {
      const refusal = await refusalOf(await at(replica, 'places').chat())
      expect(refusal).toEqual([429, 'concurrency; scope=key:places; reset=1'])
    }
    controller.abort()
    await Promise.all(hanging)
    await comesTrue(async () => (await inUse()) === 0)
    expect((await at(1, 'places').chat()).status).toBe(200)
  })

  it('hold one session between them where the key has one', async () => {
    const session = await at(0, 'sessions').dial()
    const other = at(1, 'sessions')
    expect(await other.dialled()).toEqual([429, 'realtimeSessions; scope=key:sessions; reset=1'])
    session.close()
    await comesTrue(async () => (await other.inUse('realtimeSessions')) === 0)
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
    const during = await rushToBoth('outage', 300)
    expect(statusesOf(during)).toEqual({ 200: 100, 429: 200 })
    expect(servedByEach(during)).toEqual([50, 50])
    expect((await at(0, 'outage').limits()).shared).toBe(false)
    await redis.start()
    await comesTrue(async () => !(await away()).some(Boolean))
    const after = await rushToBoth('outage', 300)
    expect(statusesOf(after)).toEqual({ 200: 100, 429: 200 })
    for (const part of servedByEach(after)) expect(part).toBeGreaterThan(25)
    for (const { logText } of gateways) {
      expect(logText().match(/redis is away/g)).toHaveLength(1)
      expect(logText().match(/redis is back/g)).toHaveLength(1)
    }
  })

  it('serve on at their shares when Redis dies in the middle of a rush, and refuse nobody for it', async () => {
    let hasDied: Promise<void> | undefined
    const answers: RushAnswer[] = []
    for (let index = 0; index < 40; index++) {
      if (index === 20) hasDied = redis.kill()
      const answer = await at(index % 2 === 0 ? 0 : 1, 'tokens').chat()
      answers.push(answer)
      await answer.arrayBuffer()
    }
    await hasDied
    await redis.start()
    expect(statusesOf(answers)).toEqual({ 200: 40 })
  })
})
