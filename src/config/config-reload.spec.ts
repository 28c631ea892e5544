import { afterEach, describe, expect, it } from '@jest/globals'
import { once, EventEmitter } from 'node:events'
import { reloadOnSighup } from './config-reload.js'
import { parseConfig } from './config-loader.js'
import { ConfigStore, type ConfigSource } from './config-store.js'

let stop: (() => void) | undefined

afterEach(() => {
  stop?.()
})

/** Sends SIGHUP to a store with that source and gives what was logged, as soon as something was. */
async function logOf(source: ConfigSource, prepare: (store: ConfigStore) => void = () => undefined): Promise<string[]> {
  const store = new ConfigStore(parseConfig('{}', {}), source)
  prepare(store)
  const logged: string[] = []
  const logs = new EventEmitter()
  const write = (level: string) => (message: string) => {
    logged.push(`${level} ${message}`)
    logs.emit('logged')
  }
  stop = reloadOnSighup(store, { info: write('info'), error: write('error') })
  const firstLine = once(logs, 'logged')
  process.emit('SIGHUP', 'SIGHUP')
  await firstLine
  return logged
}

describe('SIGHUP', () => {
  it('reloads the configuration and names what needs a restart', async () => {
    const config = parseConfig('{server: {port: 1}, redis: {url: "redis://h"}}', {})
    expect(await logOf(() => Promise.resolve({ config, file: '' }))).toEqual([
      'info configuration reloaded',
      'info changed, but needs a restart: server.port, redis',
    ])
  })

  it('leaves a faulty configuration aside and logs its faults', async () => {
    const source: ConfigSource = () => Promise.resolve({ config: parseConfig('{server: 1, auth: 2}', {}), file: '' })
    expect(await logOf(source)).toEqual([
      'error configuration not reloaded, the old one stays in force: server: must be a map; auth: must be a map',
    ])
  })

  it('logs that a listener failed, without the text of its error', async () => {
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

  it('is no longer heard after the wiring was stopped', () => {
    const before = process.listenerCount('SIGHUP')
    const store = new ConfigStore(parseConfig('{}', {}))
    const silent = (): void => undefined
    const stopNow = reloadOnSighup(store, { info: silent, error: silent })
    expect(process.listenerCount('SIGHUP')).toBe(before + 1)
    stopNow()
    expect(process.listenerCount('SIGHUP')).toBe(before)
  })
})
