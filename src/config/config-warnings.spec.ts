import { describe, expect, it } from '@jest/globals'
import { BUILT_IN_MODELS } from '../routing/models.table.js'
import { configWarnings } from './config-warnings.js'
import { parseConfig } from './load-config.js'

const SECRET = `whsec_${Buffer.alloc(32).toString('base64')}`
const channel = (credentials: string): string =>
  `{id: a, provider: p1, baseUrl: "http://h", credentials: ${credentials}}`
const complete = (rest: object): string =>
  JSON.stringify({ callbacks: { secret: SECRET }, auth: { keys: [{ id: 'a', key: 'k' }] }, ...rest })

describe('configWarnings', () => {
  it('names what a bare configuration lacks', () => {
    expect(configWarnings(parseConfig('{}', {}))).toEqual([
      expect.stringContaining('callbacks.secret'),
      expect.stringContaining('channels'),
      expect.stringContaining('auth.keys'),
    ])
  })

  it('is silent when signed callbacks, a key and a channel are there', () => {
    const yaml = `{callbacks: {secret: "${SECRET}"}, auth: {keys: [{id: a, key: k}]}, channels: [${channel('own')}]}`
    expect(configWarnings(parseConfig(yaml, {}))).toEqual([])
  })

  it('needs no key when a channel passes its callers on', () => {
    const yaml = `{callbacks: {secret: "${SECRET}"}, channels: [${channel('caller')}]}`
    expect(configWarnings(parseConfig(yaml, {}))).toEqual([])
  })

  it('tells of a p2 channel that serves nothing, for lack of models that are p2’s', () => {
    const p1 = { id: 'a', provider: 'p1', baseUrl: 'http://h', credentials: 'k' }
    const p2 = { id: 'b', provider: 'p2', baseUrl: 'http://h', credentials: 'k|t' }
    const row = { id: 'p2-tts', class: 'tts', providers: ['p2'] }
    expect(configWarnings(parseConfig(complete({ channels: [p1, p2] }), {}))).toEqual([
      expect.stringMatching(/^channels\[1\]\.models is not set: /),
    ])
    const channels = [p1, { ...p2, models: ['*'] }]
    expect(configWarnings(parseConfig(complete({ channels }), {}))).toEqual([])
    expect(configWarnings(parseConfig(complete({ channels: [p2], models: [row] }), {}))).toEqual([])
    expect(BUILT_IN_MODELS.filter(({ providers }) => providers.includes('p2'))).toEqual([])
  })

  describe('with a channel that passes its callers on', () => {
    const channels = [{ id: 'a', provider: 'p1', baseUrl: 'http://h', credentials: 'caller' }]
    const warningsFor = (keys: readonly object[], more: object = { channels }): string[] =>
      configWarnings(parseConfig(complete({ ...more, auth: { keys } }), {}))
    const HASH = `sha256:${'0'.repeat(64)}`

    it('tells of keys that could be taken for an upstream’s, by their ids alone', () => {
      const keys = [
        { id: 'ours', key: 'sk-gw-team' },
        { id: 'theirs', key: 'sk-canary' },
        { id: 'hashed', key: HASH },
      ]
      const [warning, ...others] = warningsFor(keys)
      expect(warning).toMatch(/^auth\.keys: theirs, hashed may be passed on to an upstream, by credentials: caller/)
      expect(warning).not.toContain('canary')
      expect(others).toEqual([])
    })

    it('names ten of many', () => {
      const keys = Array.from({ length: 12 }, (_, index) => ({ id: `key-${index}`, key: `k${index}` }))
      expect(warningsFor(keys)).toEqual([expect.stringMatching(/: key-0, .*key-9 and 2 more may be passed on/)])
    })

    it('is silent where all keys begin as the gateway’s own, and where no channel passes any on', () => {
      expect(warningsFor([{ id: 'ours', key: 'sk-gw-team' }])).toEqual([])
      const own = { channels: [{ ...channels[0], credentials: 'own' }] }
      expect(warningsFor([{ id: 'theirs', key: 'sk-canary' }], own)).toEqual([])
    })

    it('reads the key that a variable gives', () => {
      const yaml = complete({ channels, auth: { keys: [{ id: 'a', key: '${KEY}' }] } })
      expect(configWarnings(parseConfig(yaml, { KEY: 'sk-gw-team' }))).toEqual([])
      expect(configWarnings(parseConfig(yaml, { KEY: 'sk-team' }))).toHaveLength(1)
    })
  })
})
