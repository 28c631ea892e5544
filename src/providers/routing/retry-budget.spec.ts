import { describe, expect, it } from '@jest/globals'
import { RetryBudget } from './retry-budget.js'

/** Starts `count` pieces of work that end when they are told to. */
function busy(count: number, start: (work: () => Promise<void>) => Promise<void>): { end: () => Promise<unknown> } {
  const ends: (() => void)[] = []
  const all = Array.from({ length: count }, () =>
    start(
      () =>
        new Promise<void>((resolve) => {
          ends.push(resolve)
        }),
    ),
  )
  return {
    end: () => {
      for (const end of ends) end()
      return Promise.allSettled(all)
    },
  }
}

const FIRST = new Error('of the first attempt')
const once = (budget: RetryBudget): Promise<string> => budget.retry(FIRST, () => Promise.resolve('second'))

describe('RetryBudget', () => {
  it('allows three second attempts at a time, however few calls there are', async () => {
    const budget = new RetryBudget()
    const running = busy(3, (work) => budget.retry(FIRST, work))
    await expect(once(budget)).rejects.toBe(FIRST)
    await running.end()
    expect(await once(budget)).toBe('second')
  })

  it('allows a fifth of the active calls when that is more', async () => {
    const budget = new RetryBudget()
    const calls = busy(25, (work) => budget.spend(work))
    const retries = busy(4, (work) => budget.retry(FIRST, work))
    const fifth = busy(1, (work) => budget.retry(FIRST, work))
    await expect(once(budget)).rejects.toBe(FIRST)
    await fifth.end()
    await calls.end()
    await expect(once(budget)).rejects.toBe(FIRST)
    await retries.end()
    expect(await once(budget)).toBe('second')
  })

  it('gives back what failed attempts and failed calls held', async () => {
    const budget = new RetryBudget()
    const broken = new Error('broken')
    for (let attempt = 0; attempt < 10; attempt++) {
      await expect(budget.retry(FIRST, () => Promise.reject(broken))).rejects.toBe(broken)
      await expect(budget.spend(() => Promise.reject(broken))).rejects.toBe(broken)
    }
    expect(await once(budget)).toBe('second')
  })
})
