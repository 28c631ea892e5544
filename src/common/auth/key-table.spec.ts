import { createHash } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../../config/config-loader.js'
import { ConfigStore } from '../../config/config-store.js'
import type { GatewayConfig } from '../../config/gateway-config.js'
import { KeyTable } from './key-table.js'

const digest = (key: string): string => createHash('sha256').update(key).digest('hex')

const configWith = (keys: readonly object[], credentials = 'own-secret'): GatewayConfig =>
  parseConfig(
    JSON.stringify({
      auth: { keys },
      channels: [{ id: 'c', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials }],
    }),
    {},
  )

const tableOf = (keys: readonly object[]): KeyTable => new KeyTable(new ConfigStore(configWith(keys)))

describe('KeyTable', () => {
  it('finds a key written plainly and one written as its hash', () => {
    const table = tableOf([
      { id: 'plain', key: 'plain-key', models: ['tts-*'] },
      { id: 'hashed', key: `sha256:${digest('hashed-key')}` },
    ])
    expect(table.find('plain-key')).toMatchObject({ id: 'plain', models: ['tts-*'] })
    expect(table.find('hashed-key')).toMatchObject({ id: 'hashed' })
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
    expect(tableOf([{ id: 'plain', key: 'plain-key' }]).find(token)).toBeUndefined()
  })

  it('forgets the keys themselves', () => {
    const table = tableOf([{ id: 'plain', key: 'canary-key-1' }])
    expect(JSON.stringify(table.find('canary-key-1'))).not.toContain('canary-key-1')
  })

  it('follows a reload at once: new keys work, removed ones do not, and so with channels for unknown keys', async () => {
    const next = configWith([{ id: 'new', key: 'new-key' }], 'caller')
    const store = new ConfigStore(configWith([{ id: 'old', key: 'old-key' }]), () =>
      Promise.resolve({ config: next, file: '' }),
    )
    const table = new KeyTable(store)
    expect(table.acceptsUnknownKeys).toBe(false)
    await store.reload()
    expect(table.find('old-key')).toBeUndefined()
    expect(table.find('new-key')).toMatchObject({ id: 'new' })
    expect(table.acceptsUnknownKeys).toBe(true)
  })
})
