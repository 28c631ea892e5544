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

const withAdminKey = parseConfig(JSON.stringify({ auth: { adminKey: newKey('sk-gw-admin-') } }), {})

/** A store whose clock is the test's, and whose rows are what the test says. */
class FakeRepository implements Pick<KeyRepository, 'read'> {
  rows: readonly StoredKey[] = []
  isAway = false
  readonly questions: (number | undefined)[] = []

  read(sinceMs?: number): Promise<KeyReading> {
    this.questions.push(sinceMs)
    if (this.isAway) return Promise.reject(new GatewayError('overloaded', 'The database cannot be reached.'))
    const keys = this.rows.filter(({ updatedAtMs }) => updatedAtMs >= (sinceMs ?? 0))
    return Promise.resolve({ keys, asOfMs: Date.now() })
  }
}

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
  await refresher.beforeApplicationShutdown()
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

  it('goes on asking for all while it never got an answer, and keeps issued keys from being called wrong', async () => {
    repository.isAway = true
    await begin()
    await jest.advanceTimersByTimeAsync(4_000)
    expect([repository.questions, stored.isAwaited]).toEqual([[undefined, undefined, undefined], true])
    repository.isAway = false
    await jest.advanceTimersByTimeAsync(2_000)
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
})
