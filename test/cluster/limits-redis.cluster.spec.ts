import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { CounterStore } from '../../src/limits/key-limiter.js'
import { sharedStore } from '../../src/limits/shared-counter-store.js'
import type { Addition, MaybePromise, WindowState } from '../../src/limits/counters.js'
import type { LimitCounters } from '../../src/limits/key-limiter.js'
import { RedisConnection } from '../../src/limits/redis-connection.js'
import { RedisLeases, SharedLeases } from '../../src/limits/redis-counters.js'
import { limitStoreContract } from '../contracts/limit-store.contract.js'
import { comesTrue, startRedis, type TestRedis } from './daemon.js'

describe('limits redis', () => {
  jest.setTimeout(120_000)

  const SILENT = { info: () => undefined, warn: () => undefined }

  limitStoreContract('in Redis, by two processes', async () => {
    const redis = await startRedis()
    // A busy machine is no outage.
    const settings = { url: redis.url, timeoutMs: 5000, localShare: 0.5 }
    const stores = [1, 2].map(() => sharedStore(settings, 1, SILENT))
    await Promise.all(stores.map((store) => store.open()))
    const [one, other] = stores as [CounterStore, CounterStore]
    return {
      one: one.counters,
      other: other.counters,
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

    async function newStore(processes = 1, timeoutMs = 250): Promise<CounterStore> {
      const store = sharedStore({ url: redis.url, timeoutMs, localShare: 0.5 }, processes, logger)
      open.push(store)
      await store.open()
      return store
    }

    it('are counted here at a share during an outage, logged once, and there again after it', async () => {
      const store = await newStore()
      lines.length = 0
      await store.counters.add('outage', 90, 100)
      await store.counters.leases.take('outage-places', 'a', 4)
      await redis.kill()
      await comesTrue(() => store.isUnavailable())
      const startedAtMs = performance.now()
      expect(await store.counters.add('outage', 50, 100)).toMatchObject({ fits: true, used: 50, allowed: 50 })
      expect(await store.counters.add('outage', 1, 100)).toMatchObject({ fits: false })
      expect(await store.counters.leases.take('outage-places', 'b', 4)).toBe(true)
      expect(await store.counters.leases.take('outage-places', 'c', 4)).toBe(false)
      expect(performance.now() - startedAtMs).toBeLessThan(250)
      expect(lines).toEqual(['redis is away: each process keeps to its own share of the limits'])
      await redis.start()
      await comesTrue(() => !store.isUnavailable())
      expect(lines.slice(1)).toEqual(['redis is back: limits are shared again'])
      expect(await store.counters.add('outage', 100, 100)).toMatchObject({ fits: true, used: 100, allowed: 100 })
      // Those in progress were reported again.
      const other = await newStore()
      expect(await other.counters.leases.count('outage-places')).toBe(2)
    })

    it('are returned where they were counted, before, during and after an outage', async () => {
      const store = await newStore()
      const before = await store.counters.add('homes', 60, 100)
      await redis.kill()
      await comesTrue(() => store.isUnavailable())
      const during = await store.counters.add('homes', 40, 100)
      if (before === undefined || during === undefined) throw new Error('nothing was counted')
      await store.counters.giveBack('homes', 60, 100, before)
      expect(await store.counters.peek('homes', 100)).toMatchObject({ used: 40, allowed: 50 })
      await redis.start()
      await comesTrue(() => !store.isUnavailable())
      await store.counters.giveBack('homes', 40, 100, during)
      expect(await store.counters.peek('homes', 100)).toMatchObject({ used: 0 })
    })

    it('delay no request beyond the deadline when it hangs', async () => {
      const store = await newStore(1, 100)
      redis.pause()
      try {
        const startedAtMs = performance.now()
        const [added, taken] = await Promise.all([
          store.counters.add('hanging', 10, 100),
          store.counters.leases.take('hanging-places', 'a', 2),
        ])
        const waitedMs = performance.now() - startedAtMs
        expect([added?.fits, added?.allowed, taken]).toEqual([true, 50, true])
        expect(waitedMs).toBeGreaterThanOrEqual(95)
        expect(waitedMs).toBeLessThan(1000)
        const againAtMs = performance.now()
        for (let count = 0; count < 40; count++) await store.counters.add('hanging', 1, 100)
        expect(performance.now() - againAtMs).toBeLessThan(95)
      } finally {
        redis.resume()
      }
      await comesTrue(() => !store.isUnavailable())
    })

    it('stay there, and nothing is logged, while it answers late on a starved machine', async () => {
      const store = await newStore(1, 100)
      lines.length = 0
      const over = new AbortController()
      const starved = (async () => {
        while (!over.signal.aborted) {
          redis.pause()
          await once(AbortSignal.timeout(300), 'abort')
          redis.resume()
          await once(AbortSignal.timeout(30), 'abort')
        }
      })()
      const endsAtMs = performance.now() + 4000
      let [added, local] = [0, 0]
      while (performance.now() < endsAtMs) {
        const { allowed } = (await store.counters.add('starved', 1, 1_000_000)) ?? {}
        if (allowed === 1_000_000) added++
        else local++
        await once(AbortSignal.timeout(10), 'abort')
      }
      over.abort()
      await starved
      expect(lines).toEqual([])
      // Those that came before the first late reply.
      expect(local).toBeLessThan(40)
      expect(added).toBeGreaterThan(local)
      expect(store.isUnavailable()).toBe(false)
    })

    it('are of a process that was killed for seconds only', async () => {
      const store = await newStore()
      const client = await newStore()
      await store.counters.leases.take('leases', 'dead', 1)
      await store.close()
      expect(await client.counters.leases.take('leases', 'waiting', 1)).toBe(false)
      // As if its fifteen seconds were over; it is not renewed any more.
      await command('ZADD', 'gateway:limits:leases', '1', 'dead')
      expect(await client.counters.leases.take('leases', 'waiting', 1)).toBe(true)
      const ttlMs = Number(await command('PTTL', 'gateway:limits:leases'))
      expect(ttlMs).toBeGreaterThan(10_000)
      expect(ttlMs).toBeLessThanOrEqual(15_000)
    })

    it('hold a place for as long as its call lasts, and no longer', async () => {
      const link = new RedisConnection(redis.url, 5000, SILENT)
      open.push(link)
      await link.open()
      const leases = new SharedLeases(new RedisLeases(link, 15_000), 0.5)
      const other = await newStore()
      await leases.take('long', 'stream', 1)
      await command('ZADD', 'gateway:limits:long', '1', 'stream')
      expect(await other.counters.leases.count('long')).toBe(0)
      await leases.renew()
      expect(await other.counters.leases.count('long')).toBe(1)
      leases.release('long', 'stream')
      await leases.renew()
      // A release is not awaited; another connection may be faster.
      await link.client.ping()
      expect(await other.counters.leases.count('long')).toBe(0)
    })

    it('do not stop a start while it cannot be reached, and are shared once it can', async () => {
      await redis.kill()
      const store = await newStore()
      expect(store.isUnavailable()).toBe(true)
      expect(await store.counters.add('start', 50, 100)).toMatchObject({ fits: true, allowed: 50 })
      await redis.start()
      await comesTrue(() => !store.isUnavailable())
      expect(await store.counters.add('start', 50, 100)).toMatchObject({ fits: true, allowed: 100, used: 50 })
    })

    it('are divided among the processes of a replica while it is away', async () => {
      const store = await newStore(4)
      await redis.kill()
      await comesTrue(() => store.isUnavailable())
      expect(await store.counters.add('workers', 1, 100)).toMatchObject({ fits: true, allowed: 12 })
      await redis.start()
      await comesTrue(() => !store.isUnavailable())
    })

    it('are not trusted to a server that answers but takes no writes', async () => {
      const store = await newStore()
      await command('CONFIG', 'SET', 'maxmemory', '1')
      try {
        expect(await store.counters.add('full', 10, 100)).toMatchObject({ fits: true, allowed: 50 })
        expect(store.isUnavailable()).toBe(true)
      } finally {
        await command('CONFIG', 'SET', 'maxmemory', '0')
      }
      await comesTrue(() => !store.isUnavailable())
    })
  })
})

describe('limits windows', () => {
  jest.setTimeout(120_000)

  const SILENT = { info: () => undefined, warn: () => undefined }

  /** A busy machine is no outage. */
  const TIMEOUT_MS = 5000

  const WINDOW_MS = 60_000
  const LEASE_MS = 15_000
  const HOUR_MS = 3_600_000

  /** Under which the limiter counts them. */
  const nameOf = (key: string): string => `gateway:limits:${key}`

  let redis: TestRedis
  let observer: Redis
  let store: CounterStore
  let ledger: LimitCounters

  beforeAll(async () => {
    redis = await startRedis()
    observer = new Redis(redis.url)
    store = sharedStore({ url: redis.url, timeoutMs: TIMEOUT_MS, localShare: 0.5 }, 1, SILENT)
    await store.open()
    ledger = store.counters
  })
  beforeEach(() => observer.flushall())
  afterAll(async () => {
    await store.close()
    observer.disconnect()
    await redis.close()
  })

  async function counted(key: string, points: number): Promise<Addition> {
    const addition = await ledger.add(key, points, 100)
    if (addition?.fits !== true) throw new Error('nothing was counted')
    return addition
  }

  /** Lets a window end, as its minute would. */
  async function end(key: string): Promise<void> {
    await observer.pexpire(nameOf(key), 1)
    await comesTrue(async () => (await observer.exists(nameOf(key))) === 0)
  }

  function expectWholeWindow(leftMs: number): void {
    expect(leftMs).toBeGreaterThan(WINDOW_MS - 10_000)
    expect(leftMs).toBeLessThanOrEqual(WINDOW_MS)
  }

  const leftOf = (state: WindowState | undefined): number => (state?.endsAtMs ?? NaN) - performance.now()

  describe('A window in Redis that is over', () => {
    it('leaves all of the limit to the next use, which opens another for a whole minute', async () => {
      await counted('next', 100)
      await end('next')
      const next = await ledger.add('next', 70, 100)
      expect(next).toMatchObject({ fits: true, counted: 70, used: 70 })
      expectWholeWindow(leftOf(next))
      expectWholeWindow(await observer.pttl(nameOf('next')))
    })

    it('takes nothing back, and is not opened by it', async () => {
      const addition = await counted('back', 80)
      await end('back')
      expect(await ledger.giveBack('back', 50, 100, addition)).toMatchObject({ used: 0, allowed: 100 })
      expect(await observer.exists(nameOf('back'))).toBe(0)
      expect(await ledger.add('back', 100, 100)).toMatchObject({ fits: true, used: 100 })
    })

    it('is reported as empty, and is not opened by the report', async () => {
      await counted('look', 80)
      await end('look')
      const seen = await ledger.peek('look', 100)
      expect(seen).toMatchObject({ used: 0, allowed: 100 })
      expect(leftOf(seen)).toBeLessThanOrEqual(0)
      expect(await observer.exists(nameOf('look'))).toBe(0)
    })

    it('is not opened by a request that never fits, which gets the time of a whole window', async () => {
      await counted('large', 80)
      await end('large')
      const refused = await ledger.add('large', 101, 100)
      expect(refused).toMatchObject({ fits: false, counted: 0, used: 0 })
      expectWholeWindow(leftOf(refused))
      expect(await observer.exists(nameOf('large'))).toBe(0)
    })

    it('is followed by one that is debited, whether the debit fits or not', async () => {
      await counted('debit', 80)
      await end('debit')
      expect(await ledger.debit('debit', 130, 100)).toMatchObject({ used: 130, allowed: 100 })
      expectWholeWindow(await observer.pttl(nameOf('debit')))
    })

    it('leaves its successor no less than empty, whatever is given back into it', async () => {
      const addition = await counted('less', 80)
      await end('less')
      await counted('less', 10)
      expect(await ledger.giveBack('less', 80, 100, addition)).toMatchObject({ used: 0 })
      expect(await ledger.giveBack('less', 80, 100, addition)).toMatchObject({ used: 0, allowed: 100 })
      expect(await observer.get(nameOf('less'))).toBe('0')
      expect(store.isUnavailable()).toBe(false)
      expectWholeWindow(await observer.pttl(nameOf('less')))
    })
  })

  /** What is done with a window of which 60 of 100 are used, and what is used then. */
  type Touch = readonly [
    name: string,
    used: number,
    touch: (addition: Addition) => MaybePromise<WindowState | undefined>,
  ]

  const TOUCHES: readonly Touch[] = [
    ['an addition that fits', 61, () => ledger.add('step', 1, 100)],
    ['an addition that does not fit', 60, () => ledger.add('step', 90, 100)],
    ['a debit', 150, () => ledger.debit('step', 90, 100)],
    ['what is given back', 50, (addition) => ledger.giveBack('step', 10, 100, addition)],
    ['a look', 60, () => ledger.peek('step', 100)],
  ]

  describe('A window that Redis would keep for longer than a minute', () => {
    it.each(TOUCHES)('because its clock was set back, is shortened to one by %s', async (_name, used, touch) => {
      const addition = await counted('step', 60)
      await observer.pexpire(nameOf('step'), HOUR_MS)
      const state = await touch(addition)
      expect(state).toMatchObject({ used, allowed: 100 })
      expectWholeWindow(leftOf(state))
      expectWholeWindow(await observer.pttl(nameOf('step')))
    })

    it.each(TOUCHES)('because it has no end, is given one by %s', async (_name, used, touch) => {
      const addition = await counted('step', 60)
      await observer.persist(nameOf('step'))
      const state = await touch(addition)
      expect(state).toMatchObject({ used, allowed: 100 })
      expectWholeWindow(leftOf(state))
      expectWholeWindow(await observer.pttl(nameOf('step')))
    })
  })

  describe('A window that is under way', () => {
    it.each(TOUCHES)('keeps its end through %s', async (_name, used, touch) => {
      const addition = await counted('step', 60)
      await observer.pexpire(nameOf('step'), 20_000)
      expect(await touch(addition)).toMatchObject({ used })
      const leftMs = await observer.pttl(nameOf('step'))
      expect(leftMs).toBeGreaterThan(10_000)
      expect(leftMs).toBeLessThanOrEqual(20_000)
    })
  })

  describe('A place in Redis that would be held for longer than a lease, because the clock was set back,', () => {
    async function leasesOf(leaseMs: number): Promise<{ leases: RedisLeases; close: () => Promise<void> }> {
      const link = new RedisConnection(redis.url, TIMEOUT_MS, SILENT)
      await link.open()
      return { leases: new RedisLeases(link, leaseMs), close: () => link.close() }
    }

    /** Held by a process that took it before the clock was set back by an hour. */
    const hold = async (key: string, id: string): Promise<void> => {
      await observer.zadd(nameOf(key), Date.now() + HOUR_MS, id)
      await observer.pexpire(nameOf(key), HOUR_MS)
    }

    const leaseLeftMs = async (key: string, id: string): Promise<number> =>
      Number(await observer.zscore(nameOf(key), id)) - Date.now()

    it('is still held by the call that has it, and for a lease', async () => {
      await hold('held', 'running')
      expect(await ledger.leases.take('held', 'next', 1)).toBe(false)
      const leftMs = await leaseLeftMs('held', 'running')
      expect(leftMs).toBeGreaterThan(LEASE_MS - 5000)
      expect(leftMs).toBeLessThanOrEqual(LEASE_MS)
    })

    it('is free once a lease is over when the process that took it is dead', async () => {
      const { leases, close } = await leasesOf(200)
      try {
        await hold('dead', 'nobody')
        expect(await leases.take('dead', 'next', 1, () => true)).toBe(false)
        await comesTrue(async () => (await leases.take('dead', 'next', 1, () => true)) === true)
        expect(await observer.zrange(nameOf('dead'), '0', '-1')).toEqual(['next'])
      } finally {
        await close()
      }
    })

    it('is counted by a read, and from then on for a lease', async () => {
      await hold('counted', 'running')
      expect(await ledger.leases.count('counted')).toBe(1)
      expect(await leaseLeftMs('counted', 'running')).toBeLessThanOrEqual(LEASE_MS)
    })

    it('is no reason to shorten the others', async () => {
      await hold('others', 'ahead')
      await observer.zadd(nameOf('others'), Date.now() + 6000, 'due')
      expect(await ledger.leases.take('others', 'next', 3)).toBe(true)
      expect(await leaseLeftMs('others', 'due')).toBeLessThanOrEqual(6000)
      expect(await leaseLeftMs('others', 'due')).toBeGreaterThan(0)
      expect(await leaseLeftMs('others', 'ahead')).toBeGreaterThan(6000)
      expect(await ledger.leases.take('others', 'one more', 3)).toBe(false)
    })
  })
})

describe('limits late', () => {
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

  async function newStore(timeoutMs = TIMEOUT_MS): Promise<CounterStore> {
    const store = sharedStore({ url: redis.url, timeoutMs, localShare: 0.5 }, 1, SILENT)
    closers.push(() => store.close())
    await store.open()
    return store
  }

  /** While Redis hangs for longer than any request waits, but not until its connection is closed. */
  async function whileItHangs<Result>(store: CounterStore, work: () => MaybePromise<Result>): Promise<Result> {
    redis.pause()
    try {
      const result = await work()
      await comesTrue(() => store.isUnavailable())
      return result
    } finally {
      redis.resume()
    }
  }

  const used = async (key: string): Promise<number> => Number((await observer.get(`gateway:limits:${key}`)) ?? 0)
  const held = (key: string): Promise<string[]> => observer.zrange(`gateway:limits:${key}`, '0', '-1')

  describe('A late response of Redis', () => {
    it('leaves nothing counted there of what was counted here instead', async () => {
      const store = await newStore()
      // So that the script is known: else nothing is carried out while it hangs.
      await store.counters.add('tokens', 1, 100)
      const addition = await whileItHangs(store, () => store.counters.add('tokens', 40, 100))
      expect(addition).toMatchObject({ fits: true, allowed: 50 })
      await comesTrue(() => !store.isUnavailable())
      await comesTrue(async () => (await used('tokens')) === 1)
    })

    it('leaves no place taken by a call that was over by then', async () => {
      const store = await newStore()
      await store.counters.leases.take('places', 'first', 4)
      await whileItHangs(store, async () => {
        expect(await store.counters.leases.take('places', 'late', 4)).toBe(true)
        store.counters.leases.release('places', 'late')
      })
      await comesTrue(() => !store.isUnavailable())
      await comesTrue(async () => (await held('places')).join() === 'first')
    })

    it('leaves no place taken by a call that was refused here', async () => {
      const store = await newStore()
      await store.counters.leases.take('refused', 'first', 2)
      await whileItHangs(store, async () => {
        // Half of two: the first fills it.
        expect(await store.counters.leases.take('refused', 'late', 2)).toBe(false)
      })
      await comesTrue(() => !store.isUnavailable())
      await comesTrue(async () => (await held('refused')).join() === 'first')
    })

    it('leaves a call that is still under way its place', async () => {
      const store = await newStore()
      await store.counters.leases.take('kept', 'first', 4)
      await whileItHangs(store, async () => {
        expect(await store.counters.leases.take('kept', 'late', 4)).toBe(true)
      })
      const seen: boolean[] = []
      await comesTrue(async () => {
        seen.push((await held('kept')).includes('late'))
        return !store.isUnavailable()
      })
      expect(seen.slice(seen.indexOf(true))).not.toContain(false)
      await comesTrue(async () => (await held('kept')).length === 2)
      store.counters.leases.release('kept', 'late')
      await comesTrue(async () => (await held('kept')).join() === 'first')
    })

    it('does not keep what is given back while it is awaited', async () => {
      const store = await newStore()
      const addition = await store.counters.add('back', 60, 100)
      await store.counters.leases.take('back-places', 'first', 4)
      await whileItHangs(store, async () => {
        await store.counters.add('other', 1, 100)
        if (addition !== undefined) await store.counters.giveBack('back', 50, 100, addition)
        store.counters.leases.release('back-places', 'first')
      })
      await comesTrue(async () => (await used('back')) === 10)
      await comesTrue(async () => (await held('back-places')).length === 0)
    })
  })

  describe('The renewal of places', () => {
    async function manyLeases(keys: number): Promise<SharedLeases> {
      const link = new RedisConnection(redis.url, 5000, SILENT)
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
})
