import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { Redis } from 'ioredis'
import { createLimitStore, type LimitStore } from '../../src/limits/counter-store.js'
import type { LimitLedger } from '../../src/limits/limit-ledger.js'
import type { Addition, Soon, WindowState } from '../../src/limits/limit-windows.js'
import { RedisLink } from '../../src/limits/redis-connection.js'
import { RedisLeases } from '../../src/limits/redis-counters.js'
import { comesTrue } from './daemon.js'
import { startRedis, type TestRedis } from './redis.js'

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
let store: LimitStore
let ledger: LimitLedger

beforeAll(async () => {
  redis = await startRedis()
  observer = new Redis(redis.url)
  store = createLimitStore({ url: redis.url, timeoutMs: TIMEOUT_MS, localShare: 0.5 }, 1, SILENT)
  await store.open()
  ledger = store.ledger
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

  it('is empty to whoever looks, and is not opened by it', async () => {
    await counted('look', 80)
    await end('look')
    const seen = await ledger.peek('look', 100)
    expect(seen).toMatchObject({ used: 0, allowed: 100 })
    expect(leftOf(seen)).toBeLessThanOrEqual(0)
    expect(await observer.exists(nameOf('look'))).toBe(0)
  })

  it('is not opened by what never fits, which is told to wait for a whole one', async () => {
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
    expect(store.isAway()).toBe(false)
    expectWholeWindow(await observer.pttl(nameOf('less')))
  })
})

/** What is done with a window of which 60 of 100 are used, and what is used then. */
type Touch = readonly [name: string, used: number, touch: (addition: Addition) => Soon<WindowState | undefined>]

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
    const link = new RedisLink(redis.url, TIMEOUT_MS, SILENT)
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

  it('is counted by whoever looks, and from then on for a lease', async () => {
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
