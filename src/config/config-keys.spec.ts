import { createHash } from 'node:crypto'
import { describe, expect, it } from '@jest/globals'
import { faultsOf } from '../../test/support/config-faults.js'
import { parseConfig } from './load-config.js'

const json = JSON.stringify
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

describe('the configuration', () => {
  it('forgets an access key for its hash, and takes a hash as it is', () => {
    const hash = sha256('other key')
    const yaml = json({
      auth: {
        keys: [
          { id: 'a', key: 'k|1' },
          { id: 'b', key: `sha256:${hash.toUpperCase()}`, models: ['*'] },
        ],
      },
    })
    expect(parseConfig(yaml, {}).auth.keys).toEqual([
      { id: 'a', sha256: sha256('k|1') },
      { id: 'b', sha256: hash, models: ['*'] },
    ])
  })

  it('takes limits of keys, and those of keys without any of their own', () => {
    const limits = {
      requestsPerMinute: 600,
      tokensPerMinute: '100000',
      audioSecondsPerMinute: 1,
      concurrency: 4,
      realtimeSessions: 2,
    }
    const keys = [
      { id: 'a', key: 'one', limits },
      { id: 'b', key: 'two', limits: {} },
    ]
    const { auth } = parseConfig(json({ auth: { keys, defaultLimits: { concurrency: 1_000_000 } } }), {})
    expect(auth.keys.map((key) => key.limits)).toEqual([{ ...limits, tokensPerMinute: 100_000 }, {}])
    expect(auth.defaultLimits).toEqual({ concurrency: 1_000_000 })
  })

  it.each(['requestsPerMinute', 'tokensPerMinute', 'audioSecondsPerMinute', 'concurrency', 'realtimeSessions'])(
    'refuses %s that is no whole number above 0 or beyond reason, with its place',
    (name) => {
      for (const bad of [0, -1, 1.5, 'many', 1_000_000_001, true]) {
        const auth = { keys: [{ id: 'a', key: 'one', limits: { [name]: bad } }], defaultLimits: { [name]: bad } }
        expect([bad, faultsOf(json({ auth })).map((fault) => fault.split(':')[0])]).toEqual([
          bad,
          [`auth.keys[0].limits.${name}`, `auth.defaultLimits.${name}`],
        ])
      }
    },
  )

  it('refuses malformed keys, ids and globs, each with its place', () => {
    const keys = [
      { id: 'a b', key: 'x' },
      { id: 'x'.repeat(65), key: 'two words' },
      { id: 'c', key: 'y'.repeat(513) },
      { id: 'd', key: 'sha256:abc' },
      { id: 'e', key: 12345, models: [] },
      { id: 'f', models: ['', 'gpt-?', 'a*'] },
    ]
    expect(faultsOf(json({ auth: { keys } })).map((fault) => fault.split(': ')[0])).toEqual([
      'auth.keys[0].id',
      'auth.keys[1].id',
      'auth.keys[1].key',
      'auth.keys[2].key',
      'auth.keys[3].key',
      'auth.keys[4].key',
      'auth.keys[4].models',
      'auth.keys[5].key',
      'auth.keys[5].models[0]',
      'auth.keys[5].models[1]',
    ])
  })

  it.each(['-', 'caller'])('refuses %s as the id of a key: logs, usage and limits call somebody else so', (id) => {
    const auth = (name: string): string => json({ auth: { keys: [{ id: name, key: 'one' }] } })
    expect(faultsOf(auth(id))).toEqual([expect.stringMatching(/^auth\.keys\[0\]\.id: .*mean somebody else$/)])
    expect(faultsOf(auth(`${id}1`))).toEqual([])
    // Of channels nobody is called anything.
    expect(faultsOf(json({ channels: [{ id, provider: 'p1', baseUrl: 'http://h', credentials: 'k' }] }))).toEqual([])
  })

  it('refuses the same id or the same key twice, also when one of them is given as a hash', () => {
    const keys = [
      { id: 'a', key: 'one' },
      { id: 'b', key: `sha256:${sha256('one')}` },
      { id: 'a', key: 'two' },
    ]
    expect(faultsOf(json({ auth: { keys } }))).toEqual([
      'auth.keys[2].id: is the same as auth.keys[0].id',
      'auth.keys[1].key: is the same as auth.keys[0].key',
    ])
  })

  it('checks added catalogue rows', () => {
    const models = [
      { id: 'org/whisper:1', class: 'stt-standard', providers: ['p4'] },
      { id: 'org/whisper:1', class: 'speech', providers: [] },
      { id: 'glob-*', class: 'chat', providers: ['p1', 'p9'] },
      'text',
    ]
    const faults = faultsOf(json({ models }))
    expect(faults).toEqual([
      'models[1].id: is the same as models[0].id',
      expect.stringMatching(/^models\[1\]\.class: must be one of tts, /),
      'models[1].providers: must name at least one provider',
      expect.stringMatching(/^models\[2\]\.id: must be a model name/),
      expect.stringMatching(/^models\[2\]\.providers\[1\]: must be one of p1, /),
      'models[3]: must be a map',
    ])
  })

  it('refuses unknown keys at every level', () => {
    const yaml = json({
      sever: {},
      server: { prot: 1 },
      auth: { keys: [{ id: 'a', key: 'k', model: [] }] },
      toString: {},
    })
    expect(faultsOf(yaml)).toEqual([
      'document: unknown key "sever"; did you mean "server"?',
      expect.stringMatching(/^document: unknown key "toString"; allowed: server, limits, /),
      'server: unknown key "prot"; did you mean "port"?',
      'auth.keys[0]: unknown key "model"; did you mean "models"?',
    ])
  })

  it('lets the environment win over the file, and names the variable when it is at fault', () => {
    const yaml = 'server: {port: 1, host: file}\ndatabase: {url: "${NOT_SET}"}\nlogging: {level: nonsense}'
    const env = {
      PORT: '8081',
      HOST: '::1',
      DATABASE_URL: 'postgres://h/${X}',
      REDIS_URL: 'redis://h',
      LOG_LEVEL: 'warn',
    }
    expect(parseConfig(yaml, env)).toMatchObject({
      server: { port: 8081, host: '::1' },
      database: { url: 'postgres://h/${X}' },
      redis: { url: 'redis://h' },
      logging: { level: 'warn' },
    })
    expect(faultsOf('{}', { PORT: 'abc', LOG_LEVEL: 'loud' })).toEqual([
      'PORT: must be an integer from 0 to 65535',
      'LOG_LEVEL: must be one of trace, debug, info, warn, error, fatal, silent',
    ])
  })

  it('takes numbers that come from the environment', () => {
    const yaml =
      'server:\n  port: ${P}\nchannels:\n  - { id: a, provider: p1, baseUrl: "http://h", credentials: k, weight: "${W}" }'
    const config = parseConfig(yaml, { P: '8082', W: '0.5' })
    expect(config.server.port).toBe(8082)
    expect(config.channels[0]?.weight).toBe(0.5)
  })

  it('cannot be changed once it is loaded', () => {
    const config = parseConfig(
      json({
        channels: [
          { id: 'a', provider: 'p2', baseUrl: 'ws://h', credentials: 'a|b', options: { voices: { alloy: 'x' } } },
        ],
      }),
      {},
    )
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
    expect(frozen(config)).toBe(true)
  })
})
