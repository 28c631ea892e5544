import { describe, expect, it } from '@jest/globals'
import { reloadConfig } from './config-reload.js'
import { type ConfigSource, ConfigStore } from './config-store.js'
import { parseConfig } from './load-config.js'

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
