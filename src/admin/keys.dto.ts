import { ApiProperty } from '@nestjs/swagger'
import type { IssuedKey } from '../auth/key.repository.js'
import type { KeyLimits } from '../config/access-config.js'
import { Field } from '../core/field.decorator.js'
import { optional } from '../core/validation-rules.js'
import { keyId, keyLimits, keyNote, modelGlobs, timeMs } from './key-fields.js'
import { pageOf } from './page-dto.js'

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

/** What an operator says of a key; null is as good as nothing when it is created, and takes away when it is changed. */
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

export type KeyState = 'active' | 'expired' | 'revoked'

/** A key as operators see it: nothing from which it, or its hash, could be made. */
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

/** The only answer that ever holds a key. */
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
