import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Redis } from 'ioredis'
import { createLimitStore, type LimitStore } from '../../src/limits/counter-store.js'
import type { Soon } from '../../src/limits/limit-windows.js'
import { RedisLink } from '../../src/limits/redis-connection.js'
import { RedisLeases } from '../../src/limits/redis-counters.js'
import { SharedLeases } from '../../src/limits/shared-leases.js'
import { comesTrue } from './daemon.js'
import { startRedis, type TestRedis } from './redis.js'

jest.setTimeout(120_000)

const SILENT = { info: () => undefined, warn: () => undefined }

/** Redis is given up on sooner than its connection is: an answer can come late. */
const TIMEOUT_MS = 400

let redis: TestRedis
let observer: Redis
const closers: (() => Promise<void>)[] = []

beforeAll(async () => {
  redis = await startRedis()
  observer = new Redis(redis.url)
})
afterEach(async () => {
  redis.resume()
  for (const close of closers.splice(0)) await close()
  await observer.flushall()
})
afterAll(async () => {
  observer.disconnect()
  await redis.close()
})

async function newStore(timeoutMs = TIMEOUT_MS): Promise<LimitStore> {
  const store = createLimitStore({ url: redis.url, timeoutMs, localShare: 0.5 }, 1, SILENT)
  closers.push(() => store.close())
  await store.open()
  return store
}

/** While Redis hangs for longer than anybody waits, and not so long that its connection is given up. */
async function whileItHangs<Result>(store: LimitStore, work: () => Soon<Result>): Promise<Result> {
  redis.pause()
  try {
    const result = await work()
    await comesTrue(() => store.isAway())
    return result
  } finally {
    redis.resume()
  }
}

const used = async (key: string): Promise<number> => Number((await observer.get(`gateway:limits:${key}`)) ?? 0)
const held = (key: string): Promise<string[]> => observer.zrange(`gateway:limits:${key}`, '0', '-1')

describe('An answer of Redis that nobody waited for', () => {
  it('leaves nothing counted there of what was counted here instead', async () => {
    const store = await newStore()
    // So that the script is known: else nothing is carried out while it hangs.
    await store.ledger.add('tokens', 1, 100)
    const addition = await whileItHangs(store, () => store.ledger.add('tokens', 40, 100))
    expect(addition).toMatchObject({ fits: true, allowed: 50 })
    await comesTrue(() => !store.isAway())
    await comesTrue(async () => (await used('tokens')) === 1)
  })

  it('leaves no place taken by a call that was over by then', async () => {
    const store = await newStore()
    await store.ledger.leases.take('places', 'first', 4)
    await whileItHangs(store, async () => {
      expect(await store.ledger.leases.take('places', 'late', 4)).toBe(true)
      store.ledger.leases.release('places', 'late')
    })
    await comesTrue(() => !store.isAway())
    await comesTrue(async () => (await held('places')).join() === 'first')
  })

  it('leaves no place taken by a call that was refused here', async () => {
    const store = await newStore()
    await store.ledger.leases.take('refused', 'first', 2)
    await whileItHangs(store, async () => {
      // Half of two: the first fills it.
      expect(await store.ledger.leases.take('refused', 'late', 2)).toBe(false)
    })
    await comesTrue(() => !store.isAway())
    await comesTrue(async () => (await held('refused')).join() === 'first')
  })

  it('leaves a call that is still under way its place', async () => {
    const store = await newStore()
    await store.ledger.leases.take('kept', 'first', 4)
    await whileItHangs(store, async () => {
      expect(await store.ledger.leases.take('kept', 'late', 4)).toBe(true)
    })
    const seen: boolean[] = []
    await comesTrue(async () => {
      seen.push((await held('kept')).includes('late'))
      return !store.isAway()
    })
    expect(seen.slice(seen.indexOf(true))).not.toContain(false)
    await comesTrue(async () => (await held('kept')).length === 2)
    store.ledger.leases.release('kept', 'late')
    await comesTrue(async () => (await held('kept')).join() === 'first')
  })

  it('does not keep what is given back while it is awaited', async () => {
    const store = await newStore()
    const addition = await store.ledger.add('back', 60, 100)
    await store.ledger.leases.take('back-places', 'first', 4)
    await whileItHangs(store, async () => {
      await store.ledger.add('other', 1, 100)
      if (addition !== undefined) await store.ledger.giveBack('back', 50, 100, addition)
      store.ledger.leases.release('back-places', 'first')
    })
    await comesTrue(async () => (await used('back')) === 10)
    await comesTrue(async () => (await held('back-places')).length === 0)
  })
})

describe('The renewal of places', () => {
  async function manyLeases(keys: number): Promise<SharedLeases> {
    const link = new RedisLink(redis.url, 5000, SILENT)
    closers.push(() => link.close())
    await link.open()
    const leases = new SharedLeases(new RedisLeases(link, 15_000), 0.5)
    for (let key = 0; key < keys; key++) await leases.take(`key-${key}`, 'call', 1)
    await observer.config('RESETSTAT')
    return leases
  }

  async function scriptsRun(): Promise<number> {
    const stats = await observer.info('commandstats')
    const calls = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
    return calls('evalsha') + calls('eval')
  }

  it('takes a command for hundreds of keys, not one for each', async () => {
    const leases = await manyLeases(1200)
    await observer.zadd('gateway:limits:key-7', 1, 'call')
    await leases.renew()
    // The first is sent twice: Redis does not know the script yet.
    expect(await scriptsRun()).toBeLessThanOrEqual(6)
    for (const key of [0, 7, 1199]) {
      const endsAtMs = Number(await observer.zscore(`gateway:limits:key-${key}`, 'call'))
      expect(endsAtMs).toBeGreaterThan(Date.now() + 10_000)
      expect(await observer.pttl(`gateway:limits:key-${key}`)).toBeGreaterThan(10_000)
    }
  })

  it('holds all places of one key that has many', async () => {
    const leases = await manyLeases(0)
    for (let call = 0; call < 1100; call++) await leases.take('one', `call-${call}`, 5000)
    await observer.del('gateway:limits:one')
    await leases.renew()
    expect(await observer.zcard('gateway:limits:one')).toBe(1100)
  })

  it('never overtakes itself: while one is under way, those that are due are one', async () => {
    const leases = await manyLeases(3)
    await leases.renew()
    await observer.config('RESETSTAT')
    redis.pause()
    const renewals = Array.from({ length: 10 }, () => leases.renew())
    redis.resume()
    await Promise.all(renewals)
    expect(await scriptsRun()).toBe(2)
  })
})
