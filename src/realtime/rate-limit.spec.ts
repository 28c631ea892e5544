import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { RateLimit } from './rate-limit.js'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

const taken = (rate: RateLimit, tries: number): number =>
  Array.from({ length: tries }, () => rate.take()).filter((isTaken) => isTaken).length

describe('A rate limit', () => {
  it('lets one second’s worth through at once, then only what time brings', () => {
    const rate = new RateLimit(20)
    expect(taken(rate, 100)).toBe(20)
    jest.advanceTimersByTime(500)
    expect(taken(rate, 100)).toBe(10)
  })

  it('saves up no more than one second’s worth', () => {
    const rate = new RateLimit(20)
    jest.advanceTimersByTime(60_000)
    expect(taken(rate, 100)).toBe(20)
  })
})
