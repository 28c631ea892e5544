import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { PROVIDERS } from '../app/providers.js'
import type { ChannelConfig } from './channel-schema.js'
import { ConfigError } from './faults.js'
import { parseConfig as parseWith } from './load-config.js'

const MINIMAL = { id: 'main', provider: 'p1', baseUrl: 'https://x.example', credentials: 'secret' }

function channel(settings: object, root: object = {}): ChannelConfig | undefined {
  return parseConfig(JSON.stringify({ ...root, channels: [{ ...MINIMAL, ...settings }] }), {}).channels[0]
}

const faultsOf = (...channels: unknown[]): string[] => faultsIn(() => parseConfig(JSON.stringify({ channels }), {}))

function faultsIn(parse: () => unknown): string[] {
  try {
    parse()
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
  return []
}

const faultsWith = (settings: object): string[] => faultsOf({ ...MINIMAL, ...settings })

describe('a channel', () => {
  it('needs four settings and has defaults for the rest', () => {
    expect(channel({})).toEqual({
      id: 'main',
      provider: 'p1',
      baseUrl: 'https://x.example',
      credentials: { kind: 'own', secret: 'secret' },
      modelMap: {},
      priority: 0,
      weight: 1,
      options: { realtimeDialect: 'ga', countBy: 'estimate' },
      timeouts: { connectMs: 5000, firstByteMs: 120_000, idleMs: 60_000, totalMs: 570_000 },
    })
    expect(faultsOf({})).toEqual([
      'channels[0].id: is required',
      'channels[0].provider: is required',
      'channels[0].baseUrl: is required',
      'channels[0].credentials: is required',
    ])
  })

  it('lays its own timeouts over the gateway ones', () => {
    const timeouts = { connectMs: 1, idleMs: 3 }
    expect(channel({ timeouts: { idleMs: 7 } }, { timeouts })?.timeouts).toEqual({
      connectMs: 1,
      firstByteMs: 120_000,
      idleMs: 7,
      totalMs: 570_000,
    })
    expect(faultsWith({ timeouts: { totalMs: 0, shutdownGraceMs: 1 } })).toHaveLength(2)
  })

  it('of p2 waits as long as its vendor’s client, where neither the file nor the channel says otherwise', () => {
    const timeoutsOf = (own: object, shared?: object | null) =>
      channel({ provider: 'p2', credentials: 'a|b', timeouts: own }, { timeouts: shared })?.timeouts
    const p2 = { connectMs: 12_000, firstByteMs: 120_000, idleMs: 8000, totalMs: 570_000 }
    expect(timeoutsOf({})).toEqual(p2)
    expect(timeoutsOf({}, null)).toEqual(p2)
    expect(timeoutsOf({}, { connectMs: null, firstByteMs: 7 })).toEqual({ ...p2, firstByteMs: 7 })
    // A default that stands in the file is a setting.
    expect(timeoutsOf({}, { connectMs: 5000 })).toEqual({ ...p2, connectMs: 5000 })
    expect(timeoutsOf({ idleMs: 2 }, { connectMs: 1, idleMs: 3 })).toEqual({ ...p2, connectMs: 1, idleMs: 2 })
  })

  it.each([
    ['http://h', 'http://h'],
    ['https://H:443/', 'https://h'],
    ['https://h/a/b//', 'https://h/a/b'],
    ['ws://h:81/x', 'ws://h:81/x'],
    ['wss://[::1]:9/', 'wss://[::1]:9'],
  ])('takes the address %s as %s', (given, expected) => {
    expect(channel({ baseUrl: given })?.baseUrl).toBe(expected)
  })

  it.each([
    'ftp://h',
    'h',
    '//h',
    'http://',
    'http://h?',
    'http://h?a=b',
    'http://h#',
    'http://u@h',
    'http://@h',
    'http://h\\x',
    ' http://h',
    'http://h:99999',
    5,
    '',
  ])('refuses the address %j', (baseUrl) => {
    expect(faultsWith({ baseUrl })).toEqual([expect.stringMatching(/^channels\[0\]\.baseUrl: must be a/)])
  })

  it.each([
    ['p1', 'caller', { kind: 'caller' }],
    ['p2', 'caller', { kind: 'caller' }],
    ['p2', 'APP|TOKEN', { kind: 'own', secret: 'APP|TOKEN' }],
    ['vidgen', 'single', { kind: 'own', secret: 'single' }],
    ['vidgen', 'AK|SK', { kind: 'own', secret: 'AK|SK' }],
    ['p3', 'a|b|c', { kind: 'own', secret: 'a|b|c' }],
  ])('of %s takes the credentials %s', (provider, credentials, expected) => {
    expect(channel({ provider, credentials })?.credentials).toEqual(expected)
  })

  it.each([
    ['p2', 'single'],
    ['p2', 'caller|'],
    ['p2', '|TOKEN'],
    ['p2', 'APP|'],
    ['p2', 'a|b|c'],
    ['p2', 'APP|to ken'],
    ['vidgen', 'AK|'],
    ['vidgen', 'a|b|c'],
    ['p1', 'two words'],
    ['p1', 'line\nbreak'],
    ['p1', 'ключ'],
    ['p1', ''],
    ['p1', 12345],
  ])('of %s refuses the credentials %j', (provider, credentials) => {
    expect(faultsWith({ provider, credentials })).toEqual([
      expect.stringMatching(/^channels\[0\]\.credentials: must be/),
    ])
  })

  it.each([
    ['p1', { realtimeDialect: 'beta', countBy: 'responses' }],
    ['p2', { voices: { alloy: 'preset' }, cluster: 'volcano_icl', speedRange: { minimum: 0.1, maximum: 3 } }],
    ['p3', { voices: { alloy: 'Calm Woman' }, groupId: '1234567890123456789' }],
    ['p3', {}],
    ['vidgen', { unknownTasks: 'refuse', pathPrefix: '/v2' }],
    ['imggen', { pathPrefix: '/api/mj' }],
    ['reader', { dialect: 'jina' }],
  ])('of %s takes the options %j', (provider, options) => {
    expect(channel({ provider, options, credentials: 'a|b' })?.options).toEqual(options)
  })

  it('of p2 has the upstream’s cluster and range of speeds, unless it is told others', () => {
    const p2 = { provider: 'p2', credentials: 'a|b' }
    expect(channel(p2)?.options).toEqual({ cluster: 'volcano_tts', speedRange: { minimum: 0.8, maximum: 2 } })
    const narrower = channel({ ...p2, options: { speedRange: { maximum: 1.5 } } })
    expect(narrower?.options['speedRange']).toEqual({ minimum: 0.8, maximum: 1.5 })
  })

  it('drops the trailing slash of a path prefix', () => {
    expect(channel({ provider: 'imggen', options: { pathPrefix: '/' } })?.options).toEqual({ pathPrefix: '' })
  })

  it.each([
    ['p1', { realtimeDialect: 'old' }, 'realtimeDialect: must be one of ga, beta'],
    ['p2', { voices: ['alloy'] }, 'voices: must be a map'],
    ['p2', { cluster: '' }, 'cluster: must be 1 to 64 printable'],
    ['p2', { cluster: 'two words' }, 'cluster: must be 1 to 64 printable'],
    ['p2', { speedRange: { minimum: 0 } }, 'speedRange.minimum: must be a number > 0'],
    [
      'p2',
      { speedRange: { minimum: 2 } },
      'speedRange.maximum: must be greater than channels[0].options.speedRange.min',
    ],
    ['p2', { speedRange: { maximum: 0.8 } }, 'speedRange.maximum: must be greater than'],
    ['p2', { speedRange: { least: 1 } }, 'speedRange: unknown key "least"'],
    ['p3', { groupId: 'a&b' }, 'groupId: must be 1 to 64 letters'],
    ['p3', { groupId: 1234567890 }, 'groupId: must be a string; put it in quotes'],
    ['p3', { voices: { alloy: 7 } }, 'voices.alloy: must be a string; put it in quotes'],
    ['vidgen', { unknownTasks: true }, 'unknownTasks: must be a string; put it in quotes'],
    ['vidgen', { pathPrefix: 'v1' }, 'pathPrefix: must be a path'],
    ['imggen', { pathPrefix: '/a/../b' }, 'pathPrefix: must be a path'],
  ])('of %s refuses the options %j', (provider, options, fault) => {
    expect(faultsWith({ provider, options, credentials: 'a|b' })).toEqual([
      expect.stringContaining(`channels[0].options.${fault}`),
    ])
  })

  it.each(PROVIDERS.map(({ name }) => name))('of %s names the allowed options when one is unknown', (provider) => {
    const [fault] = faultsWith({ provider, credentials: 'a|b', options: { zzzzzzzzzz: 1 } })
    expect(fault).toMatch(/^channels\[0\]\.options: unknown key "zzzzzzzzzz"; (?:allowed: \w|none is allowed)/)
  })

  it('reports every fault of every channel with its place', () => {
    const faults = faultsOf(
      MINIMAL,
      { ...MINIMAL, provider: 'p9', options: { anything: 1 }, models: ['ok', 5] },
      { ...MINIMAL, id: 'third', priority: -1, weight: 0, modelMap: { a: '', 'b c': 'x*', 'gpt-4.1': 3 } },
      { ...MINIMAL, id: 'fourth', priority: 1.5, weight: 'heavy', modelMap: [], options: [], basUrl: 'x' },
    )
    expect(faults.map((fault) => fault.replace(/: .*/s, ''))).toEqual([
      'channels[1].id',
      'channels[1].provider',
      'channels[1].models[1]',
      'channels[2].modelMap.a',
      'channels[2].modelMap["…"]',
      'channels[2].modelMap["gpt-4.1"]',
      'channels[2].priority',
      'channels[2].weight',
      'channels[3]',
      'channels[3].modelMap',
      'channels[3].priority',
      'channels[3].weight',
      'channels[3].options',
    ])
    expect(faults).toContain('channels[2].priority: must be an integer ≥ 0')
    expect(faults).toContain('channels[1].id: is the same as channels[0].id')
  })

  it.each(['p9', '', 'P1', 'constructor', '__proto__'])(
    'of an unknown provider is told all there are: %j',
    (provider) => {
      const known = 'p1, p2, p3, p4, m1, vidgen, imggen, reader'
      expect(faultsWith({ provider })).toEqual([`channels[0].provider: must be one of ${known}`])
    },
  )

  it('has the credentials and options that its provider asks for, among those the gateway is given', () => {
    const [p2] = PROVIDERS.filter(({ name }) => name === 'p2')
    const faults = (...channels: object[]): string[] => {
      const parse = (): unknown =>
        parseWith(JSON.stringify({ channels }), {}, p2 === undefined ? [] : [{ ...p2, name: 'toy' }])
      return faultsIn(parse)
    }
    expect(faults({ ...MINIMAL, provider: 'toy', credentials: 'a|b', options: { cluster: 'c' } })).toEqual([])
    expect(faults({ ...MINIMAL, provider: 'toy' })).toEqual([expect.stringMatching(/credentials: must be APP_ID\|/)])
    expect(faults(MINIMAL)).toEqual(['channels[0].provider: must be one of toy'])
  })

  it('has maps in which a name that every object knows is not found', () => {
    const { modelMap } = channel({ modelMap: { a: 'b' } }) ?? {}
    expect(modelMap?.['a']).toBe('b')
    expect(modelMap?.['constructor']).toBeUndefined()
    const prototype: unknown = JSON.parse('{ "__proto__": "b" }')
    expect(faultsWith({ modelMap: prototype })).toEqual(['channels[0].modelMap: must not hold a key __proto__'])
    expect(faultsWith({ modelMap: { '': 'b' } })).toEqual(['channels[0].modelMap: must not hold an empty key'])
  })

  it('may be one of a thousand', () => {
    const channels = Array.from({ length: 1000 }, (_, index) => ({ ...MINIMAL, id: `c-${index}` }))
    expect(parseConfig(JSON.stringify({ channels }), {}).channels).toHaveLength(1000)
  })
})
