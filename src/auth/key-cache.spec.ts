import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { key, KeyRefresherLab, readingEvery, SHA256, START_MS } from '../../test/support/key-refresher-lab.js'
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
    while (lab.status() === 'valid' && Date.now() < beganAtMs + 4 * PROMISED_MS) await jest.advanceTimersByTimeAsync(10)
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
    expect(lab.status()).toBe('revoked')
  })

  it('is dead in time where every reading takes more than a second', async () => {
    lab.repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
    await jest.advanceTimersByTimeAsync(20_000)
    expect(lab.status()).toBe('revoked')
    for (let round = 0; round < 10; round += 1) {
      lab.repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
      lab.repository.change(false)
      await jest.advanceTimersByTimeAsync(9_000)
      const asked = lab.repository.questions.length
      while (lab.repository.questions.length === asked) await jest.advanceTimersByTimeAsync(10)
      expect(lab.status()).toBe('valid')
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

describe('The refresher of keys', () => {
  it('knows all keys before the gateway listens, and then asks for what changed', async () => {
    lab.repository.rows = [key()]
    await lab.begin()
    expect([lab.status(), lab.stored.isAwaited]).toEqual(['valid', false])
    await jest.advanceTimersByTimeAsync(1_999)
    expect(lab.repository.questions).toEqual([undefined])
    lab.repository.rows = [key({ isRevoked: true, updatedAtMs: START_MS + 1_000 })]
    await jest.advanceTimersByTimeAsync(1)
    expect(lab.status()).toBe('revoked')
    await jest.advanceTimersByTimeAsync(2_000)
    // What is committed late looks older than it is: every question reaches ten seconds back.
    expect(lab.repository.questions).toEqual([undefined, START_MS - 10_000, START_MS - 8_000])
  })

  it('asks for all again every minute, and so finds what was deleted by hand', async () => {
    lab.repository.rows = [key({ updatedAtMs: START_MS - 60_000 })]
    await lab.begin()
    lab.repository.rows = []
    await jest.advanceTimersByTimeAsync(59_999)
    expect(lab.status()).toBe('valid')
    await jest.advanceTimersByTimeAsync(1)
    expect(lab.status()).toBe('unknown')
    expect(lab.repository.questions.filter((sinceMs) => sinceMs === undefined)).toHaveLength(2)
  })

  it('lets known keys go on while the store is away, ends those that expire, and says so once', async () => {
    lab.repository.rows = [key({ expiresAtMs: START_MS + 5_000 })]
    await lab.begin()
    const judged = lab.stored.lookUp(SHA256)
    let ends = 0
    if (judged.status === 'valid') judged.revocation.onOver(() => (ends += 1))
    lab.repository.isAway = true
    await jest.advanceTimersByTimeAsync(4_000)
    expect([lab.status(), ends]).toEqual(['valid', 0])
    await jest.advanceTimersByTimeAsync(2_000)
    expect([lab.status(), ends]).toEqual(['expired', 1])
    expect(lab.lines).toEqual(['the keys of the store cannot be read; known ones go on'])
    lab.repository.isAway = false
    await jest.advanceTimersByTimeAsync(2_000)
    expect(lab.lines.at(-1)).toBe('the keys of the store are read again')
  })

  it('says nothing of a reading that fails after a later one has succeeded', async () => {
    lab.repository.rows = [key()]
    await lab.begin()
    lab.repository.failuresMs = [1_000]
    await jest.advanceTimersByTimeAsync(6_000)
    expect(lab.repository.askedAtMs.slice(0, 3)).toEqual([0, 2_000, 2_400])
    expect(lab.lines).toEqual([])
  })

  it('goes on asking for all while it never got an answer, and keeps issued keys from being called wrong', async () => {
    lab.repository.isAway = true
    await lab.begin()
    await jest.advanceTimersByTimeAsync(500)
    expect([lab.repository.questions, lab.stored.isAwaited]).toEqual([[undefined, undefined, undefined], true])
    lab.repository.isAway = false
    await jest.advanceTimersByTimeAsync(250)
    expect(lab.stored.isAwaited).toBe(false)
  })

  it('opens no store where no operator issues keys, until a reload sets an admin key', async () => {
    const next = Promise.resolve({ config: readingEvery(2_000), file: '' })
    const config = new ConfigStore(parseConfig('{}', {}), () => next)
    await lab.begin(config)
    await jest.advanceTimersByTimeAsync(120_000)
    expect([lab.repository.questions, lab.stored.isAwaited]).toEqual([[], false])
    await config.reload()
    expect(lab.repository.questions).toEqual([undefined])
  })

  it('reads the keys of a store that replicas share, although it issues none itself', async () => {
    await lab.begin(new ConfigStore(parseConfig('{database: {url: "postgres://h/d"}}', {})))
    expect(lab.repository.questions).toEqual([undefined])
  })

  it('asks no more once the gateway stops', async () => {
    await lab.begin()
    await lab.refresher.beforeApplicationShutdown()
    await jest.advanceTimersByTimeAsync(60_000)
    expect(lab.repository.questions).toHaveLength(1)
  })

  // A server that takes over may have another clock; in the second case it is ahead again when it is first asked.
  it.each([
    [45_000, 30_000, 0],
    [25_000, 5_000, 25_000],
  ])('asks for all once it notices that the clock of the store was put back by %d ms', async (...milliseconds) => {
    const [behindMs, untilRevokedMs, untilAskedMs] = milliseconds
    lab.repository.rows = [key({ updatedAtMs: START_MS - 3_600_000 })]
    await lab.begin(new ConfigStore(readingEvery(4_000)))
    lab.repository.isAway = true
    await jest.advanceTimersByTimeAsync(untilRevokedMs)
    lab.repository.behindMs = behindMs
    lab.repository.change(true)
    await jest.advanceTimersByTimeAsync(untilAskedMs)
    lab.repository.isAway = false
    await jest.advanceTimersByTimeAsync(250)
    expect(lab.status()).toBe('revoked')
  })
})
