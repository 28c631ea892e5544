import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../config/config-store.js'
import { parseConfig } from '../config/load-config.js'
import type { GatewayConfig } from '../config/settings.js'
import { KeyTable } from './key-table.js'
import { type StoredKey, StoredKeys } from './stored-keys.js'

const digest = (key: string): string => createHash('sha256').update(key).digest('hex')

const configWith = (keys: readonly object[], credentials = 'own-secret'): GatewayConfig =>
  parseConfig(
    JSON.stringify({
      auth: { keys },
      channels: [{ id: 'c', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials }],
    }),
    {},
  )

const tableOf = (keys: readonly object[]): KeyTable => new KeyTable(new ConfigStore(configWith(keys)), new StoredKeys())

const refusalOf = (table: KeyTable, token: string): unknown => {
  try {
    return table.identify(token)
  } catch (error) {
    return error
  }
}

describe('KeyTable', () => {
  it('finds a key written plainly and one written as its hash', () => {
    const table = tableOf([
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
    expect(refusalOf(tableOf([{ id: 'plain', key: 'plain-key' }]), token)).toMatchObject({ kind: 'unauthorized' })
  })

  it('forgets the keys themselves', () => {
    const table = tableOf([{ id: 'plain', key: 'canary-key-1' }])
    table.identify('canary-key-1')
    const remembered = inspect(table, { depth: Infinity })
    expect(remembered).toContain(digest('canary-key-1'))
    expect(remembered).not.toContain('canary-key-1')
  })

  it('follows a reload at once: new keys work, removed ones do not, and so with channels for unknown keys', async () => {
    const next = configWith([{ id: 'new', key: 'new-key' }], 'caller')
    const store = new ConfigStore(configWith([{ id: 'old', key: 'old-key' }]), () =>
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
      const table = new KeyTable(new ConfigStore(configWith([{ id: 'plain', key: 'plain-key' }])), keys)
      keys.learn([stored({ models: ['a'], limits: { concurrency: 2 } })])
      expect(table.identify('plain-key')).toEqual({ keyId: 'plain' })
      expect(table.identify(ISSUED)).toMatchObject({ keyId: 'stored', models: ['a'], limits: { concurrency: 2 } })
    })

    it('refuses those that are over, in words for their holder alone', () => {
      const keys = new StoredKeys()
      const table = new KeyTable(new ConfigStore(configWith([], 'caller')), keys)
      keys.learn([stored({ isRevoked: true })])
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'unauthorized', message: 'The API key has been revoked.' })
      keys.learn([stored({ expiresAtMs: 1, updatedAtMs: 2 })])
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'unauthorized', message: 'The API key has expired.' })
    })

    it('lets one id mean one caller: a configured key voids a stored one of its id, from the reload on', async () => {
      const keys = new StoredKeys()
      const next = configWith([{ id: 'stored', key: 'configured' }])
      const config = new ConfigStore(configWith([]), () => Promise.resolve({ config: next, file: '' }))
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
      const table = new KeyTable(new ConfigStore(configWith([{ id: 'plain', key: 'plain-key' }], 'caller')), keys)
      keys.await()
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 2 } })
      expect(table.identify('plain-key')).toEqual({ keyId: 'plain' })
      expect(table.identify('sk-other')).toEqual({ keyId: 'caller', bearer: 'sk-other' })
      keys.learnAll([], 0)
      expect(refusalOf(table, ISSUED)).toMatchObject({ kind: 'unauthorized' })
    })
  })
})
