import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { key, KeyRefresherLab, readingEvery, START_MS } from '../../test/support/key-refresher-lab.js'
import { ConfigStore } from '../config/config-store.js'

let lab: KeyRefresherLab

beforeEach(() => {
  jest.useFakeTimers({ now: START_MS })
  lab = new KeyRefresherLab()
})
afterEach(async () => {
  await lab.end()
  jest.useRealTimers()
})

describe('A key that is revoked just after a reading, where the store is read every four seconds', () => {
  const PROMISED_MS = 5_000

  beforeEach(async () => {
    lab.repository.rows = [key({ updatedAtMs: START_MS - 3_600_000 })]
    await lab.begin(new ConfigStore(readingEvery(4_000)))
    lab.repository.change(true)
  })

  /** From the revocation on. */
  const livedMs = async (): Promise<number> => {
    const beganAtMs = Date.now()
    while (lab.verdict() === 'valid' && Date.now() < beganAtMs + 4 * PROMISED_MS)
      await jest.advanceTimersByTimeAsync(10)
    return Date.now() - beganAtMs
  }

  it('is dead in time although three readings in a row fail', async () => {
    await jest.advanceTimersByTimeAsync(3_900)
    lab.repository.isAway = true
    await jest.advanceTimersByTimeAsync(650)
    lab.repository.isAway = false
    expect(await livedMs()).toBeLessThanOrEqual(PROMISED_MS - 4_550)
  })

  it('is dead in time although two readings do not answer', async () => {
    lab.repository.delaysMs = [9_000, 9_000]
    expect(await livedMs()).toBeLessThanOrEqual(PROMISED_MS)
    // What answers late is neither lost nor does it take anything back.
    await jest.advanceTimersByTimeAsync(9_000)
    expect(lab.verdict()).toBe('revoked')
  })

  it('is dead in time where every reading takes more than a second', async () => {
    lab.repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
    await jest.advanceTimersByTimeAsync(20_000)
    expect(lab.verdict()).toBe('revoked')
    for (let round = 0; round < 10; round += 1) {
      lab.repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
      lab.repository.change(false)
      await jest.advanceTimersByTimeAsync(9_000)
      const asked = lab.repository.questions.length
      while (lab.repository.questions.length === asked) await jest.advanceTimersByTimeAsync(10)
      expect(lab.verdict()).toBe('valid')
      lab.repository.change(true)
      lab.repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
      expect(await livedMs()).toBeLessThanOrEqual(PROMISED_MS)
    }
  })

  it('costs a store that does not answer no more than three questions at a time', async () => {
    lab.repository.delaysMs = Array.from({ length: 40 }, () => 9_000)
    await jest.advanceTimersByTimeAsync(12_900)
    expect(lab.repository.askedAtMs).toEqual([0, 4_000, 4_400, 4_800])
  })
})
