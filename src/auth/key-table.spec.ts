import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { ConfigStore } from '../config/config-store.js'
import type { GatewayConfig } from '../config/settings.js'
import { GatewayError } from '../core/errors.js'
import { KeyTable, newKey, type StoredKey, StoredKeys } from './key-table.js'
import { readKey } from './key.guard.js'

const digest = (key: string): string => createHash('sha256').update(key).digest('hex')
/** With a channel that passes callers' keys on: whatever is not refused goes to an upstream. */
const configWith = (keys: Readonly<Record<string, string>>, adminKey?: string): GatewayConfig =>
  parseConfig(
    JSON.stringify({
      auth: { keys: Object.entries(keys).map(([id, key]) => ({ id, key })), adminKey },
      channels: [{ id: 'c', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 'caller' }],
    }),
    {},
  )

/** A table, and the way to reload it. */
function tableOf(first: GatewayConfig, stored = new StoredKeys()) {
  let next = first
  const store = new ConfigStore(first, () => Promise.resolve({ config: next, file: '' }))
  const table = new KeyTable(store, stored)
  const reload = async (config: GatewayConfig): Promise<void> => {
    next = config
    await store.reload()
  }
  return { table, reload }
}

const bearerOf = (table: KeyTable, token: string): string | undefined => {
  try {
    return table.identify(token).bearer
  } catch (error) {
    expect(error).toMatchObject({ kind: 'unauthorized' })
    return undefined
  }
}

describe('A key that the gateway knew a moment ago', () => {
  it('is refused once it is removed from the configuration, and never passed on as an upstream key', async () => {
    const { table, reload } = tableOf(configWith({ one: 'first-key', two: 'second-key' }))
    await reload(configWith({ two: 'second-key' }))
    await reload(configWith({}))
    for (const key of ['first-key', 'second-key']) expect(bearerOf(table, key)).toBeUndefined()
    expect(bearerOf(table, 'an-upstream-key')).toBe('an-upstream-key')
  })

  it('is refused once its place has another key', async () => {
    const { table, reload } = tableOf(configWith({ one: 'old-key' }))
    await reload(configWith({ one: 'new-key' }))
    expect(table.identify('new-key')).toMatchObject({ keyId: 'one' })
    expect(bearerOf(table, 'old-key')).toBeUndefined()
  })

  it('works again once it is back', async () => {
    const { table, reload } = tableOf(configWith({ one: 'first-key' }))
    await reload(configWith({}))
    await reload(configWith({ again: 'first-key' }))
    expect(table.identify('first-key')).toMatchObject({ keyId: 'again' })
  })

  it('is refused when it was the admin key', async () => {
    const [before, after] = [newKey('operator-'), newKey('operator-')]
    const { table, reload } = tableOf(configWith({}, before))
    await reload(configWith({}, after))
    for (const key of [before, after]) expect(bearerOf(table, key)).toBeUndefined()
  })

  const stored: StoredKey = { id: 'stored', sha256: digest('by-hand'), isRevoked: false, updatedAtMs: 1 }

  it('is refused when its row is gone from the store', () => {
    const keys = new StoredKeys()
    const { table } = tableOf(configWith({}), keys)
    keys.learn([stored])
    expect(table.identify('by-hand')).toMatchObject({ keyId: 'stored' })
    keys.learnAll([], 2)
    expect(bearerOf(table, 'by-hand')).toBeUndefined()
  })

  it('is refused when the configuration has taken over its id', async () => {
    const keys = new StoredKeys()
    const { table, reload } = tableOf(configWith({}), keys)
    keys.learn([stored])
    await reload(configWith({ stored: 'configured' }))
    expect(bearerOf(table, 'by-hand')).toBeUndefined()
  })
})

describe('A known key', () => {
  it('is one caller until something changes, so that what is made for it stays', async () => {
    const keys = new StoredKeys()
    const { table, reload } = tableOf(configWith({ one: 'first-key' }), keys)
    keys.learn([{ id: 'stored', sha256: digest('sk-gw-stored'), isRevoked: false, updatedAtMs: 1 }])
    const before = ['first-key', 'sk-gw-stored'].map((key) => table.identify(key))
    expect(['first-key', 'sk-gw-stored'].map((key) => table.identify(key))).toEqual(before)
    for (const [index, key] of ['first-key', 'sk-gw-stored'].entries())
      expect(table.identify(key) === before[index]).toBe(true)
    const limits = { concurrency: 1 }
    keys.learn([{ id: 'stored', sha256: digest('sk-gw-stored'), isRevoked: false, updatedAtMs: 2, limits }])
    expect(table.identify('sk-gw-stored').limits).toEqual(limits)
    await reload(configWith({ other: 'first-key' }))
    expect(table.identify('first-key').keyId).toBe('other')
  })
})

