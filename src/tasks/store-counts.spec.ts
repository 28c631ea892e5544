import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { StoreCounts } from './store-counts.js'

/** A store that counts when it is told to. */
class ManualStore {
  asked = 0
  private readonly waiting: { resolve: (count: number) => void; reject: (error: Error) => void }[] = []

  readonly count = (): Promise<number> => {
    this.asked++
    return new Promise((resolve, reject) => this.waiting.push({ resolve, reject }))
  }

  answer(count: number): void {
    this.waiting.shift()?.resolve(count)
  }

  fail(): void {
    this.waiting.shift()?.reject(new Error('away'))
  }
}

describe('Counts of the store', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })

  afterEach(() => {
    jest.useRealTimers()
  })

  it('are waited for by whoever asks first, and by those who ask meanwhile', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const told = Promise.all([counts.latest(), counts.latest()])
    store.answer(7)
    expect(await told).toEqual([7, 7])
    expect(store.asked).toBe(1)
  })

  it('are asked for anew only every 15 seconds', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const first = counts.latest()
    store.answer(7)
    await first
    await jest.advanceTimersByTimeAsync(14_999)
    expect([await counts.latest(), store.asked]).toEqual([7, 1])
    await jest.advanceTimersByTimeAsync(1)
    const next = counts.latest()
    store.answer(8)
    expect([await next, store.asked]).toEqual([8, 2])
  })

  it('of a store that hangs hold nobody up for longer than half a second, and it is not asked again', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const early = counts.latest()
    await jest.advanceTimersByTimeAsync(500)
    expect(await early).toBeUndefined()
    await jest.advanceTimersByTimeAsync(60_000)
    const late = counts.latest()
    await jest.advanceTimersByTimeAsync(500)
    expect([await late, store.asked]).toEqual([undefined, 1])
    store.answer(7)
    expect(await counts.latest()).toBe(7)
    const next = counts.latest()
    store.answer(8)
    expect([await next, store.asked]).toEqual([8, 2])
  })

  it('stay as they were while the store fails, but are not shown for longer than a minute', async () => {
    const store = new ManualStore()
    const counts = new StoreCounts(store.count)
    const first = counts.latest()
    store.answer(7)
    await first
    for (const expected of [7, 7, 7, undefined]) {
      await jest.advanceTimersByTimeAsync(15_000)
      const told = counts.latest()
      store.fail()
      expect(await told).toBe(expected)
    }
    expect(store.asked).toBe(5)
  })
})
