import type { KeyLimits } from '../config/access-config.js'
import { ConfigError, FaultList } from '../config/config-fault.js'
import { Cursor, type Schema } from '../config/schema-schema.js'
import { glob, keyIdentifier } from '../config/value-types.js'
import { quoted } from '../core/message-text.js'
import { fault, type FieldRule, integer, isRecord, list, record, text } from '../core/validation-rules.js'

const MAXIMUM_GLOBS = 256
const MAXIMUM_NOTE_CHARACTERS = 500
/** The last day that a Date can be. */
const LATEST_MS = 8_640_000_000_000_000

/** What the configuration file refuses is refused here, in its words. Only for texts: schemas may convert the rest. */
const asConfigured =
  (schema: Schema<string>): FieldRule =>
  (value, path) => {
    const faults = new FaultList()
    schema.read(value, new Cursor(path, { faults, production: false }))
    try {
      faults.throwIfAny()
    } catch (error) {
      const [found] = error instanceof ConfigError ? error.faults : []
      return fault(path, 'invalid_value', `Invalid '${path}': ${found?.message ?? 'must be valid'}.`)
    }
    return undefined
  }

export const keyId = asConfigured(keyIdentifier)

const someGlobs = list(asConfigured(glob), { minimumItems: 1 })

export const modelGlobs: FieldRule = (value, path) =>
  Array.isArray(value) && value.length > MAXIMUM_GLOBS
    ? fault(path, 'array_above_max_length', `Invalid '${path}': expected at most ${MAXIMUM_GLOBS} globs.`)
    : someGlobs(value, path)

const perMinute = integer({ minimum: 1, maximum: 1_000_000_000 })
const atOnce = integer({ minimum: 1, maximum: 1_000_000 })

/** As in the configuration file, and the same numbers: a test compares them. */
export const LIMIT_RULES = {
  requestsPerMinute: perMinute,
  tokensPerMinute: perMinute,
  audioSecondsPerMinute: perMinute,
  concurrency: atOnce,
  realtimeSessions: atOnce,
} as const satisfies Record<keyof KeyLimits, FieldRule>

const mustBeObject = record()

export const keyLimits: FieldRule = (value, path) => {
  if (!isRecord(value)) return mustBeObject(value, path)
  for (const [name, limit] of Object.entries(value)) {
    if (!isLimit(name)) {
      const known = Object.keys(LIMIT_RULES).join(', ')
      return fault(path, 'unknown_parameter', `Unknown limit: ${quoted(name)}. Supported are: ${known}.`)
    }
    const found = LIMIT_RULES[name](limit, `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

const isLimit = (name: string): name is keyof KeyLimits => Object.hasOwn(LIMIT_RULES, name)

const someText = text({ maximumCharacters: MAXIMUM_NOTE_CHARACTERS })

export const keyNote: FieldRule = (value, path) =>
  someText(value, path) ??
  (/\p{Cc}/u.test(String(value))
    ? fault(path, 'invalid_value', `Invalid '${path}': must not hold control characters.`)
    : undefined)

export const timeMs = integer({ minimum: 0, maximum: LATEST_MS })
