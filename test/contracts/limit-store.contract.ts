import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { LimitCounters } from '../../src/limits/key-limiter.js'

/** Two processes that count against the same limits, where their store lets them. */
export interface LimitStores {
  readonly one: LimitCounters
  /** The same as `one` where nothing is shared. */
  readonly other: LimitCounters
  close(): Promise<void>
}

/** What the limits of keys rely on, wherever requests are counted. Every test has keys of its own. */
export function limitStoreContract(name: string, start: () => Promise<LimitStores>): void {
  describe(`Limits counted ${name}`, () => {
    let stores: LimitStores
    beforeAll(async () => {
      stores = await start()
    })
    afterAll(() => stores.close())

    it('count what fits, and nothing of what does not', async () => {
      const { one, other } = stores
      expect(await one.add('fits', 60, 100)).toMatchObject({ fits: true, counted: 60, used: 60, allowed: 100 })
      expect(await other.add('fits', 41, 100)).toMatchObject({ fits: false, counted: 0, used: 60 })
      expect(await other.add('fits', 40, 100)).toMatchObject({ fits: true, used: 100 })
      expect(await one.add('fits', 1, 100)).toMatchObject({ fits: false, used: 100 })
    })

    it('grant a limit exactly, however many ask at once', async () => {
      const { one, other } = stores
      const asked = Array.from({ length: 1000 }, async (_, index) =>
        (index % 2 === 0 ? one : other).add('rush', 1, 600),
      )
      const additions = await Promise.all(asked)
      expect(additions.filter((addition) => addition?.fits === true)).toHaveLength(600)
      expect(await one.peek('rush', 600)).toMatchObject({ used: 600 })
    })

    it('are not blocked for others by what does not fit', async () => {
      const { one, other } = stores
      const mixed = Array.from({ length: 200 }, async (_, index) => {
        const tooMuch = one.add('mixed', 5000, 1000)
        await (index % 2 === 0 ? one : other).add('mixed', 5, 1000)
        await tooMuch
      })
      await Promise.all(mixed)
      expect(await one.peek('mixed', 1000)).toMatchObject({ used: 1000 })
    })

    it('hold large amounts exactly', async () => {
      const { one } = stores
      const limit = 1_000_000_000_000
      await one.add('large', limit - 1, limit)
      expect(await one.add('large', 2, limit)).toMatchObject({ fits: false, used: limit - 1 })
      expect(await one.add('large', 1, limit)).toMatchObject({ fits: true, used: limit })
    })

    it('give back, and debit what is used already whether it is left or not', async () => {
      const { one, other } = stores
      const addition = await one.add('settled', 80, 100)
      if (addition === undefined) throw new Error('nothing was counted')
      await one.giveBack('settled', 50, 100, addition)
      expect(await other.peek('settled', 100)).toMatchObject({ used: 30 })
      await other.debit('settled', 120, 100)
      expect(await one.peek('settled', 100)).toMatchObject({ used: 150, allowed: 100 })
      expect(await one.add('settled', 1, 100)).toMatchObject({ fits: false })
    })

    it('are visibly returned at once, without waiting for a response', async () => {
      const { one } = stores
      await one.add('seen', 30, 100)
      const addition = await one.add('seen', 1, 100)
      if (addition === undefined) throw new Error('nothing was counted')
      const givingBack = one.giveBack('seen', 1, 100, addition)
      expect(one.lastSeen('seen')).toMatchObject({ used: 30, allowed: 100 })
      await givingBack
      expect(one.lastSeen('seen')).toMatchObject({ used: 30, allowed: 100 })
      expect(one.lastSeen('seen')?.endsAtMs).toBeGreaterThan(performance.now() + 55_000)
    })

    it('never give back into a window that is over', async () => {
      const { one } = stores
      const addition = await one.add('over', 80, 100)
      if (addition === undefined) throw new Error('nothing was counted')
      const givingBack = one.giveBack('over', 80, 100, { ...addition, endsAtMs: performance.now() })
      expect(one.lastSeen('over')).toMatchObject({ used: 80 })
      await givingBack
      expect(await one.peek('over', 100)).toMatchObject({ used: 80 })
    })

    it('show a window of at most a minute', async () => {
      const { one } = stores
      const addition = await one.add('window', 1, 100)
      const leftMs = (addition?.endsAtMs ?? 0) - performance.now()
      expect(leftMs).toBeGreaterThan(55_000)
      expect(leftMs).toBeLessThanOrEqual(60_000)
      expect(one.lastSeen('window')).toMatchObject({ used: 1 })
    })

    it('let as many be under way as the limit says, and the next once one has ended', async () => {
      const { one, other } = stores
      const taken = await Promise.all(
        Array.from({ length: 50 }, async (_, index) =>
          (index % 2 === 0 ? one : other).leases.take('places', `id-${index}`, 7),
        ),
      )
      expect(taken.filter(Boolean)).toHaveLength(7)
      expect(await one.leases.count('places')).toBe(7)
      const held = taken.findIndex(Boolean)
      ;(held % 2 === 0 ? one : other).leases.release('places', `id-${held}`)
      expect(await other.leases.take('places', 'next', 7)).toBe(true)
      expect(await other.leases.take('places', 'one more', 7)).toBe(false)
    })
  })
}
