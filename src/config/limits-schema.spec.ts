import { describe, expect, it } from '@jest/globals'
import { ConfigError } from './config-fault.js'
import { parseConfig } from './load-config.js'

const DATABASE = { url: 'postgres://db/gateway' }
const LIMITED = { auth: { defaultLimits: { concurrency: 1 } } }

function faultsOf(document: object, env: Readonly<Record<string, string>> = {}): readonly string[] {
  try {
    parseConfig(JSON.stringify({ database: DATABASE, ...document }), env)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map(({ path, message }) => `${path}: ${message}`)
  }
}

const FAULT =
  /: server\.workers must be 1, or redis\.url must be set, where auth\.defaultLimits or auth\.keys\[\]\.limits are/

describe('Several workers without Redis', () => {
  it.each([
    ['the default has limits', LIMITED],
    [
      'a key has',
      {
        auth: {
          keys: [
            { id: 'free', key: 'a' },
            { id: 'a', key: 'k', limits: { tokensPerMinute: 5 } },
          ],
        },
      },
    ],
  ])('are a fault where %s, which names both settings', (_case, limited) => {
    expect(faultsOf({ ...limited, server: { workers: 2 } })).toEqual([expect.stringMatching(FAULT)])
    expect(faultsOf(limited, { WORKERS: '8' })).toEqual([expect.stringMatching(FAULT)])
  })

  it.each<[string, object]>([
    ['one worker', { ...LIMITED, server: { workers: 1 } }],
    ['as many as there are processors, which comes to one then', { ...LIMITED, server: { workers: 'auto' } }],
    ['Redis', { ...LIMITED, server: { workers: 8 }, redis: { url: 'redis://h' } }],
    ['no limits', { server: { workers: 8 }, auth: { keys: [{ id: 'a', key: 'k' }] } }],
    [
      'limits of nothing',
      { server: { workers: 8 }, auth: { keys: [{ id: 'a', key: 'k', limits: {} }], defaultLimits: {} } },
    ],
  ])('are none with %s', (_case, document) => {
    expect(faultsOf(document)).toEqual([])
  })

  it('are told beside other faults', () => {
    expect(faultsOf({ ...LIMITED, server: { workers: 2, port: -1 } })).toHaveLength(1)
    expect(faultsOf({ ...LIMITED, server: { workers: 2 }, database: { ...DATABASE, maxConnections: 0 } })).toHaveLength(
      2,
    )
  })
})
