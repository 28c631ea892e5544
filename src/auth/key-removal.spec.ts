import { createHash } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { GatewayConfig } from '../config/settings.js'
import { newKey } from './issued-key.js'
import { KeyTable } from './key-table.js'
import { type StoredKey, StoredKeys } from './stored-keys.js'

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
