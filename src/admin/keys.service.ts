import { randomBytes } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { hintOf, KeyTable, newKey, StoredKeys } from '../auth/key-table.js'
import { type IssuedKey, type KeyChange, KeyRepository, type KeyFields, storedKeyOf } from '../auth/key.repository.js'
import { digestOfKey } from '../core/caller.js'
import { GatewayError, quoted } from '../core/errors.js'
import { hasKey } from '../core/key-mask.js'
import { type Admin, AuditLog } from './audit-log.js'
import { type KeyChangeDto, keyId, type NewKeyDto } from './keys.dto.js'

/** The fields of a new key; null equals absent. */
export function keyFieldsOf({ id, models, limits, translation, note, expires_at: expiresAtMs }: NewKeyDto) {
  const fields: KeyFields & { id?: string } = {
    ...(isGiven(id) && { id }),
    ...(isGiven(models) && { models }),
    ...(isGiven(limits) && { limits }),
    ...(isGiven(translation) && { translation }),
    ...(isGiven(note) && { note }),
    ...(isGiven(expiresAtMs) && { expiresAtMs }),
  }
  return fields
}

/** The changes of a key; null removes a field. */
export const changeOf = ({ models, limits, translation, note, expires_at: expiresAtMs }: KeyChangeDto): KeyChange => ({
  ...(models !== undefined && { models }),
  ...(limits !== undefined && { limits }),
  ...(translation !== undefined && { translation }),
  ...(note !== undefined && { note }),
  ...(expiresAtMs !== undefined && { expiresAtMs }),
})

const isGiven = <Value>(value: Value | null | undefined): value is Value => value !== null && value !== undefined

interface KeyPage {
  readonly keys: readonly IssuedKey[]
  readonly hasMore: boolean
}

/** A new stored key, with its secret, which is shown once. */
interface CreatedKey {
  readonly key: IssuedKey
  readonly secret: string
}

/** Issues, shows, changes and revokes keys (design: keys in the store). Changes take effect in this process at once. */
@Injectable()
export class KeysService {
  constructor(
    private readonly repository: KeyRepository,
    private readonly table: KeyTable,
    private readonly stored: StoredKeys,
    private readonly auditLog: AuditLog,
  ) {}

  /** Rejects with `conflict` when the id is taken, with `invalid_request` for an expiry in the past, and for a key where its id belongs. */
  async create(admin: Admin, { id = newId(), ...fields }: KeyFields & { readonly id?: string }): Promise<CreatedKey> {
    if (hasKey(id, (text) => this.table.knows(text))) throw keyAsId()
    return this.auditLog.change(admin, { action: 'keys.create', target: id, details: detailsOf(fields) }, async () => {
      if (fields.expiresAtMs !== undefined && fields.expiresAtMs <= Date.now()) throw expiredAlready()
      if (this.table.hasConfigured(id)) throw taken(id, 'the configuration file')
      const secret = newKey()
      const key = await this.repository.create({
        id,
        ...fields,
        sha256: digestOfKey(secret),
        hint: hintOf(secret),
      })
      if (key === undefined) throw taken(id, 'the store, if only of one that is revoked')
      this.stored.learn([storedKeyOf(key)])
      return { key, secret }
    })
  }

  page(admin: Admin, limit: number, after?: string): Promise<KeyPage> {
    return this.auditLog.read(admin, { action: 'keys.list' }, async () => {
      const keys = await this.repository.page(limit + 1, after)
      return { keys: keys.slice(0, limit), hasMore: keys.length > limit }
    })
  }

  /** Rejects with `not_found`, as do the following. */
  show(admin: Admin, id: string): Promise<IssuedKey> {
    assertPossible(id)
    return this.auditLog.read(admin, { action: 'keys.show', target: id }, async () =>
      found(await this.repository.find(id)),
    )
  }

  /** Rejects with `conflict` for a revoked key. An expiry in the past ends the key at once. */
  change(admin: Admin, id: string, change: KeyChange): Promise<IssuedKey> {
    assertPossible(id)
    return this.auditLog.change(admin, { action: 'keys.change', target: id, details: detailsOf(change) }, async () => {
      const key = await this.repository.change(id, change)
      if (key === undefined) {
        found(await this.repository.find(id))
        throw new GatewayError('conflict', `The key ${quoted(id)} is revoked for good. Issue another one.`, {
          code: 'key_revoked',
        })
      }
      this.stored.learn([storedKeyOf(key)])
      return key
    })
  }

  /** Permanent and idempotent. */
  revoke(admin: Admin, id: string): Promise<IssuedKey> {
    assertPossible(id)
    return this.auditLog.change(admin, { action: 'keys.revoke', target: id }, async () => {
      const key = found(await this.repository.revoke(id))
      this.stored.learn([storedKeyOf(key)])
      return key
    })
  }
}

export const NO_SUCH_KEY = 'There is no such key.'

const newId = (): string => `key-${randomBytes(6).toString('hex')}`

/** A note may hold anything: the audit log only records that it is set. */
const detailsOf = ({ note, expiresAtMs, ...fields }: KeyChange): Readonly<Record<string, unknown>> => ({
  ...fields,
  ...(expiresAtMs === undefined ? {} : { expires_at: expiresAtMs }),
  ...(note === undefined ? {} : { note: note === null ? null : '…' }),
})

/** Text that cannot be an id is neither looked up nor recorded. */
function assertPossible(id: string): void {
  if (keyId(id, 'id') !== undefined) throw notFound()
}

function found(key: IssuedKey | undefined): IssuedKey {
  if (key === undefined) throw notFound()
  return key
}

const notFound = (): GatewayError => new GatewayError('not_found', NO_SUCH_KEY)

const taken = (id: string, where: string): GatewayError =>
  new GatewayError('conflict', `The id ${quoted(id)} is taken by a key of ${where}.`, { param: 'id', code: 'id_taken' })

const keyAsId = (): GatewayError =>
  new GatewayError('invalid_request', "Invalid 'id': this is a key, or looks like one, and ids stand in logs.", {
    param: 'id',
    code: 'invalid_value',
  })

const expiredAlready = (): GatewayError =>
  new GatewayError('invalid_request', "Invalid 'expires_at': must be in the future, in Unix milliseconds.", {
    param: 'expires_at',
    code: 'invalid_value',
  })
