import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { newKey } from '../common/auth/issued-key.js'
import { type StoredKey, StoredKeys } from '../common/auth/stored-keys.js'
import { GatewayError } from '../common/errors/gateway-error.js'
import { parseConfig } from '../config/config-loader.js'
import { ConfigStore } from '../config/config-store.js'
import type { KeyReading, KeyRepository } from './key.repository.js'
import { KeyRefresher } from './key-refresher.js'

const SHA256 = createHash('sha256').update('a').digest('hex')
const START_MS = 1_800_000_000_000

const key = (given: Partial<StoredKey> = {}): StoredKey => ({
  id: 'a',
  sha256: SHA256,
  isRevoked: false,
  updatedAtMs: START_MS,
  ...given,
})

const readingEvery = (keyRefreshMs: number) =>
  parseConfig(JSON.stringify({ auth: { adminKey: newKey('sk-gw-admin-'), keyRefreshMs } }), {})
const withAdminKey = readingEvery(2_000)

/** A store whose clock is the test's, and whose rows are what the test says. */
class FakeRepository implements Pick<KeyRepository, 'read'> {
  rows: readonly StoredKey[] = []
  isAway = false
  /** What its clock is behind. */
  behindMs = 0
  /** How long each of the next answers takes; those after them take no time. */
  delaysMs: number[] = []
  /** After how long each of the next questions fails. */
  failuresMs: number[] = []
  readonly questions: (number | undefined)[] = []
  readonly askedAtMs: number[] = []

  get nowMs(): number {
    return Date.now() - this.behindMs
  }

  async read(sinceMs?: number): Promise<KeyReading> {
    this.questions.push(sinceMs)
    this.askedAtMs.push(Date.now() - START_MS)
    if (this.isAway) throw new GatewayError('overloaded', 'The database cannot be reached.')
    const failureMs = this.failuresMs.shift()
    if (failureMs !== undefined) {
      await pause(failureMs)
      throw new GatewayError('overloaded', 'The database has ended the connection.')
    }
    const reading = { keys: this.rows.filter(({ updatedAtMs }) => updatedAtMs >= (sinceMs ?? 0)), asOfMs: this.nowMs }
    const delayMs = this.delaysMs.shift() ?? 0
    if (delayMs > 0) await pause(delayMs)
    return reading
  }

  /** As the store does it: a later version never looks older. */
  change(isRevoked: boolean): void {
    this.rows = this.rows.map((row) => ({
      ...row,
      isRevoked,
      updatedAtMs: Math.max(this.nowMs, row.updatedAtMs + 1),
    }))
  }
}

/** By the clock of the test. */
const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })

let repository: FakeRepository
let stored: StoredKeys
let lines: string[]
let refresher: KeyRefresher

function begin(config = new ConfigStore(withAdminKey)): Promise<void> {
  const note = (...words: unknown[]): void => {
    lines.push(String(words.at(-1)))
  }
  refresher = new KeyRefresher(config, repository as unknown as KeyRepository, stored, { info: note, warn: note })
  return refresher.onApplicationBootstrap()
}

const verdict = (): string => stored.judge(SHA256).verdict

beforeEach(() => {
  jest.useFakeTimers({ now: START_MS })
  repository = new FakeRepository()
  stored = new StoredKeys()
  lines = []
})
afterEach(async () => {
  const stopped = refresher.beforeApplicationShutdown()
  await jest.advanceTimersByTimeAsync(10_000)
  await stopped
  expect(jest.getTimerCount()).toBe(0)
  jest.useRealTimers()
})

