import { toJSONSchema, type ZodType } from 'zod'
import type { IssuedKey } from '../auth/key.repository.js'
import { KEY_TRANSLATIONS, type KeyTranslation } from '../config/auth-schema.js'
import { checked, ConfigError, FaultList } from '../config/faults.js'
import type { KeyLimits } from '../config/settings.js'
import { glob, keyIdentifier } from '../config/value-types.js'
import { Field, schemaOf, Shown } from '../core/dto.js'
import { quoted } from '../core/errors.js'
import { constant, described, listOf, nullable, patternOf, type Schema, TEXT, UNIX_MS } from '../core/json-schema.js'
import {
  anyRecord,
  fieldError,
  type FieldRule,
  integer,
  isRecord,
  list,
  named,
  oneOf,
  optional,
  shown,
  text,
} from '../core/validation-rules.js'
import { pageOf, PLAIN_TEXT } from './admin-request.js'

const MAXIMUM_GLOBS = 256
const MAXIMUM_NOTE_CHARACTERS = 500
/** The latest time of a Date. */
const LATEST_MS = 8_640_000_000_000_000

/** Applies a rule of the configuration file, with its message. Only for text: schemas may convert other values. */
const asConfigured = (schema: ZodType<string>): FieldRule =>
  shown({ ...TEXT, pattern: patternOf(toJSONSchema(schema).pattern ?? '') }, (value, path) => {
    const faults = new FaultList()
    checked(schema, value, faults)
    try {
      faults.throwIfAny()
    } catch (error) {
      const [found] = error instanceof ConfigError ? error.faults : []
      return fieldError(path, 'invalid_value', `Invalid '${path}': ${found?.message ?? 'must be valid'}.`)
    }
    return undefined
  })

export const keyId = asConfigured(keyIdentifier)

export const modelGlobs = list(asConfigured(glob), { minimumItems: 1, maximumItems: MAXIMUM_GLOBS, itemWord: 'globs' })

const perMinute = integer({ minimum: 1, maximum: 1_000_000_000 })
const atOnce = integer({ minimum: 1, maximum: 1_000_000 })

/** The limits of the configuration file; a test compares the ranges. */
export const LIMIT_RULES = {
  requestsPerMinute: perMinute,
  tokensPerMinute: perMinute,
  audioSecondsPerMinute: perMinute,
  concurrency: atOnce,
  realtimeSessions: atOnce,
} as const satisfies Record<keyof KeyLimits, FieldRule>

const LIMITS = {
  title: 'KeyLimits',
  type: 'object',
  description: 'What a key may use; a limit that is left out does not hold',
  additionalProperties: false,
  properties: Object.fromEntries(Object.entries(LIMIT_RULES).map(([name, { schema = {} }]) => [name, schema])),
} as const satisfies Schema

export const keyLimits = shown(LIMITS, (value, path) => {
  if (!isRecord(value)) return anyRecord(value, path)
  for (const [name, limit] of Object.entries(value)) {
    if (!isLimit(name)) {
      const known = Object.keys(LIMIT_RULES).join(', ')
      return fieldError(path, 'unknown_parameter', `Unknown limit: ${quoted(name)}. Supported are: ${known}.`)
    }
    const found = LIMIT_RULES[name](limit, `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
})

const isLimit = (name: string): name is keyof KeyLimits => Object.hasOwn(LIMIT_RULES, name)

const someText = text({ maximumCharacters: MAXIMUM_NOTE_CHARACTERS })

const keyNote = shown(
  { ...someText.schema, pattern: patternOf(PLAIN_TEXT.source) },
  (value, path) =>
    someText(value, path) ??
    (!PLAIN_TEXT.test(String(value))
      ? fieldError(path, 'invalid_value', `Invalid '${path}': must not hold control characters.`)
      : undefined),
)

const timeMs = integer({ minimum: 0, maximum: LATEST_MS })

const keyTranslation = named('KeyTranslation', 'How losses of translations are taken', oneOf(KEY_TRANSLATIONS))

/** Fields of a key. In a create, null equals absent; in a change, null removes the field. */
export class KeyChangeDto {
  @Field(optional(modelGlobs), { description: 'Globs; without them every model' })
  readonly models?: readonly string[] | null

  @Field(optional(keyLimits), { description: 'As in auth.keys of the configuration file' })
  readonly limits?: KeyLimits | null

  @Field(optional(keyTranslation), {
    description: 'strict: requests that a translation would approximate, or drop something of, are refused',
  })
  readonly translation?: KeyTranslation | null

  @Field(optional(keyNote), { description: 'For operators only, without control characters' })
  readonly note?: string | null

  @Field(optional(timeMs), { description: `${UNIX_MS.description}; the key is refused from then on` })
  readonly expires_at?: number | null
}

export class NewKeyDto extends KeyChangeDto {
  @Field(optional(keyId), {
    description: 'Shown in logs, metrics and usage; made up when it is left out',
    example: 'team-b',
  })
  readonly id?: string | null
}

type KeyState = 'active' | 'expired' | 'revoked'

/** A key in the admin API: reveals neither the key nor its hash. */
export class KeyDto {
  @Shown(constant('api_key'))
  readonly object = 'api_key'

  @Shown(described('Stands in logs, metrics and usage'))
  readonly id: string

  @Shown(described('How the key begins'))
  readonly hint: string

  @Shown({ ...TEXT, enum: ['active', 'expired', 'revoked'] })
  readonly state: KeyState

  @Shown(nullable(listOf(TEXT, 'Globs; null = every model')))
  readonly models: readonly string[] | null

  @Shown({ ...nullable(LIMITS), description: 'null = none of its own' })
  readonly limits: KeyLimits | null

  @Shown({
    ...nullable(keyTranslation.schema ?? {}),
    description: 'null = translations with losses are served',
  })
  readonly translation: KeyTranslation | null

  @Shown(nullable(described('For operators only')))
  readonly note: string | null

  @Shown(UNIX_MS)
  readonly created_at: number

  @Shown(UNIX_MS)
  readonly updated_at: number

  @Shown({ ...nullable(UNIX_MS), description: `${UNIX_MS.description}; null = never` })
  readonly expires_at: number | null

  @Shown(nullable(UNIX_MS))
  readonly revoked_at: number | null

  constructor(key: IssuedKey, nowMs: number) {
    this.id = key.id
    this.hint = key.hint
    this.state = stateOf(key, nowMs)
    this.models = key.models ?? null
    this.limits = key.limits ?? null
    this.translation = key.translation ?? null
    this.note = key.note ?? null
    this.created_at = key.createdAtMs
    this.updated_at = key.updatedAtMs
    this.expires_at = key.expiresAtMs ?? null
    this.revoked_at = key.revokedAtMs ?? null
  }
}

/** The only response that contains a key. */
export class IssuedKeyDto extends KeyDto {
  @Shown(described('The key itself, shown this once'))
  readonly key: string

  constructor(key: IssuedKey, nowMs: number, secret: string) {
    super(key, nowMs)
    this.key = secret
  }
}

export const KEY = schemaOf(KeyDto, 'Key', 'A key, without its secret')

export class KeyListDto extends pageOf<KeyDto>(KEY, 'Ask again with after=<last id>') {}

function stateOf({ revokedAtMs, expiresAtMs }: IssuedKey, nowMs: number): KeyState {
  if (revokedAtMs !== undefined) return 'revoked'
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'active'
}
