import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../config/load-config.js'
import type { ProviderOf } from '../providers/provider-capabilities.js'
import { RoutingTable } from './channel-selection.js'
import { ProviderRegistry } from './provider-registry.js'

const CHAT: ProviderOf<'chat'> = { complete: () => Promise.reject(new Error('never asked')) }
const SPEECH: ProviderOf<'speech'> = { speak: () => Promise.reject(new Error('never asked')) }

const channel = (id: string, more: object) => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', ...more })

const table = (...channels: object[]): RoutingTable =>
  new RoutingTable(
    parseConfig(JSON.stringify({ channels, auth: { keys: [] } }), {}),
    new ProviderRegistry({ p1: { chat: CHAT, speech: SPEECH } }),
  )

const idsOf = (channels: readonly { readonly id: string }[]): string => channels.map(({ id }) => id).join()

describe('Who serves a model', () => {
  const routing = table(
    channel('own', { credentials: 's', models: ['chat-*'] }),
    channel('second', { credentials: 's', models: ['chat-1'] }),
    channel('callers', { credentials: 'caller', models: ['chat-*', 'tts-1'] }),
  )

  it.each([
    ['chat', 'chat-1', 'own,second', 'callers'],
    ['chat', 'chat-2', 'own', 'callers'],
    ['chat', 'other', '', ''],
    ['chat', 'tts-1', '', ''],
    ['speech', 'tts-1', '', 'callers'],
    ['speech', 'chat-1', '', ''],
  ] as const)('is the same however often it is asked: %s with %s', (capability, model, own, callers) => {
    for (let asked = 0; asked < 3; asked++) {
      const serving = routing.serving(capability, model)
      expect([idsOf(serving.own), idsOf(serving.callers)]).toEqual([own, callers])
    }
  })

  it('is found once for a name that comes again', () => {
    expect(routing.serving('chat', 'chat-again')).toBe(routing.serving('chat', 'chat-again'))
  })

  it('is not kept for more names than callers may make up, and found all the same', () => {
    const flooded = table(channel('own', { credentials: 's', models: ['*'] }))
    for (let made = 0; made < 2_000; made++) flooded.serving('chat', `made-up-${made}`)
    const [first, again] = [flooded.serving('chat', 'real'), flooded.serving('chat', 'real')]
    expect(first).not.toBe(again)
    expect([idsOf(first.own), idsOf(again.own)]).toEqual(['own', 'own'])
    expect(flooded.serving('chat', 'made-up-0')).toBe(flooded.serving('chat', 'made-up-0'))
  })

  it('is not kept for a name that is longer than any', () => {
    const routed = table(channel('own', { credentials: 's', models: ['*'] }))
    expect(routed.serving('chat', 'm'.repeat(257))).not.toBe(routed.serving('chat', 'm'.repeat(257)))
    expect(routed.serving('chat', 'm'.repeat(256))).toBe(routed.serving('chat', 'm'.repeat(256)))
  })
})
