import type { KeyTranslation } from '../config/auth-schema.js'
import type { KeyLimits } from '../config/settings.js'
import type { StoredKey } from './key-table.js'

/** What a key may do, for how long. Absent = every model, no limits of its own, translations with losses, no note, for ever. Times are Unix milliseconds. */
export interface KeyFields {
  readonly models?: readonly string[]
  readonly limits?: KeyLimits
  readonly translation?: KeyTranslation
  readonly note?: string
  readonly expiresAtMs?: number
}

/** null takes away; absent leaves as it is. */
export type KeyChange = { readonly [Name in keyof KeyFields]?: KeyFields[Name] | null }

export interface NewIssuedKey extends KeyFields {
  readonly id: string
  readonly sha256: string
  readonly hint: string
}

export interface IssuedKey extends NewIssuedKey {
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly revokedAtMs?: number
}

/** What was read, and the time by the database's clock when it was begun. */
export interface KeySnapshot {
  readonly keys: readonly StoredKey[]
  readonly asOfMs: number
}

/**
 * The keys that the operator issues; also the injection token. Of a key there is only its hash. Created, updated and
 * revoked are times of the database's clock, which all replicas share. All methods reject with
 * `GatewayError('overloaded')` while the database cannot be reached.
 */
export abstract class KeyRepository {
  /** Resolves with undefined when there is, or was, a key of this id. */
  abstract create(key: NewIssuedKey): Promise<IssuedKey | undefined>
  abstract find(id: string): Promise<IssuedKey | undefined>
  /** In the order of their ids; only those behind an id where one is given. */
  abstract page(limit: number, after?: string): Promise<readonly IssuedKey[]>
  /** Resolves with undefined when there is no such key, or none that is not revoked. */
  abstract change(id: string, change: KeyChange): Promise<IssuedKey | undefined>
  /** A key that is revoked already stays as it is. Resolves with undefined when there is no such key. */
  abstract revoke(id: string): Promise<IssuedKey | undefined>
  /** Every key, revoked ones included; with a time only those that were changed since. */
  abstract read(sinceMs?: number): Promise<KeySnapshot>
}

/** As identification needs it. */
export const storedKeyOf = ({ id, sha256, models, limits, translation, ...key }: IssuedKey): StoredKey => ({
  id,
  sha256,
  ...(models === undefined ? {} : { models }),
  ...(limits === undefined ? {} : { limits }),
  ...(translation === undefined ? {} : { translation }),
  isRevoked: key.revokedAtMs !== undefined,
  ...(key.expiresAtMs === undefined ? {} : { expiresAtMs: key.expiresAtMs }),
  updatedAtMs: key.updatedAtMs,
})
