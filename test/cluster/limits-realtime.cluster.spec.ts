import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Metrics } from '../../src/observability/metrics.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import {
  costOf,
  CREATED,
  createOf,
  createsOf,
  doneWith,
  judged,
  leftOf,
  type LimitedSession,
  openSession,
  say,
} from '../support/limited-sessions.js'
import { realtimeChannel, type RealtimeUpstream, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { comesTrue } from './daemon.js'
import { startRedis, type TestRedis } from './redis.js'

jest.setTimeout(120_000)

const CREATE = createOf(100)
const COST = costOf(100)
const APPEND = { type: 'input_audio_buffer.append', audio: 'AAAA' }

/** One for each test. */
const KEYS = {
  exact: { tokensPerMinute: 4 * COST + 10 },
  spent: { tokensPerMinute: 2000 },
  settled: { tokensPerMinute: COST + 60 },
  left: { tokensPerMinute: COST + 60 },
  spoken: { audioSecondsPerMinute: 20 },
  held: { tokensPerMinute: COST },
  away: { tokensPerMinute: 1000 },
} as const
type KeyName = keyof typeof KEYS

let redis: TestRedis
let upstream: RealtimeUpstream
let gateways: readonly [TestGateway, TestGateway]
const sessions: LimitedSession[] = []

beforeAll(async () => {
  redis = await startRedis()
  upstream = await startRealtimeUpstream()
  const start = (): Promise<TestGateway> =>
    startGateway({
      channels: [realtimeChannel(upstream)],
      keys: Object.entries(KEYS).map(([id, limits]) => ({ id, key: id, limits })),
      sections: { redis: { url: redis.url } },
    })
  gateways = [await start(), await start()]
})
afterEach(async () => {
  redis.resume()
  for (const { client } of sessions.splice(0)) await client.close()
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.close()
  await upstream.close()
  await redis.close()
})

async function open(replica: 0 | 1, key: KeyName): Promise<LimitedSession> {
  const session = await openSession(gateways[replica], upstream, key)
  sessions.push(session)
  return session
}

const left = (replica: 0 | 1, key: KeyName): Promise<number | undefined> =>
  leftOf(gateways[replica], 'tokensPerMinute', key)

describe('Realtime sessions of a key on two replicas', () => {
  it('ask at once for more than fits, and get exactly as many answers as do', async () => {
    const ten: LimitedSession[] = []
    while (ten.length < 10) ten.push(await open(ten.length % 2 === 0 ? 0 : 1, 'exact'))
    await Promise.all(ten.map((session) => judged(session, CREATE)))
    expect(createsOf(ten)).toBe(4)
    for (const replica of [0, 1] as const) expect(await left(replica, 'exact')).toBeLessThan(COST)
  })

  it('hold seconds of audio together as well', async () => {
    const three = [await open(0, 'spoken'), await open(1, 'spoken'), await open(0, 'spoken')]
    for (const session of three) await judged(session, { type: 'response.create' })
    expect(createsOf(three.slice(0, 2))).toBe(2)
    expect(await three[2]?.client.next('error')).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
  })

  it('are refused by a replica that knows nothing yet of what the other has spent', async () => {
    const [one, other] = [await open(0, 'spent'), await open(1, 'spent')]
    await judged(one, CREATE)
    await say(one, CREATED)
    await say(one, doneWith(2000))
    await comesTrue(async () => (await left(0, 'spent')) === 0)
    await judged(other, CREATE)
    expect(createsOf([other])).toBe(0)
    expect(await other.client.next('error')).toMatchObject({ error: { code: 'rate_limit_exceeded', event_id: 'mine' } })
  })

  it('have what an answer on the other replica has reserved and not used', async () => {
    const [one, other] = [await open(0, 'settled'), await open(1, 'settled')]
    await judged(one, CREATE)
    await judged(other, CREATE)
    expect(createsOf([other])).toBe(0)
    await say(one, CREATED)
    await say(one, doneWith(10))
    await comesTrue(async () => (await left(1, 'settled')) === COST + 50)
    await judged(other, CREATE)
    expect(createsOf([other])).toBe(1)
  })

  it('have what a session that was cut off on the other replica had reserved', async () => {
    const [one, other] = [await open(0, 'left'), await open(1, 'left')]
    await judged(one, CREATE)
    one.client.socket.terminate()
    await comesTrue(async () => (await left(1, 'left')) === COST + 60)
    await judged(other, CREATE)
    expect(createsOf([other])).toBe(1)
  })

  it('are heard again once the other replica has given back what it held of the whole limit', async () => {
    const [one, other] = [await open(0, 'held'), await open(1, 'held')]
    await judged(one, CREATE)
    await judged(other, CREATE, APPEND)
    expect(other.heard).not.toContain(APPEND.type)
    await say(one, CREATED)
    await say(one, doneWith(0))
    await comesTrue(async () => {
      await judged(other, APPEND)
      return other.heard.includes(APPEND.type)
    })
  })

  it('keep their order and have their share while Redis hangs, and nothing stays counted there', async () => {
    const session = await open(0, 'away')
    redis.pause()
    await judged(session, CREATE, APPEND, createOf(400))
    expect(session.heard).toEqual(['response.create', APPEND.type, 'input_audio_buffer.clear'])
    expect(await session.client.next('error')).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
    redis.resume()
    const { application } = gateways[0]
    await comesTrue(async () => /^gateway_redis_away 0$/m.test(await application.get(Metrics).registry.metrics()))
    await say(session, CREATED)
    await say(session, doneWith(0))
    await comesTrue(async () => (await left(1, 'away')) === 1000)
  })
})
