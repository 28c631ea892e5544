import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { isNativeError } from 'node:util/types'
import { type Kysely, type Migration, Migrator, sql } from 'kysely'
import { type DatabaseSchema, StoreUnusable } from './database.js'

/** As far from `src/` as from `dist/`. */
const FOLDER = fileURLToPath(new URL('../../migrations/', import.meta.url))

/**
 * Applies what is missing of `migrations/*.sql`, in the order of their numbers, all in one transaction. Several processes
 * may do so at once: Kysely's migrator holds an advisory lock meanwhile. Rejects with the database's error, or with
 * `StoreUnusable` when a newer version of the gateway has been here.
 */
export async function migrate(queries: Kysely<DatabaseSchema>): Promise<void> {
  const migrator = new Migrator({
    db: queries,
    provider: { getMigrations: readMigrations },
    migrationTableName: 'migration',
    migrationLockTableName: 'migration_lock',
  })
  const { error } = await migrator.migrateToLatest()
  if (error === undefined) return
  const missing = isNativeError(error) ? /previously executed migration (\S+) is missing/.exec(error.message) : null
  if (missing === null) throw isNativeError(error) ? error : new Error('the migrations failed', { cause: error })
  throw new StoreUnusable(
    `The store has been migrated by a newer version of the gateway (${String(missing[1])}). Run that version, or a newer one.`,
    { cause: error },
  )
}

async function readMigrations(): Promise<Record<string, Migration>> {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.sql'))
  const migrations = names.map(async (name): Promise<[string, Migration]> => {
    const text = await readFile(`${FOLDER}${name}`, 'utf8')
    return [name.slice(0, -'.sql'.length), { up: (queries) => execute(queries, text) }]
  })
  return Object.fromEntries(await Promise.all(migrations))
}

/** Without parameters the driver sends the text as one simple query: a file may hold many statements. */
async function execute(queries: Kysely<unknown>, text: string): Promise<void> {
  await sql.raw(text).execute(queries)
}
