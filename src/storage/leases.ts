import { type Kysely, sql } from 'kysely'
import type { DatabaseSchema } from './database-schema.js'

/**
 * Frees what a process that was killed had leased to itself. The directory has one owner, so that at its opening nobody can
 * hold a lease; waiting for their ends would keep tasks and callbacks from being worked on for up to ten minutes. A create
 * that was under way is due at once: its upstream has to be asked whether it made the task. Not for stores that are shared.
 */
export async function freeLeases(queries: Kysely<DatabaseSchema>): Promise<void> {
  await sql`
    update task set
      locked_until_ms = 0,
      next_poll_at_ms = case when state = 'creating' then created_at_ms else next_poll_at_ms end
    where locked_until_ms > 0 and state not in ('succeed', 'failed')`.execute(queries)
  await sql`update callback_delivery set locked_until_ms = 0 where locked_until_ms > 0`.execute(queries)
}
