import { EventEmitter, once } from 'node:events'
import { deserialize, serialize } from 'node:v8'
import { afterEach, describe, expect, it } from '@jest/globals'
import { Inject, Injectable, Module } from '@nestjs/common'
import { Test, type TestingModule } from '@nestjs/testing'
import { parseConfig } from '../../test/support/config.js'
import { PROVIDERS } from '../app/providers.js'
import { builtInModels } from '../routing/channel.js'
import { ConfigError } from './faults.js'
import {
  type ConfigSource,
  ConfigStore,
  ConfigurationModule,
  configWarnings,
  handedOver,
  reloadConfig,
} from './config-store.js'
import { type Environment, environmentConfig, readEnvironment } from './environment.js'
import type { GatewayConfig } from './settings.js'

/** What is logged when a store with that source reloads. */
async function logOf(source: ConfigSource, prepare: (store: ConfigStore) => void = () => undefined): Promise<string[]> {
  const store = new ConfigStore(parseConfig('{}', {}), source)
  prepare(store)
  const logged: string[] = []
  const write = (level: string) => (message: string) => void logged.push(`${level} ${message}`)
  await reloadConfig(store, { info: write('info'), error: write('error') })
  return logged
}

describe('A reload in the log', () => {
  it('is said to have been done, with what needs a restart', async () => {
    const config = parseConfig('{server: {port: 1}, redis: {url: "redis://h"}}', {})
    expect(await logOf(() => Promise.resolve({ config, file: '' }))).toEqual([
      'info configuration reloaded',
      'info changed, but needs a restart: server.port, redis',
    ])
  })

  it('is said to have been refused, with the faults', async () => {
    const source: ConfigSource = () => Promise.resolve({ config: parseConfig('{server: 1, auth: 2}', {}), file: '' })
    expect(await logOf(source)).toEqual([
      'error configuration not reloaded, the old one stays in force: server: must be a map; auth: must be a map',
    ])
  })

  it('names what a listener threw, without the text of its error', async () => {
    const config = parseConfig('{}', {})
    const lines = await logOf(
      () => Promise.resolve({ config, file: '' }),
      (store) => {
        store.onChange(() => {
          throw new TypeError('redis://user:CANARY@h')
        })
      },
    )
    expect(lines).toEqual([
      'info configuration reloaded',
      'error configuration reloaded, but a part did not take it over: TypeError',
    ])
  })

  it('reads from the source that is named for this time', async () => {
    const store = new ConfigStore(parseConfig('{}', {}))
    const logged: string[] = []
    const log = {
      info: (message: string) => void logged.push(message),
      error: (message: string) => void logged.push(message),
    }
    await reloadConfig(store, log, () => Promise.resolve({ config: parseConfig('{tasks: {pollIntervalMs: 7}}', {}) }))
    await reloadConfig(store, log)
    expect(store.current.tasks.pollIntervalMs).toBe(7)
    expect(logged).toEqual([
      'configuration reloaded',
      'configuration not reloaded, the old one stays in force: there is no configuration file to reload',
    ])
  })
})

const yaml = (text: string): GatewayConfig => parseConfig(text, {})
const sourceOf = (...texts: string[]): ConfigSource => {
  let reads = 0
  return () => Promise.resolve({ config: yaml(texts[reads++] ?? '{}'), file: '/gateway.yaml' })
}

