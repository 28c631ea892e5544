import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { Redis } from 'ioredis'
import { Metrics } from '../../src/observability/metrics.js'
import { sendRaw, SPEECH_PATH, speechText, startGateway, type TestGateway } from '../support/gateway.js'
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
} from '../support/limited-gateway.js'
import { realtimeChannel, type RealtimeUpstream, startRealtimeUpstream } from '../support/realtime-upstream.js'
import {
  fieldPart,
  filePart,
  MULTIPART,
  multipartBytes,
  TRANSCRIPTIONS,
  wavOfSeconds,
} from '../support/upload-server.js'
import type { BalancerAnswers } from './balancer.js'
import {
  keysWith,
  LimitedCaller,
  ofStatus,
  refusalOf,
  rush,
  RUSH_CALLERS,
  type RushAnswer,
  rushUntilRefused,
} from './callers.js'
import { type ChatCluster, CLUSTER_START_MS, type Replica, startChatCluster } from './cluster.js'
import { comesTrue, startRedis, type TestRedis, until } from './daemon.js'

/** After that its window is over, and more would be served. */
const RUSH_MS = 55_000

describe('limits balanced', () => {
  /** Each of its own, so that no test uses up another's. */
  const KEYS = {
    requests: { requestsPerMinute: 600 },
    tokens: { tokensPerMinute: 60_000 },
    audio: { audioSecondsPerMinute: 1800 },
    places: { concurrency: 6 },
    sessions: { realtimeSessions: 2 },
  }

  /** What a call may answer at most: with its prompt it is what is reserved for it, and a part of that is given back. */
  const ANSWER_TOKENS = 50

  /** About nine seconds when they are spoken, for which ten are reserved: as for the recording. */
  const SPOKEN = 'a'.repeat(150)
  const SPOKEN_BYTES_PER_SECOND = 48_000
  const RECORDING = multipartBytes([filePart(wavOfSeconds(10)), fieldPart('model', 'whisper-1')])

  let cluster: ChatCluster
  beforeAll(async () => {
    cluster = await startChatCluster({ keys: keysWith(KEYS) })
  }, CLUSTER_START_MS)
  afterAll(() => cluster.close())

  const callerOf = (key: keyof typeof KEYS, url = cluster.url): LimitedCaller => new LimitedCaller(url, key)

  interface UsingAnswer extends RushAnswer {
    /** What it says that it has used. */
    readonly used: number
  }

  async function chat(key: 'requests' | 'tokens', text = 'Hi'): Promise<UsingAnswer> {
    const answer = await callerOf(key).chat(text, { max_tokens: ANSWER_TOKENS })
    const body = (await answer.json()) as { readonly usage?: { readonly total_tokens: number } }
    return { status: answer.status, used: body.usage?.total_tokens ?? 0 }
  }

  /** Seconds of speech, as many as there are in the bytes. */
  async function speak(): Promise<UsingAnswer> {
    const body = speechText(SPOKEN, { response_format: 'pcm' })
    const answer = await sendRaw(cluster.url, { path: SPEECH_PATH, headers: { authorization: 'Bearer audio' }, body })
    return { status: answer.status, used: answer.status === 200 ? answer.body.length / SPOKEN_BYTES_PER_SECOND : 0 }
  }

  /** Seconds of a recording, as many as its transcript says. */
  async function transcribe(): Promise<UsingAnswer> {
    const headers = { ...MULTIPART, authorization: 'Bearer audio' }
    const { status, text } = await sendRaw(cluster.url, { path: TRANSCRIPTIONS, headers, body: RECORDING })
    const { usage } = JSON.parse(text) as { readonly usage?: { readonly seconds: number } }
    return { status, used: usage?.seconds ?? 0 }
  }

  const answersOfEach = (): Promise<BalancerAnswers[]> =>
    Promise.all(cluster.replicas.map((_replica, index) => cluster.balancer.answers(index + 1)))

  /** What came of it, and how many answers each replica gave meanwhile, as the balancer has counted them. */
  async function dividedOf<Result>(work: () => Promise<Result>): Promise<[Result, readonly BalancerAnswers[]]> {
    const before = await answersOfEach()
    const result = await work()
    const parts = (await answersOfEach()).map(({ served, refused }, index) => ({
      served: served - (before[index]?.served ?? 0),
      refused: refused - (before[index]?.refused ?? 0),
    }))
    return [result, parts]
  }

  const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)

  /** All answers are theirs, and a quarter at least of what was served was served by each. */
  function expectBothServed(parts: readonly BalancerAnswers[], answers: readonly RushAnswer[]): void {
    const served = ofStatus(answers, 200).length
    expect(sumOf(parts.map((part) => part.served))).toBe(served)
    expect(sumOf(parts.map((part) => part.refused))).toBe(answers.length - served)
    for (const part of parts) expect(part.served).toBeGreaterThan(served / 4)
  }

  /** Two in a hundred more or less. */
  function expectShared(used: number, limit: number): void {
    expect(used).toBeGreaterThanOrEqual(0.98 * limit)
    expect(used).toBeLessThanOrEqual(1.02 * limit)
  }

  describe('Two replicas behind the balancer', () => {
    it(
      'serve 600 of 1,000 requests that all come at once, within two in a hundred',
      async () => {
        const [answers, parts] = await dividedOf(() => rush(1000, () => chat('requests')))
        const served = ofStatus(answers, 200).length
        expectShared(served, KEYS.requests.requestsPerMinute)
        expect(served + ofStatus(answers, 429).length).toBe(1000)
        expectBothServed(parts, answers)
      },
      RUSH_MS,
    )

    it(
      'serve as many tokens as one key has a minute, within two in a hundred',
      async () => {
        const [answers, parts] = await dividedOf(() => rushUntilRefused(() => chat('tokens', '#words=20')))
        expect(ofStatus(answers, 429)).toHaveLength(RUSH_CALLERS)
        expectShared(sumOf(answers.map(({ used }) => used)), KEYS.tokens.tokensPerMinute)
        expectBothServed(parts, answers)
      },
      RUSH_MS,
    )

    it(
      'speak and hear as many seconds as one key has a minute, within two in a hundred',
      async () => {
        const [answers, parts] = await dividedOf(() =>
          rushUntilRefused((number) => (number % 2 === 0 ? speak() : transcribe())),
        )
        expect(ofStatus(answers, 429)).toHaveLength(RUSH_CALLERS)
        expectShared(sumOf(answers.map(({ used }) => used)), KEYS.audio.audioSecondsPerMinute)
        expectBothServed(parts, answers)
      },
      RUSH_MS,
    )

    it('have as many under way as the limit says, of all that come at once', async () => {
      const controller = new AbortController()
      const refusals: unknown[] = []
      const [asked, parts] = await dividedOf(async () => {
        const calls = Array.from({ length: 40 }, async () => {
          const answer = await callerOf('places')
            .chat('#hang', {}, controller.signal)
            .catch(() => undefined)
          if (answer !== undefined) refusals.push(await refusalOf(answer))
          return answer === undefined ? 'left' : 'answered'
        })
        await comesTrue(() => refusals.length === 34)
        return calls
      })
      expect(refusals).toEqual(Array.from({ length: 34 }, () => [429, 'concurrency; scope=key:places; reset=1']))
      expect(sumOf(parts.map(({ refused }) => refused))).toBe(34)
      for (const { refused } of parts) expect(refused).toBeGreaterThan(0)
      for (const { url } of cluster.replicas) expect(await callerOf('places', url).inUse('concurrency')).toBe(6)
      controller.abort()
      expect((await Promise.all(asked)).filter((end) => end === 'left')).toHaveLength(6)
      for (const { url } of cluster.replicas)
        await comesTrue(async () => (await callerOf('places', url).inUse('concurrency')) === 0)
      expect((await callerOf('places').chat()).status).toBe(200)
    })

    it('hold as many sessions as the key has, one each, and the next one once one has ended', async () => {
      const caller = callerOf('sessions')
      const held = async (): Promise<number[]> => [
        await cluster.balancer.sessions(1),
        await cluster.balancer.sessions(2),
      ]
      await comesTrue(async () => sumOf(await held()) === 0)
      const sessions = [await caller.dial(), await caller.dial()]
      expect(await held()).toEqual([1, 1])
      const [refusals, parts] = await dividedOf(() => Promise.all([1, 2, 3, 4].map(() => caller.dialled())))
      const refusal = [429, 'realtimeSessions; scope=key:sessions; reset=1']
      expect(refusals).toEqual([refusal, refusal, refusal, refusal])
      for (const { refused } of parts) expect(refused).toBeGreaterThan(0)
      sessions[0]?.close()
      await comesTrue(async () => (await caller.inUse('realtimeSessions')) === 1)
      sessions.push(await caller.dial())
      expect(await caller.inUse('realtimeSessions')).toBe(2)
      for (const session of sessions) session.terminate()
    })
  })
})

