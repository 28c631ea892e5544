import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Redis } from 'ioredis'
import { createLimitStore, type LimitStore } from '../../src/limits/counter-store.js'
import { RedisLink } from '../../src/limits/redis-connection.js'
import { RedisLeases } from '../../src/limits/redis-counters.js'
import { SharedLeases } from '../../src/limits/shared-leases.js'
import { limitStoreContract } from '../contracts/limit-store.contract.js'
import { comesTrue } from './daemon.js'
import { startRedis, type TestRedis } from './redis.js'

jest.setTimeout(120_000)

const SILENT = { info: () => undefined, warn: () => undefined }

limitStoreContract('in Redis, by two processes', async () => {
  const redis = await startRedis()
  // A busy machine is no outage.
  const settings = { url: redis.url, timeoutMs: 5000, localShare: 0.5 }
  const stores = [1, 2].map(() => createLimitStore(settings, 1, SILENT))
  await Promise.all(stores.map((store) => store.open()))
  const [one, other] = stores as [LimitStore, LimitStore]
  return {
    one: one.ledger,
    other: other.ledger,
    close: async () => {
      await Promise.all(stores.map((store) => store.close()))
      await redis.close()
    },
  }
})

describe('Limits counted in Redis', () => {
  let redis: TestRedis
  const open: { close(): Promise<unknown> }[] = []
  const lines: string[] = []
  const logger = {
    info: (text: unknown) => void lines.push(String(text)),
    warn: (_fields: unknown, text?: unknown) => void lines.push(String(text)),
  }

  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(async () => {
    await Promise.all(open.map((opened) => opened.close()))
    await redis.close()
  })

  /** Says something to Redis that the gateway never would. */
  async function command(name: string, ...parameters: string[]): Promise<unknown> {
    const client = new Redis(redis.url)
    try {
      return await client.call(name, ...parameters)
    } finally {
      client.disconnect()
    }
  }

  async function newStore(processes = 1, timeoutMs = 250): Promise<LimitStore> {
    const store = createLimitStore({ url: redis.url, timeoutMs, localShare: 0.5 }, processes, logger)
    open.push(store)
    await store.open()
    return store
  }

  it('are counted here at a share while it is away, told of once, and there again once it is back', async () => {
    const store = await newStore()
    lines.length = 0
    await store.ledger.add('outage', 90, 100)
    await store.ledger.leases.take('outage-places', 'a', 4)
    await redis.kill()
    await comesTrue(() => store.isAway())
    const startedAtMs = performance.now()
    expect(await store.ledger.add('outage', 50, 100)).toMatchObject({ fits: true, used: 50, allowed: 50 })
    expect(await store.ledger.add('outage', 1, 100)).toMatchObject({ fits: false })
    expect(await store.ledger.leases.take('outage-places', 'b', 4)).toBe(true)
    expect(await store.ledger.leases.take('outage-places', 'c', 4)).toBe(false)
    expect(performance.now() - startedAtMs).toBeLessThan(250)
    expect(lines).toEqual(['redis is away: each process keeps to its own share of the limits'])
    await redis.start()
    await comesTrue(() => !store.isAway())
    expect(lines.slice(1)).toEqual(['redis is back: limits are shared again'])
    expect(await store.ledger.add('outage', 100, 100)).toMatchObject({ fits: true, used: 100, allowed: 100 })
    // Those under way were told of again.
    const other = await newStore()
    expect(await other.ledger.leases.count('outage-places')).toBe(2)
  })

  it('are given back to whoever counted them, before, during and after it was away', async () => {
    const store = await newStore()
    const before = await store.ledger.add('homes', 60, 100)
    await redis.kill()
    await comesTrue(() => store.isAway())
    const during = await store.ledger.add('homes', 40, 100)
    if (before === undefined || during === undefined) throw new Error('nothing was counted')
    await store.ledger.giveBack('homes', 60, 100, before)
    expect(await store.ledger.peek('homes', 100)).toMatchObject({ used: 40, allowed: 50 })
    await redis.start()
    await comesTrue(() => !store.isAway())
    await store.ledger.giveBack('homes', 40, 100, during)
    expect(await store.ledger.peek('homes', 100)).toMatchObject({ used: 0 })
  })

  it('make nobody wait for longer than the deadline when it hangs', async () => {
    const store = await newStore(1, 100)
    redis.pause()
    try {
      const startedAtMs = performance.now()
      const [added, taken] = await Promise.all([
        store.ledger.add('hanging', 10, 100),
        store.ledger.leases.take('hanging-places', 'a', 2),
      ])
      const waitedMs = performance.now() - startedAtMs
      expect([added?.fits, added?.allowed, taken]).toEqual([true, 50, true])
      expect(waitedMs).toBeGreaterThanOrEqual(95)
      expect(waitedMs).toBeLessThan(1000)
      const againAtMs = performance.now()
      for (let count = 0; count < 40; count++) await store.ledger.add('hanging', 1, 100)
      expect(performance.now() - againAtMs).toBeLessThan(95)
    } finally {
      redis.resume()
    }
    await comesTrue(() => !store.isAway())
  })

  it('are of a process that was killed for seconds only', async () => {
    const store = await newStore()
    const client = await newStore()
    await store.ledger.leases.take('leases', 'dead', 1)
    await store.close()
    expect(await client.ledger.leases.take('leases', 'waiting', 1)).toBe(false)
    // As if its fifteen seconds were over; nobody renews it any more.
    await command('ZADD', 'gateway:limits:leases', '1', 'dead')
    expect(await client.ledger.leases.take('leases', 'waiting', 1)).toBe(true)
    const ttlMs = Number(await command('PTTL', 'gateway:limits:leases'))
    expect(ttlMs).toBeGreaterThan(10_000)
    expect(ttlMs).toBeLessThanOrEqual(15_000)
  })

  it('hold a place for as long as its call lasts, and no longer', async () => {
    const link = new RedisLink(redis.url, 5000, SILENT)
    open.push(link)
    await link.open()
    const leases = new SharedLeases(new RedisLeases(link, 15_000), 0.5)
    const other = await newStore()
    await leases.take('long', 'stream', 1)
    await command('ZADD', 'gateway:limits:long', '1', 'stream')
    expect(await other.ledger.leases.count('long')).toBe(0)
    await leases.renew()
    expect(await other.ledger.leases.count('long')).toBe(1)
    leases.release('long', 'stream')
    await leases.renew()
    // Nobody waits for a release; another connection might be heard before it.
    await link.client.ping()
    expect(await other.ledger.leases.count('long')).toBe(0)
  })

  it('do not stop a start while it cannot be reached, and are shared once it can', async () => {
    await redis.kill()
    const store = await newStore()
    expect(store.isAway()).toBe(true)
    expect(await store.ledger.add('start', 50, 100)).toMatchObject({ fits: true, allowed: 50 })
    await redis.start()
    await comesTrue(() => !store.isAway())
    expect(await store.ledger.add('start', 50, 100)).toMatchObject({ fits: true, allowed: 100, used: 50 })
  })

  it('are divided among the processes of a replica while it is away', async () => {
    const store = await newStore(4)
    await redis.kill()
    await comesTrue(() => store.isAway())
    expect(await store.ledger.add('workers', 1, 100)).toMatchObject({ fits: true, allowed: 12 })
    await redis.start()
    await comesTrue(() => !store.isAway())
  })

  it('are not trusted to a server that answers but takes no writes', async () => {
    const store = await newStore()
    await command('CONFIG', 'SET', 'maxmemory', '1')
    try {
      expect(await store.ledger.add('full', 10, 100)).toMatchObject({ fits: true, allowed: 50 })
      expect(store.isAway()).toBe(true)
    } finally {
      await command('CONFIG', 'SET', 'maxmemory', '0')
    }
    await comesTrue(() => !store.isAway())
  })
})
