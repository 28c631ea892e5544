import { type Kysely, sql } from 'kysely'
import type { DatabaseSchema } from './database-schema.js'

const EVERY_MS = 60_000

type Queries = Kysely<DatabaseSchema>

/**
 * The embedded PostgreSQL has no autovacuum: without this, every poll of a task would leave a dead row behind for good, and
 * the planner would know nothing of the tables. Returns what ends it, after the round under way.
 */
export function keepHouse(queries: Queries): () => Promise<void> {
  let round: Promise<void> = Promise.resolve()
  const timer = setInterval(() => {
    // What is left undone is done a minute later; a store that is lost is noticed by those who need it.
    round = tidy(queries).catch(() => undefined)
  }, EVERY_MS)
  timer.unref()
  return () => {
    clearInterval(timer)
    return round
  }
}

/** Vacuums and analyses the tables that have changed enough; by the thresholds of autovacuum, but for small tables. */
export async function tidy(queries: Queries): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
    where n_dead_tup > 1000 + 0.2 * n_live_tup or n_mod_since_analyze > 250 + 0.1 * n_live_tup`.execute(queries)
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(queries)
}
