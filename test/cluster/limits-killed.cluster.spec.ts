import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Redis } from 'ioredis'
import { type ChatCluster, startChatCluster } from './chat-cluster.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue, until } from './daemon.js'
import { keysWith, LimitedCaller, refusalOf } from './limited-caller.js'
import type { Replica } from './replica.js'

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

/** Asks the survivor until it lets somebody in, and gives the time of that. */
const letInAtMs = (attempt: () => Promise<number | undefined>, served: number): Promise<number> =>
  until(
    async () => {
      const status = await attempt()
      if (status === served) return Date.now()
      expect(status).toBe(429)
      return undefined
    },
    () => `nobody is let in ${LEASE_MS + SLACK_MS} ms after the kill`,
    LEASE_MS + SLACK_MS,
  )

function expectOfDead(endMs: number): void {
  expect(endMs).toBeLessThanOrEqual(killedAtMs + LEASE_MS + SLACK_MS)
  // Renewed as long as somebody did it.
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

  it('is free again once whoever was let in then has left', async () => {
    await comesTrue(async () => (await at(survivor, 'talking').inUse('realtimeSessions')) === 0)
    await comesTrue(async () => (await at(survivor, 'held').inUse('concurrency')) === 0)
  })

  it('stays reserved until its minute is over: nobody knows how much of it was used', async () => {
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
