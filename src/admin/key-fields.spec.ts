import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ConfigError } from '../config/config-fault.js'
import { parseConfig } from '../config/load-config.js'
import { keyId, keyLimits, LIMIT_RULES, modelGlobs } from './key-fields.js'

/** Whether the configuration file takes a key with these settings. */
function isConfigurable(settings: object): boolean {
  try {
    parseConfig(JSON.stringify({ auth: { keys: [{ id: 'a', key: 'k', ...settings }] } }), {})
    return true
  } catch (error) {
    if (error instanceof ConfigError) return false
    throw error
  }
}

const NAMES = Object.keys(LIMIT_RULES)

describe('The fields of an issued key', () => {
  it.each(NAMES)('take the same numbers for the limit %s as the configuration file', (name) => {
    for (const limit of [-1, 0, 1, 1.5, 1_000_000, 1_000_001, 1_000_000_000, 1_000_000_001, true, {}]) {
      const limits = { [name]: limit }
      expect([limit, keyLimits(limits, 'limits') === undefined]).toEqual([limit, isConfigurable({ limits })])
    }
  })

  it('know the same limits', () => {
    expect(isConfigurable({ limits: Object.fromEntries(NAMES.map((name) => [name, 1])) })).toBe(true)
    expect(keyLimits({ constructor: 1 }, 'limits')).toMatchObject({ code: 'unknown_parameter' })
    for (const name of ['tokensPerHour', 'requests']) expect(isConfigurable({ limits: { [name]: 1 } })).toBe(false)
  })

  it('take the same ids and globs', () => {
    for (const id of ['-', 'caller'])
      expect([keyId(id, 'id') === undefined, isConfigurable({ id })]).toEqual([false, false])
    const text = fc.string({ unit: fc.constantFrom('a', 'Z', '0', '.', '_', '-', '*', '?', '[', ' ', 'ü', '\n', "'") })
    fc.assert(
      fc.property(text, (word) => {
        expect(keyId(word, 'id') === undefined).toBe(isConfigurable({ id: word }))
        expect(modelGlobs([word], 'models') === undefined).toBe(isConfigurable({ models: [word] }))
      }),
    )
  })
})
