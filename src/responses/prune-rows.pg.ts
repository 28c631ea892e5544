import { sql } from 'kysely'
import type { Database } from '../storage/database.js'

/** Deletes the oldest rows of an owner's table that were made before a time, at most `limit`; how many these were. */
export async function pruneRows(
  database: Database,
  table: 'kept_response' | 'response_pin',
  beforeMs: number,
  limit: number,
): Promise<number> {
  const { numAffectedRows } = await database.run((queries) =>
    sql`delete from ${sql.table(table)} where (owner_id, id) in (
      select owner_id, id from ${sql.table(table)} where created_at_ms < ${beforeMs}
      order by created_at_ms limit ${limit} for update skip locked
    )`.execute(queries),
  )
  return Number(numAffectedRows)
}