describe('ConfigStore', () => {
  it('swaps to the configuration read anew and tells everyone who asked, with what it was before', async () => {
    const initial = yaml('{}')
    const store = new ConfigStore(initial, sourceOf('{tasks: {pollIntervalMs: 7}}'))
    const seen: [number, GatewayConfig, boolean][] = []
    store.onChange((next, previous) => seen.push([next.tasks.pollIntervalMs, previous, store.current === next]))
    expect(await store.reload()).toEqual({ applied: true, needsRestart: [], listenerErrors: [] })
    expect(store.current.tasks.pollIntervalMs).toBe(7)
    expect(seen).toEqual([[7, initial, true]])
  })

  it('keeps the old configuration when the new one has faults, and says which', async () => {
    const initial = yaml('{}')
    const store = new ConfigStore(initial, sourceOf('{tasks: {pollIntervalMs: -7}, callbacks: 1}'))
    let calls = 0
    store.onChange(() => calls++)
    expect(await store.reload()).toEqual({
      applied: false,
      faults: ['tasks.pollIntervalMs: must be an integer from 1 to 2147483647', 'callbacks: must be a map'],
    })
    expect(store.current).toBe(initial)
    expect(calls).toBe(0)
  })

  it.each([
    ['the file is gone', () => Promise.resolve(undefined), 'the configuration file does not exist any more'],
    ['reading breaks', () => Promise.reject(new Error('near "secret"')), 'the configuration could not be read'],
    ['there never was a file', undefined, 'there is no configuration file to reload'],
  ])('keeps the old configuration when %s', async (_name, source, fault) => {
    const initial = yaml('{}')
    const store = new ConfigStore(initial, source)
    expect(await store.reload()).toEqual({ applied: false, faults: [fault] })
    expect(store.current).toBe(initial)
  })

  it('reads again after a refused reload', async () => {
    let reads = 0
    const store = new ConfigStore(yaml('{}'), () => {
      reads += 1
      if (reads === 1) return Promise.reject(new ConfigError([{ path: 'a', message: 'b' }]))
      return Promise.resolve({ config: yaml('{tasks: {pollIntervalMs: 9}}'), file: '' })
    })
    const outcomes = await Promise.all([store.reload(), store.reload()])
    expect(outcomes.map(({ applied }) => applied)).toEqual([false, true])
    expect(store.current.tasks.pollIntervalMs).toBe(9)
  })

  it('runs reloads one after the other, in the order they were asked for', async () => {
    const steps: string[] = []
    let reads = 0
    const release = new EventEmitter()
    const released = [once(release, 'read 0'), once(release, 'read 1')]
    const store = new ConfigStore(yaml('{}'), async () => {
      const read = reads++
      steps.push(`start ${read}`)
      await released[read]
      steps.push(`end ${read}`)
      return { config: yaml(`{tasks: {pollIntervalMs: ${read + 1}}}`), file: '' }
    })
    const reloads = [store.reload(), store.reload()]
    release.emit('read 1')
    await new Promise((resolve) => setImmediate(resolve))
    expect(steps).toEqual(['start 0'])
    release.emit('read 0')
    await Promise.all(reloads)
    expect(steps).toEqual(['start 0', 'end 0', 'start 1', 'end 1'])
    expect(store.current.tasks.pollIntervalMs).toBe(2)
  })

  it('tells the others when a listener throws, and hands on what it threw', async () => {
    const store = new ConfigStore(yaml('{}'), sourceOf('{tasks: {pollIntervalMs: 7}}'))
    const broken = new Error('broken listener')
    const seen: number[] = []
    store.onChange(() => {
      throw broken
    })
    store.onChange((next) => seen.push(next.tasks.pollIntervalMs))
    expect(await store.reload()).toEqual({ applied: true, needsRestart: [], listenerErrors: [broken] })
    expect(seen).toEqual([7])
    expect(store.current.tasks.pollIntervalMs).toBe(7)
  })

  it('stops telling a listener that left, even when the same function stays registered a second time', async () => {
    const store = new ConfigStore(yaml('{}'), sourceOf('{}', '{}'))
    let calls = 0
    const listener = (): void => {
      calls += 1
    }
    const leave = store.onChange(listener)
    store.onChange(listener)
    await store.reload()
    leave()
    leave()
    await store.reload()
    expect(calls).toBe(3)
  })

  it('keeps what is bound for the life of the process, reports it at every reload, and applies the rest', async () => {
    const changed =
      '{server: {port: 1, metricsPort: 2, workers: 3, host: "::", publicUrl: "http://new"}, database: {url: "postgres://h"}, redis: {url: "redis://h"}, logging: {level: debug}}'
    const initial = yaml('{}')
    const store = new ConfigStore(initial, sourceOf(changed, changed, '{}'))
    const needsRestart = ['server.host', 'server.port', 'server.metricsPort', 'server.workers', 'database', 'redis']
    expect(await store.reload()).toMatchObject({ applied: true, needsRestart })
    expect(store.current).toMatchObject({
      server: { ...initial.server, publicUrl: 'http://new' },
      database: {},
      redis: {},
      logging: { level: 'debug' },
    })
    expect(Object.isFrozen(store.current) && Object.isFrozen(store.current.server)).toBe(true)
    expect(await store.reload()).toMatchObject({ needsRestart })
    expect(await store.reload()).toMatchObject({ needsRestart: [] })
  })

  describe('judges limits by what runs', () => {
    const LIMITS = 'auth: {defaultLimits: {concurrency: 1}}'
    const DATABASE = 'database: {url: "postgres://h"}'
    const reloadOf = async (running: string, next: string) => {
      const initial = yaml(running)
      const store = new ConfigStore(initial, sourceOf(next))
      const outcome = await store.reload()
      return { outcome, isUnchanged: store.current === initial }
    }

    it.each([
      ['for one worker', `{${LIMITS}, ${DATABASE}, server: {workers: 1}}`],
      ['for as many as there are processors', `{${LIMITS}, ${DATABASE}, server: {workers: auto}}`],
      ['with a Redis that is not asked before a restart', `{${LIMITS}, ${DATABASE}, redis: {url: "redis://h"}}`],
    ])('and refuses them where several workers run without Redis, in a file %s', async (_what, file) => {
      const { outcome, isUnchanged } = await reloadOf(`{${DATABASE}, server: {workers: 4}}`, file)
      const fault = expect.stringMatching(/^server\.workers: 4 workers run, without Redis.*auth\.defaultLimits/)
      expect(outcome).toEqual({ applied: false, faults: [fault] })
      expect(isUnchanged).toBe(true)
    })

    it.each([
      ['one worker', `{${DATABASE}}`, `{${LIMITS}, ${DATABASE}}`],
      [
        'Redis, also when the file has lost it',
        `{${DATABASE}, server: {workers: 4}, redis: {url: "redis://h"}}`,
        `{${LIMITS}, ${DATABASE}, server: {workers: auto}}`,
      ],
    ])('and takes them where they are counted by %s', async (_what, running, file) => {
      expect((await reloadOf(running, file)).outcome).toMatchObject({ applied: true })
    })
  })
})

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
    expect(builtInModels(PROVIDERS).filter(({ providers }) => providers.includes('p2'))).toEqual([])
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

