import { Injectable } from '@nestjs/common'
import { sql } from 'kysely'
import type { KeyLimits } from '../config/settings.js'
import { type ApiKeyRow, Database } from '../storage/database.js'
import type { StoredKey } from './key-table.js'
import {
  type IssuedKey,
  type KeyChange,
  type KeySnapshot,
  KeyRepository,
  type KeyFields,
  type NewIssuedKey,
  storedKeyOf,
} from './key.repository.js'

/** The same for all columns of one statement. */
const nowMs = sql<number>`(extract(epoch from statement_timestamp()) * 1000)::bigint`
/** A clock that was put back must not make a later version look older than an earlier one. */
const laterMs = sql<number>`greatest((extract(epoch from statement_timestamp()) * 1000)::bigint, updated_at_ms + 1)`

/** Issued keys in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyKeyRepository extends KeyRepository {
  constructor(private readonly database: Database) {
    super()
  }

  override async create({ id, sha256, hint, ...fields }: NewIssuedKey): Promise<IssuedKey | undefined> {
    const row = await this.database.run((queries) =>
      queries
        .insertInto('api_key')
        .values({
          id,
          key_sha256: sha256,
          hint,
          ...NO_FIELDS,
          ...columnsOf(fields),
          created_at_ms: nowMs,
          revoked_at_ms: null,
          updated_at_ms: nowMs,
        })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .returningAll()
        .executeTakeFirst(),
    )
    return row === undefined ? undefined : keyOf(row)
  }

  override async find(id: string): Promise<IssuedKey | undefined> {
    const row = await this.database.run((queries) =>
      queries.selectFrom('api_key').selectAll().where('id', '=', id).executeTakeFirst(),
    )
    return row === undefined ? undefined : keyOf(row)
  }

  override async page(limit: number, after?: string): Promise<readonly IssuedKey[]> {
    const rows = await this.database.run((queries) =>
      queries
        .selectFrom('api_key')
        .selectAll()
        .$if(after !== undefined, (query) => query.where('id', '>', after ?? ''))
        .orderBy('id')
        .limit(limit)
        .execute(),
    )
    return rows.map(keyOf)
  }

  override async change(id: string, change: KeyChange): Promise<IssuedKey | undefined> {
    const row = await this.database.run((queries) =>
      queries
        .updateTable('api_key')
        .set({ ...columnsOf(change), updated_at_ms: laterMs })
        .where('id', '=', id)
        .where('revoked_at_ms', 'is', null)
        .returningAll()
        .executeTakeFirst(),
    )
    return row === undefined ? undefined : keyOf(row)
  }

  override async revoke(id: string): Promise<IssuedKey | undefined> {
    const row = await this.database.run((queries) =>
      queries
        .updateTable('api_key')
        .set({ revoked_at_ms: nowMs, updated_at_ms: laterMs })
        .where('id', '=', id)
        .where('revoked_at_ms', 'is', null)
        .returningAll()
        .executeTakeFirst(),
    )
    return row === undefined ? this.find(id) : keyOf(row)
  }

  override async read(sinceMs?: number): Promise<KeySnapshot> {
    return this.database.run(async (queries) => {
      const { now } = await queries.selectNoFrom(nowMs.as('now')).executeTakeFirstOrThrow()
      const rows = await queries
        .selectFrom('api_key')
        .selectAll()
        .$if(sinceMs !== undefined, (query) => query.where('updated_at_ms', '>=', sinceMs ?? 0))
        .execute()
      return { asOfMs: now, keys: rows.map(readable) }
    })
  }
}

/** A row broken by hand is a key that works no more, and stops none of the others. */
function readable(row: ApiKeyRow): StoredKey {
  try {
    return storedKeyOf(keyOf(row))
  } catch {
    return { id: row.id, sha256: row.key_sha256, isRevoked: true, updatedAtMs: row.updated_at_ms }
  }
}

const NO_FIELDS = { models: null, limits: null, translation: null, note: null, expires_at_ms: null }

/** Only the fields that are there; null stays null. */
function columnsOf({ models, limits, translation, note, expiresAtMs }: KeyChange) {
  return {
    ...(models === undefined ? {} : { models: jsonOf(models) }),
    ...(limits === undefined ? {} : { limits: jsonOf(limits) }),
    ...(translation === undefined ? {} : { translation }),
    ...(note === undefined ? {} : { note }),
    ...(expiresAtMs === undefined ? {} : { expires_at_ms: expiresAtMs }),
  }
}

const jsonOf = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

const keyOf = (row: ApiKeyRow): IssuedKey => ({
  id: row.id,
  sha256: row.key_sha256,
  hint: row.hint,
  ...keyFieldsOf(row),
  createdAtMs: row.created_at_ms,
  updatedAtMs: row.updated_at_ms,
  ...(row.revoked_at_ms === null ? {} : { revokedAtMs: row.revoked_at_ms }),
})

const keyFieldsOf = ({ models, limits, translation, note, expires_at_ms: expiresAtMs }: ApiKeyRow): KeyFields => ({
  ...(models === null ? {} : { models: JSON.parse(models) as readonly string[] }),
  ...(limits === null ? {} : { limits: JSON.parse(limits) as KeyLimits }),
  ...(translation === 'strict' ? { translation } : {}),
  ...(note === null ? {} : { note }),
  ...(expiresAtMs === null ? {} : { expiresAtMs }),
})