describe('KeyTable', () => {
  const configOfKeys = (keys: readonly object[], credentials = 'own-secret'): GatewayConfig =>
    parseConfig(
      JSON.stringify({
        auth: { keys },
        channels: [{ id: 'c', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials }],
      }),
      {},
    )

  const tableOfKeys = (keys: readonly object[]): KeyTable =>
    new KeyTable(new ConfigStore(configOfKeys(keys)), new StoredKeys())

  const refusalOf = (table: KeyTable, token: string): unknown => {
    try {
      return table.identify(token)
    } catch (error) {
      return error
    }
  }

  it('finds a key written plainly and one written as its hash', () => {
    const table = tableOfKeys([
      { id: 'plain', key: 'plain-key', models: ['tts-*'] },
      { id: 'hashed', key: `sha256:${digest('hashed-key')}` },
    ])
    expect(table.identify('plain-key')).toEqual({ keyId: 'plain', models: ['tts-*'] })
    expect(table.identify('hashed-key')).toEqual({ keyId: 'hashed' })
  })

  it.each([
    '',
    'plain',
    'plain-key ',
    'PLAIN-KEY',
    digest('plain-key'),
    `sha256:${digest('plain-key')}`,
    'constructor',
  ])('does not know %j', (token) => {
    expect(refusalOf(tableOfKeys([{ id: 'plain', key: 'plain-key' }]), token)).toMatchObject({
      kind: 'unauthorized',
    })
  })

  it('forgets the keys themselves', () => {
    const table = tableOfKeys([{ id: 'plain', key: 'canary-key-1' }])
    table.identify('canary-key-1')
    const remembered = inspect(table, { depth: Infinity })
    expect(remembered).toContain(digest('canary-key-1'))
    expect(remembered).not.toContain('canary-key-1')
  })

  it('follows a reload at once: new keys work, removed ones do not, and so with channels for unknown keys', async () => {
    const next = configOfKeys([{ id: 'new', key: 'new-key' }], 'caller')
    const store = new ConfigStore(configOfKeys([{ id: 'old', key: 'old-key' }]), () =>
      Promise.resolve({ config: next, file: '' }),
    )
    const table = new KeyTable(store, new StoredKeys())
    expect(table.acceptsUnknownKeys).toBe(false)
    await store.reload()
    expect(refusalOf(table, 'old-key')).toMatchObject({ kind: 'unauthorized' })
    expect(table.identify('new-key')).toEqual({ keyId: 'new' })
    expect(table.acceptsUnknownKeys).toBe(true)
  })

  describe('with keys of the store', () => {
    const ISSUED = 'sk-gw-of-the-store'
    const stored = (given: Partial<StoredKey> = {}): StoredKey => ({
      id: 'stored',
      sha256: digest(ISSUED),
      isRevoked: false,
      updatedAtMs: 1,
      ...given,
    })

    it('knows both, and gives callers of either their models and limits', () => {
      const keys = new StoredKeys()
      const table = new KeyTable(new ConfigStore(configOfKeys([{ id: 'plain', key: 'plain-key' }])), keys)
      keys.learn([stored({ models: ['a'], limits: { concurrency: 2 } })])
      expect(table.identify('plain-key')).toEqual({ keyId: 'plain' })
      expect(table.identify(ISSUED)).toMatchObject({ keyId: 'stored', models: ['a'], limits: { concurrency: 2 } })
    })

    it('refuses those that are over, in words for their holder alone', () => {
      const keys = new StoredKeys()
      const table = new KeyTable(new ConfigStore(configOfKeys([], 'caller')), keys)
      keys.learn([stored({ isRevoked: true })])
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'unauthorized', message: 'The API key has been revoked.' })
      keys.learn([stored({ expiresAtMs: 1, updatedAtMs: 2 })])
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'unauthorized', message: 'The API key has expired.' })
    })

    it('lets one id mean one caller: a configured key voids a stored one of its id, from the reload on', async () => {
      const keys = new StoredKeys()
      const next = configOfKeys([{ id: 'stored', key: 'configured' }])
      const config = new ConfigStore(configOfKeys([]), () => Promise.resolve({ config: next, file: '' }))
      const table = new KeyTable(config, keys)
      keys.learn([stored()])
      expect(table.identify(ISSUED)).toMatchObject({ keyId: 'stored' })
      await config.reload()
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'unauthorized' })
      expect(table.identify('configured')).toEqual({ keyId: 'stored' })
    })

    it('hands the admin key to no upstream, however it begins', () => {
      const adminKey = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934c'
      const channel = { id: 'c', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 'caller' }
      const config = parseConfig(JSON.stringify({ auth: { adminKey }, channels: [channel] }), {})
      const table = new KeyTable(new ConfigStore(config), new StoredKeys())
      expect(refusalOf(table, adminKey)).toMatchObject({ kind: 'unauthorized' })
      expect(table.identify(`${adminKey}x`)).toMatchObject({ keyId: 'caller' })
    })

    it('does not judge an issued key before the store has been read, but everybody else', () => {
      const keys = new StoredKeys()
      const table = new KeyTable(new ConfigStore(configOfKeys([{ id: 'plain', key: 'plain-key' }], 'caller')), keys)
      keys.await()
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 2 } })
      expect(table.identify('plain-key')).toEqual({ keyId: 'plain' })
      expect(table.identify('sk-other')).toEqual({ keyId: 'caller', bearer: 'sk-other' })
      keys.learnAll([], 0)
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'unauthorized' })
    })
  })
})

