import { describe, expect, it } from '@jest/globals'
import { RetryBudget } from './retry-budget.js'

/** How many second attempts may begin now. */
function allowed(budget: RetryBudget): number {
  let count = 0
  while (budget.beginRetry()) count++
  return count
}

describe('RetryBudget', () => {
  it.each([
    [0, 3],
    [15, 3],
    [16, 4],
    [100, 20],
  ])('with %i active calls allows %i second attempts at a time', (active, retries) => {
    const budget = new RetryBudget()
    for (let call = 0; call < active; call++) budget.begin()
    expect(allowed(budget)).toBe(retries)
  })

  it('gives back what has ended', () => {
    const budget = new RetryBudget()
    for (let call = 0; call < 100; call++) budget.begin()
    expect(allowed(budget)).toBe(20)
    for (let call = 0; call < 100; call++) budget.end()
    expect(budget.beginRetry()).toBe(false)
    for (let retry = 0; retry < 19; retry++) budget.endRetry()
    expect(allowed(budget)).toBe(2)
  })
})
