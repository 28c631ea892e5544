import { EventEmitter, once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from './config-fault.js'
import { type ConfigSource, ConfigStore } from './config-store.js'
import { parseConfig } from './load-config.js'
import type { GatewayConfig } from './settings.js'

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
    const gate = new EventEmitter()
    const gates = [once(gate, 'open 0'), once(gate, 'open 1')]
    const store = new ConfigStore(yaml('{}'), async () => {
      const read = reads++
      steps.push(`start ${read}`)
      await gates[read]
      steps.push(`end ${read}`)
      return { config: yaml(`{tasks: {pollIntervalMs: ${read + 1}}}`), file: '' }
    })
    const reloads = [store.reload(), store.reload()]
    gate.emit('open 1')
    await new Promise((resolve) => setImmediate(resolve))
    expect(steps).toEqual(['start 0'])
    gate.emit('open 0')
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