const stored = (given: Partial<StoredKey> = {}): StoredKey => ({
  id: 'a',
  sha256: digest('a'),
  isRevoked: false,
  updatedAtMs: 100,
  ...given,
})

const statusOf = (keys: StoredKeys, key = 'a'): string => keys.lookUp(digest(key)).status

/** How often it was told that a key is over. */
function countEnds(keys: StoredKeys, key = 'a'): () => number {
  const judged = keys.lookUp(digest(key))
  if (judged.status !== 'valid') throw new Error('the key does not work')
  let count = 0
  judged.revocation.onOver(() => (count += 1))
  return () => count
}

describe('Stored keys', () => {
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_000 })
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('are judged by what was read last', () => {
    const keys = new StoredKeys()
    expect(statusOf(keys)).toBe('unknown')
    keys.learn([stored({ models: ['x'] })])
    expect(keys.lookUp(digest('a'))).toMatchObject({ status: 'valid', key: { id: 'a', models: ['x'] } })
    keys.learn([stored({ isRevoked: true, updatedAtMs: 101 })])
    expect(statusOf(keys)).toBe('revoked')
  })

  it('are not brought back to life by an older reading that comes late, in part or in full', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ isRevoked: true, updatedAtMs: 101 })])
    keys.learn([stored()])
    expect(statusOf(keys)).toBe('revoked')
    keys.learnAll([stored()], 0)
    expect(statusOf(keys)).toBe('revoked')
  })

  it('keep the very same key while nothing changes, so that what is compiled for it stays', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ models: ['x'] })])
    const before = keys.lookUp(digest('a'))
    keys.learnAll([stored({ models: ['x'] })], 0)
    expect('key' in before && keys.lookUp(digest('a'))).toMatchObject({ key: 'key' in before ? before.key : {} })
    const after = keys.lookUp(digest('a'))
    expect('key' in before && 'key' in after && before.key === after.key).toBe(true)
  })

  it('expire by the clock, to the millisecond', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ expiresAtMs: 2_000 })])
    jest.setSystemTime(1_999)
    expect(statusOf(keys)).toBe('valid')
    jest.setSystemTime(2_000)
    expect(statusOf(keys)).toBe('expired')
    keys.learn([stored({ expiresAtMs: 3_000, updatedAtMs: 101 })])
    expect(statusOf(keys)).toBe('valid')
  })

  it('that are gone from the store are forgotten, unless they were issued after it was read', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ updatedAtMs: 49 }), stored({ id: 'b', sha256: digest('b'), updatedAtMs: 50 })])
    const ends = countEnds(keys)
    keys.learnAll([], 50)
    expect([statusOf(keys, 'a'), statusOf(keys, 'b'), ends()]).toEqual(['unknown', 'valid', 1])
  })

  it('are awaited until all have been read once', () => {
    const keys = new StoredKeys()
    expect(keys.isAwaited).toBe(false)
    keys.await()
    keys.learn([stored()])
    expect(keys.isAwaited).toBe(true)
    keys.learnAll([], 0)
    expect(keys.isAwaited).toBe(false)
  })

  it('tell once that they are revoked, whatever was changed before', () => {
    const keys = new StoredKeys()
    keys.learn([stored()])
    const ends = countEnds(keys)
    keys.learn([stored({ models: ['x'], updatedAtMs: 101 })])
    expect(ends()).toBe(0)
    keys.learn([stored({ isRevoked: true, updatedAtMs: 102 })])
    keys.learn([stored({ isRevoked: true, updatedAtMs: 103 })])
    expect(ends()).toBe(1)
  })

  it('tell that they have expired at the next reading, and again after they were given more time', () => {
    const keys = new StoredKeys()
    keys.learn([stored({ expiresAtMs: 2_000 })])
    const ends = countEnds(keys)
    jest.setSystemTime(2_000)
    expect(ends()).toBe(0)
    keys.learn([])
    keys.learn([])
    expect(ends()).toBe(1)
    keys.learn([stored({ expiresAtMs: 3_000, updatedAtMs: 101 })])
    const endsAgain = countEnds(keys)
    jest.setSystemTime(3_000)
    keys.learn([])
    expect([ends(), endsAgain()]).toEqual([1, 1])
  })

  it('tell no listener that has left, and at once one that comes late', () => {
    const keys = new StoredKeys()
    keys.learn([stored()])
    const judged = keys.lookUp(digest('a'))
    if (judged.status !== 'valid') throw new Error('the key does not work')
    const heard: string[] = []
    judged.revocation.onOver(() => heard.push('left'))()
    keys.learn([stored({ isRevoked: true, updatedAtMs: 101 })])
    judged.revocation.onOver(() => heard.push('late'))
    expect(heard).toEqual(['late'])
  })
})

