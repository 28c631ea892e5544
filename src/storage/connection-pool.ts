import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { DatabaseSchema } from './database-schema.js'

/** Counts and milliseconds stay far below 2^53: they are read as numbers. Per pool, as the driver's own table is global. */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, Number)

/**
 * Connects when the first query comes; `destroy()` ends it. `onError` hears of connections that died while nobody used them;
 * the pool has forgotten them by then.
 */
export function connectionPool(options: pg.PoolConfig, onError: (error: Error) => void): Kysely<DatabaseSchema> {
  const pool = new pg.Pool({ ...options, types })
  pool.on('error', onError)
  // A connection that dies at work tells its query; that it also emits, with nobody listening, would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return new Kysely({ dialect: new PostgresDialect({ pool }) })
}