describe('ConfigurationModule', () => {
  @Injectable()
  class Reader {
    constructor(
      readonly store: ConfigStore,
      @Inject(environmentConfig.KEY) readonly environment: Environment,
    ) {}
  }

  @Module({ providers: [Reader] })
  class DistantModule {}

  let nest: TestingModule | undefined

  afterEach(async () => {
    await nest?.close()
  })

  it('gives the store and the environment to a module that imports nothing', async () => {
    const config = parseConfig('{}', {})
    nest = await Test.createTestingModule({
      imports: [ConfigurationModule.forRoot({ config }), DistantModule],
    }).compile()
    const { store, environment } = nest.get(Reader, { strict: false })
    expect(store.current).toBe(config)
    expect(environment).toEqual(readEnvironment(process.env))
    expect(await store.reload()).toMatchObject({ applied: false })
  })

  it('gives the environment of a sandbox to a sandbox, by the same key', async () => {
    const module = ConfigurationModule.forRoot({ config: parseConfig('{}', {}), sandbox: true })
    nest = await Test.createTestingModule({ imports: [module, DistantModule] }).compile()
    expect(nest.get(Reader, { strict: false }).environment).toEqual(readEnvironment(process.env, true))
  })

  it('reloads from where it was told', async () => {
    const next = parseConfig('{logging: {level: error}}', {})
    const module = ConfigurationModule.forRoot({
      config: parseConfig('{}', {}),
      reloadFrom: () => Promise.resolve({ config: next, file: '' }),
    })
    nest = await Test.createTestingModule({ imports: [module] }).compile()
    const store = nest.get(ConfigStore)
    await store.reload()
    expect(store.current).toBe(next)
  })
})

/** As a message between processes comes: cloned, not as JSON. */
const sent = <T>(value: T): T => deserialize(serialize(value)) as T

describe('a configuration that another process has sent', () => {
  it('knows no name that is not in it, and cannot be changed', () => {
    const channel = '{id: a, provider: p1, baseUrl: "http://h", credentials: x, modelMap: {tts-1: up}}'
    const { channels } = handedOver(sent(parseConfig(`{channels: [${channel}]}`, {})))
    const names: Readonly<Record<string, unknown>> = channels[0]?.modelMap ?? {}
    expect(['tts-1', 'constructor', 'toString'].map((name) => names[name])).toEqual(['up', undefined, undefined])
    expect([names, channels[0], channels].every(Object.isFrozen)).toBe(true)
  })
})