describe('limits killed', () => {
  const KEYS = { held: { concurrency: 1, tokensPerMinute: 1000 }, talking: { realtimeSessions: 1 } } as const
  type KeyName = keyof typeof KEYS

  /** Of a lease, and how often it is renewed (docs/limits.md). */
  const LEASE_MS = 15_000
  const RENEWAL_MS = 5_000

  /** It begins with the first use. */
  const WINDOW_MS = 60_000

  /** For Redis and the two processes beside others on a busy machine. */
  const SLACK_MS = 2_000

  const RESERVED = { max_tokens: 900 }
  const MODEST = { max_tokens: 5 }

  /** Names in Redis. */
  const PLACE = 'gateway:limits:concurrency:key:held'
  const TOKENS = 'gateway:limits:tokensPerMinute:key:held'
  const SESSION = 'gateway:limits:realtimeSessions:key:talking'

  let cluster: ChatCluster
  let observer: Redis
  let survivor: Replica
  /** What the callers of the dead one saw. */
  let seen: readonly unknown[]
  /** By the clock of this machine, which is that of Redis, too. */
  let killedAtMs: number

  const at = ({ url }: Replica, key: KeyName): LimitedCaller => new LimitedCaller(url, key)

  /** One replica is killed while it holds a place, a session and nine in ten of a minute's tokens. */
  async function killAtWork(): Promise<void> {
    const [victim, other] = cluster.replicas as [Replica, Replica]
    survivor = other
    const asked = cluster.simulator.nextRequest()
    const hanging = at(victim, 'held')
      .chat('#hang', RESERVED)
      .catch(() => 'cut')
    await asked
    const session = await at(victim, 'talking').dial()
    const ended = new Promise((resolve) => session.once('close', resolve))
    killedAtMs = Date.now()
    await victim.kill()
    seen = [await hanging, await ended]
  }

  beforeAll(async () => {
    cluster = await startChatCluster({ keys: keysWith(KEYS) })
    observer = new Redis(cluster.redis.url)
    await killAtWork()
  }, CLUSTER_START_MS)
  afterAll(async () => {
    observer.disconnect()
    await cluster.close()
  })

  /** When the one lease there is ends. */
  async function leaseEndMs(name: string): Promise<number> {
    const [, endMs, ...more] = await observer.zrange(name, '0', '-1', 'WITHSCORES')
    expect(more).toEqual([])
    return Number(endMs)
  }

  /** Sends requests to the surviving replica until it admits one, and returns the time of that. */
  const letInAtMs = (attempt: () => Promise<number | undefined>, served: number): Promise<number> =>
    until(
      async () => {
        const status = await attempt()
        if (status === served) return Date.now()
        expect(status).toBe(429)
        return undefined
      },
      () => `no request is admitted ${LEASE_MS + SLACK_MS} ms after the kill`,
      LEASE_MS + SLACK_MS,
    )

  function expectOfDead(endMs: number): void {
    expect(endMs).toBeLessThanOrEqual(killedAtMs + LEASE_MS + SLACK_MS)
    // Renewed while its process ran.
    expect(endMs).toBeGreaterThanOrEqual(killedAtMs + LEASE_MS - RENEWAL_MS - SLACK_MS)
  }

  describe('What a replica held when it was killed', () => {
    it(
      'keeps others out for as long as its leases last, and no longer',
      async () => {
        // The callers of the dead one know.
        expect(seen).toEqual(['cut', 1006])
        const [placeEndMs, sessionEndMs] = [await leaseEndMs(PLACE), await leaseEndMs(SESSION)]
        expectOfDead(placeEndMs)
        expectOfDead(sessionEndMs)
        const [held, talking] = [at(survivor, 'held'), at(survivor, 'talking')]
        expect(await refusalOf(await held.chat('Hi', MODEST))).toEqual([429, 'concurrency; scope=key:held; reset=1'])
        expect(await talking.dialled()).toEqual([429, 'realtimeSessions; scope=key:talking; reset=1'])
        const [placeAtMs, sessionAtMs] = await Promise.all([
          letInAtMs(async () => (await refusalOf(await held.chat('Hi', MODEST)))[0], 200),
          letInAtMs(async () => (await talking.dialled())[0], 101),
        ])
        expect([placeAtMs >= placeEndMs, sessionAtMs >= sessionEndMs]).toEqual([true, true])
        expect(placeAtMs).toBeLessThan(placeEndMs + SLACK_MS)
        expect(sessionAtMs).toBeLessThan(sessionEndMs + SLACK_MS)
      },
      LEASE_MS + 10_000,
    )

    it('is free again after the end of the request admitted then', async () => {
      await comesTrue(async () => (await at(survivor, 'talking').inUse('realtimeSessions')) === 0)
      await comesTrue(async () => (await at(survivor, 'held').inUse('concurrency')) === 0)
    })

    it('stays reserved until its minute is over: its usage is unknown', async () => {
      const caller = at(survivor, 'held')
      await comesTrue(async () => (await caller.inUse('concurrency')) === 0)
      const askedAtMs = Date.now()
      const leftMs = await observer.pttl(TOKENS)
      expect(leftMs).toBeGreaterThan(0)
      expect(leftMs).toBeLessThanOrEqual(killedAtMs + WINDOW_MS - askedAtMs)
      expect(await caller.remaining('tokensPerMinute')).toBeLessThan(100)
      const refused = await caller.chat('Hi', RESERVED)
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan((leftMs - SLACK_MS) / 1000)
      const limit: unknown = expect.stringMatching(/^tokensPerMinute; scope=key:held; reset=\d+$/)
      expect(await refusalOf(refused)).toEqual([429, limit])
      // The rest of the minute is taken from it: its end is that of every window, by the clock of Redis.
      await observer.pexpire(TOKENS, 300)
      await comesTrue(async () => (await caller.remaining('tokensPerMinute')) === 1000)
      expect((await caller.chat('Hi', RESERVED)).status).toBe(200)
    })
  })
})

describe('limits', () => {
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
          {
            id: 'p1',
            provider: 'p1',
            baseUrl: simulator.url,
            credentials: 'upstream',
            models: ['gpt-4o-mini', 'gpt-4.1'],
          },
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
      const answer = await at(0, 'tokens').chat('Hi', { model: 'gpt-4.1', max_tokens: 19_000 })
      const { usage } = (await answer.json()) as { usage: { total_tokens: number } }
      const other = at(1, 'tokens')
      await comesTrue(async () => (await other.remaining('tokensPerMinute')) === 20_000 - usage.total_tokens)
      expect((await other.chat('Hi', { model: 'gpt-4.1', max_tokens: 19_000 })).status).toBe(200)
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

    it('continue at their shares when Redis dies under load, and refuse no request for it', async () => {
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
})

describe('limits realtime', () => {
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
      expect(await other.client.next('error')).toMatchObject({
        error: { code: 'rate_limit_exceeded', event_id: 'mine' },
      })
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
})