describe('The refresher of keys', () => {
  it('knows all keys before the gateway listens, and then asks for what changed', async () => {
    repository.rows = [key()]
    await begin()
    expect([verdict(), stored.isAwaited]).toEqual(['valid', false])
    await jest.advanceTimersByTimeAsync(1_999)
    expect(repository.questions).toEqual([undefined])
    repository.rows = [key({ isRevoked: true, updatedAtMs: START_MS + 1_000 })]
    await jest.advanceTimersByTimeAsync(1)
    expect(verdict()).toBe('revoked')
    await jest.advanceTimersByTimeAsync(2_000)
    // What is committed late looks older than it is: every question reaches ten seconds back.
    expect(repository.questions).toEqual([undefined, START_MS - 10_000, START_MS - 8_000])
  })

  it('asks for all again every minute, and so finds what was deleted by hand', async () => {
    repository.rows = [key({ updatedAtMs: START_MS - 60_000 })]
    await begin()
    repository.rows = []
    await jest.advanceTimersByTimeAsync(59_999)
    expect(verdict()).toBe('valid')
    await jest.advanceTimersByTimeAsync(1)
    expect(verdict()).toBe('unknown')
    expect(repository.questions.filter((sinceMs) => sinceMs === undefined)).toHaveLength(2)
  })

  it('lets known keys go on while the store is away, ends those that expire, and says so once', async () => {
    repository.rows = [key({ expiresAtMs: START_MS + 5_000 })]
    await begin()
    const judged = stored.judge(SHA256)
    let ends = 0
    if (judged.verdict === 'valid') judged.standing.onOver(() => (ends += 1))
    repository.isAway = true
    await jest.advanceTimersByTimeAsync(4_000)
    expect([verdict(), ends]).toEqual(['valid', 0])
    await jest.advanceTimersByTimeAsync(2_000)
    expect([verdict(), ends]).toEqual(['expired', 1])
    expect(lines).toEqual(['the keys of the store cannot be read; known ones go on'])
    repository.isAway = false
    await jest.advanceTimersByTimeAsync(2_000)
    expect(lines.at(-1)).toBe('the keys of the store are read again')
  })

  it('says nothing of a reading that fails after a later one has succeeded', async () => {
    repository.rows = [key()]
    await begin()
    repository.failuresMs = [1_000]
    await jest.advanceTimersByTimeAsync(6_000)
    expect(repository.askedAtMs.slice(0, 3)).toEqual([0, 2_000, 2_400])
    expect(lines).toEqual([])
  })

  it('goes on asking for all while it never got an answer, and keeps issued keys from being called wrong', async () => {
    repository.isAway = true
    await begin()
    await jest.advanceTimersByTimeAsync(500)
    expect([repository.questions, stored.isAwaited]).toEqual([[undefined, undefined, undefined], true])
    repository.isAway = false
    await jest.advanceTimersByTimeAsync(250)
    expect(stored.isAwaited).toBe(false)
  })

  it('opens no store where nobody issues keys, until a reload sets an admin key', async () => {
    const next = Promise.resolve({ config: withAdminKey, file: '' })
    const config = new ConfigStore(parseConfig('{}', {}), () => next)
    await begin(config)
    await jest.advanceTimersByTimeAsync(120_000)
    expect([repository.questions, stored.isAwaited]).toEqual([[], false])
    await config.reload()
    expect(repository.questions).toEqual([undefined])
  })

  it('reads the keys of a store that replicas share, although it issues none itself', async () => {
    await begin(new ConfigStore(parseConfig('{database: {url: "postgres://h/d"}}', {})))
    expect(repository.questions).toEqual([undefined])
  })

  it('asks no more once the gateway stops', async () => {
    await begin()
    await refresher.beforeApplicationShutdown()
    await jest.advanceTimersByTimeAsync(60_000)
    expect(repository.questions).toHaveLength(1)
  })

  // A server that takes over may have another clock; in the second case it is ahead again when it is first asked.
  it.each([
    [45_000, 30_000, 0],
    [25_000, 5_000, 25_000],
  ])('asks for all once it notices that the clock of the store was put back by %d ms', async (...milliseconds) => {
    const [behindMs, untilRevokedMs, untilAskedMs] = milliseconds
    repository.rows = [key({ updatedAtMs: START_MS - 3_600_000 })]
    await begin(new ConfigStore(readingEvery(4_000)))
    repository.isAway = true
    await jest.advanceTimersByTimeAsync(untilRevokedMs)
    repository.behindMs = behindMs
    repository.change(true)
    await jest.advanceTimersByTimeAsync(untilAskedMs)
    repository.isAway = false
    await jest.advanceTimersByTimeAsync(250)
    expect(verdict()).toBe('revoked')
  })
})

describe('A key that is revoked just after a reading, where the store is read every four seconds', () => {
  const PROMISED_MS = 5_000

  beforeEach(async () => {
    repository.rows = [key({ updatedAtMs: START_MS - 3_600_000 })]
    await begin(new ConfigStore(readingEvery(4_000)))
    repository.change(true)
  })

  /** From the revocation on. */
  const livedMs = async (): Promise<number> => {
    const beganAtMs = Date.now()
    while (verdict() === 'valid' && Date.now() < beganAtMs + 4 * PROMISED_MS) await jest.advanceTimersByTimeAsync(10)
    return Date.now() - beganAtMs
  }

  it('is dead in time although three readings in a row fail', async () => {
    await jest.advanceTimersByTimeAsync(3_900)
    repository.isAway = true
    await jest.advanceTimersByTimeAsync(650)
    repository.isAway = false
    expect(await livedMs()).toBeLessThanOrEqual(PROMISED_MS - 4_550)
  })

  it('is dead in time although two readings do not answer', async () => {
    repository.delaysMs = [9_000, 9_000]
    expect(await livedMs()).toBeLessThanOrEqual(PROMISED_MS)
    // What answers late is neither lost nor does it take anything back.
    await jest.advanceTimersByTimeAsync(9_000)
    expect(verdict()).toBe('revoked')
  })

  it('is dead in time where every reading takes more than a second', async () => {
    repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
    await jest.advanceTimersByTimeAsync(20_000)
    expect(verdict()).toBe('revoked')
    for (let round = 0; round < 10; round += 1) {
      repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
      repository.change(false)
      await jest.advanceTimersByTimeAsync(9_000)
      const asked = repository.questions.length
      while (repository.questions.length === asked) await jest.advanceTimersByTimeAsync(10)
      expect(verdict()).toBe('valid')
      repository.change(true)
      repository.delaysMs = Array.from({ length: 40 }, () => 1_200)
      expect(await livedMs()).toBeLessThanOrEqual(PROMISED_MS)
    }
  })

  it('costs a store that does not answer no more than three questions at a time', async () => {
    repository.delaysMs = Array.from({ length: 40 }, () => 9_000)
    await jest.advanceTimersByTimeAsync(12_900)
    expect(repository.askedAtMs).toEqual([0, 4_000, 4_400, 4_800])
  })
})
