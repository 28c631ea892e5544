import { ApiProperty } from '@nestjs/swagger'
import type * as z from 'zod'
import type { IssuedKey } from '../auth/key.repository.js'
import { checked, ConfigError, FaultList } from '../config/faults.js'
import type { KeyLimits } from '../config/settings.js'
import { glob, keyIdentifier } from '../config/value-types.js'
import { Field } from '../core/dto.js'
import { quoted } from '../core/errors.js'
import {
  anyRecord,
  fieldError,
  type FieldRule,
  integer,
  isRecord,
  list,
  optional,
  text,
} from '../core/validation-rules.js'
import { pageOf } from './admin-request.js'

const MAXIMUM_GLOBS = 256
const MAXIMUM_NOTE_CHARACTERS = 500
/** The latest time of a Date. */
const LATEST_MS = 8_640_000_000_000_000

/** Applies a rule of the configuration file, with its message. Only for text: schemas may convert other values. */
const asConfigured =
  (schema: z.ZodType<string>): FieldRule =>
  (value, path) => {
    const faults = new FaultList()
    checked(schema, value, faults)
    try {
      faults.throwIfAny()
    } catch (error) {
      const [found] = error instanceof ConfigError ? error.faults : []
      return fieldError(path, 'invalid_value', `Invalid '${path}': ${found?.message ?? 'must be valid'}.`)
    }
    return undefined
  }

export const keyId = asConfigured(keyIdentifier)

const someGlobs = list(asConfigured(glob), { minimumItems: 1 })

export const modelGlobs: FieldRule = (value, path) =>
  Array.isArray(value) && value.length > MAXIMUM_GLOBS
    ? fieldError(path, 'array_above_max_length', `Invalid '${path}': expected at most ${MAXIMUM_GLOBS} globs.`)
    : someGlobs(value, path)

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

export const keyLimits: FieldRule = (value, path) => {
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
}

const isLimit = (name: string): name is keyof KeyLimits => Object.hasOwn(LIMIT_RULES, name)

const someText = text({ maximumCharacters: MAXIMUM_NOTE_CHARACTERS })

const keyNote: FieldRule = (value, path) =>
  someText(value, path) ??
  (/\p{Cc}/u.test(String(value))
    ? fieldError(path, 'invalid_value', `Invalid '${path}': must not hold control characters.`)
    : undefined)

const timeMs = integer({ minimum: 0, maximum: LATEST_MS })

const MODELS = { type: 'array', items: { type: 'string' } } as const
const LIMITS = {
  type: 'object',
  additionalProperties: false,
  properties: {
    requestsPerMinute: { type: 'integer', minimum: 1 },
    tokensPerMinute: { type: 'integer', minimum: 1 },
    audioSecondsPerMinute: { type: 'integer', minimum: 1 },
    concurrency: { type: 'integer', minimum: 1 },
    realtimeSessions: { type: 'integer', minimum: 1 },
  },
} as const
const TIME = 'Unix milliseconds'

/** Fields of a key. In a create, null equals absent; in a change, null removes the field. */
export class KeyChangeDto {
  @Field(optional(modelGlobs), { ...MODELS, description: 'Globs; without them every model' })
  readonly models?: readonly string[] | null

  @Field(optional(keyLimits), { ...LIMITS, description: 'As in auth.keys of the configuration file' })
  readonly limits?: KeyLimits | null

  @Field(optional(keyNote), { type: 'string', description: 'At most 500 characters, for operators only' })
  readonly note?: string | null

  @Field(optional(timeMs), { type: 'integer', description: `${TIME}; the key is refused from then on` })
  readonly expires_at?: number | null
}

export class NewKeyDto extends KeyChangeDto {
  @Field(optional(keyId), {
    type: 'string',
    description: 'Shown in logs, metrics and usage; made up when it is left out',
    example: 'team-b',
  })
  readonly id?: string | null
}

type KeyState = 'active' | 'expired' | 'revoked'

/** A key in the admin API: reveals neither the key nor its hash. */
export class KeyDto {
  @ApiProperty({ enum: ['api_key'] })
  readonly object = 'api_key'

  @ApiProperty()
  readonly id: string

  @ApiProperty({ description: 'How the key begins' })
  readonly hint: string

  @ApiProperty({ enum: ['active', 'expired', 'revoked'] })
  readonly state: KeyState

  @ApiProperty({ type: [String], nullable: true, description: 'Globs; null = every model' })
  readonly models: readonly string[] | null

  @ApiProperty({ ...LIMITS, nullable: true, selfRequired: true, description: 'null = none of its own' })
  readonly limits: KeyLimits | null

  @ApiProperty({ type: String, nullable: true })
  readonly note: string | null

  @ApiProperty({ description: TIME })
  readonly created_at: number

  @ApiProperty({ description: TIME })
  readonly updated_at: number

  @ApiProperty({ type: Number, nullable: true, description: `${TIME}; null = never` })
  readonly expires_at: number | null

  @ApiProperty({ type: Number, nullable: true, description: TIME })
  readonly revoked_at: number | null

  constructor(key: IssuedKey, nowMs: number) {
    this.id = key.id
    this.hint = key.hint
    this.state = stateOf(key, nowMs)
    this.models = key.models ?? null
    this.limits = key.limits ?? null
    this.note = key.note ?? null
    this.created_at = key.createdAtMs
    this.updated_at = key.updatedAtMs
    this.expires_at = key.expiresAtMs ?? null
    this.revoked_at = key.revokedAtMs ?? null
  }
}

/** The only response that contains a key. */
export class IssuedKeyDto extends KeyDto {
  @ApiProperty({ description: 'The key itself, shown this once' })
  readonly key: string

  constructor(key: IssuedKey, nowMs: number, secret: string) {
    super(key, nowMs)
    this.key = secret
  }
}

export class KeyListDto extends pageOf(KeyDto, 'Ask again with after=<last id>') {}

function stateOf({ revokedAtMs, expiresAtMs }: IssuedKey, nowMs: number): KeyState {
  if (revokedAtMs !== undefined) return 'revoked'
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'active'
}