const LONGEST = 'k'.repeat(512)

function refusal(headers: Record<string, string>, acceptsApiKeyHeader = false): GatewayError {
  try {
    readKey(headers, acceptsApiKeyHeader)
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('the key was accepted')
}

describe('The key of a request', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER   abc  ', 'abc'],
    ['Bearer app|token', 'app|token'],
    [`Bearer ${LONGEST}`, LONGEST],
  ])('is read from Authorization: %s', (authorization, key) => {
    expect(readKey({ authorization }, false)).toBe(key)
  })

  it.each([{}, { authorization: '' }, { 'x-api-key': 'abc' }])('is missing in %j', (headers) => {
    expect(refusal(headers)).toMatchObject({ kind: 'key_missing' })
  })

  it.each([
    'Bearer',
    'Bearer ',
    'Basic YTpi',
    'abc',
    'Bearer a b',
    'Bearer\tabc',
    'Bearer schlüssel',
    'Bearer a\u007f',
    `Bearer ${LONGEST}k`,
    `Bearer${' '.repeat(600)}abc`,
    `Bearer ${'k'.repeat(15_000)}`,
  ])('is malformed in Authorization: %.40s', (authorization) => {
    const error = refusal({ authorization })
    expect(error.kind).toBe('key_malformed')
    expect(error.message).not.toContain(authorization.slice(7) || 'Bearer \u0000')
  })

  it('is read from x-api-key on the messages routes, after Authorization', () => {
    expect(readKey({ 'x-api-key': LONGEST }, true)).toBe(LONGEST)
    expect(readKey({ authorization: '', 'x-api-key': 'abc' }, true)).toBe('abc')
    expect(readKey({ authorization: 'Bearer one', 'x-api-key': 'two' }, true)).toBe('one')
  })

  it.each([`${LONGEST}k`, 'a b', 'schlüssel'])('is malformed in x-api-key: %.20s', (key) => {
    expect(refusal({ 'x-api-key': key }, true)).toMatchObject({ kind: 'key_malformed' })
  })

  it('is asked for in the words of the route', () => {
    expect(refusal({}, true).message).toContain('x-api-key')
    expect(refusal({}).message).not.toContain('x-api-key')
  })
})
