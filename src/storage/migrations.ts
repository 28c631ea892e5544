import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { isNativeError } from 'node:util/types'
import { type Kysely, type Migration, Migrator, type QueryExecutorProvider, sql } from 'kysely'
import { type DatabaseSchema, StoreUnusable } from './database.js'

/** As far from `src/` as from `dist/`. */
const FOLDER = fileURLToPath(new URL('../../migrations/', import.meta.url))

/** The table of a store that `npm run store` is filling, and that is not whole before it is dropped. */
export const FILLING = 'store_filling'

/**
 * Applies what is missing of `migrations/*.sql`, in the order of their numbers, all in one transaction. Several processes
 * may do so at once: Kysely's migrator holds an advisory lock meanwhile. Rejects with the database's error, or with
 * `StoreUnusable` when a newer version of the gateway has been here, or the store is not whole.
 */
export async function migrate(queries: Kysely<DatabaseSchema>): Promise<void> {
  if (await isHalfFilled(queries)) throw new StoreUnusable(HALF_FILLED)
  const { error } = await migratorOf(queries).migrateToLatest()
  if (error !== undefined) throw failureOf(error)
}

export async function isHalfFilled(queries: Kysely<DatabaseSchema>): Promise<boolean> {
  const { rows } = await sql<{ isThere: boolean }>`select to_regclass(${FILLING}) is not null as "isThere"`.execute(
    queries,
  )
  return rows[0]?.isThere === true
}

const HALF_FILLED =
  'The store is not whole: npm run store was filling it and has not come to its end. Run the same command again; it goes on ' +
  'where it was.'

/** Applies these migrations to an empty database. */
export async function migrateTo(queries: Kysely<DatabaseSchema>, names: readonly string[]): Promise<void> {
  const { error } = await migratorOf(queries).migrateTo(names.at(-1) ?? '')
  if (error !== undefined) throw failureOf(error)
}

/** The same within a transaction, for what is not to stay: no table tells of them. */
export async function applyMigrations(queries: Kysely<DatabaseSchema>, names: readonly string[]): Promise<void> {
  const texts = await migrationTexts()
  for (const name of names) await execute(queries, texts.get(name) ?? '')
}

/** How many migrations the store lacks. */
export async function missingMigrations(queries: Kysely<DatabaseSchema>): Promise<number> {
  const migrations = await migratorOf(queries).getMigrations()
  return migrations.filter(({ executedAt }) => executedAt === undefined).length
}

function failureOf(error: unknown): Error {
  const missing = isNativeError(error) ? /previously executed migration (\S+) is missing/.exec(error.message) : null
  if (missing !== null) return tooNew(String(missing[1]), error)
  return isNativeError(error) ? error : new Error('the migrations failed', { cause: error })
}

const tooNew = (name: string, cause?: unknown): StoreUnusable =>
  new StoreUnusable(
    `The store has been migrated by a newer version of the gateway (${name}). Run that version, or a newer one.`,
    { cause },
  )

/** Migrations, and what they make. */
export interface Made {
  readonly migrations: readonly string[]
  readonly tables: readonly string[]
  readonly functions: readonly string[]
}

/** What the migrations that a store has had have made, by default all; rejects with `StoreUnusable` where it is newer. */
export async function knownMigrations(applied?: readonly string[]): Promise<Made> {
  const texts = await migrationTexts()
  const names = applied ?? [...texts.keys()]
  const unknown = names.find((name, at) => [...texts.keys()][at] !== name)
  if (unknown !== undefined) throw tooNew(unknown)
  const text = names.map((name) => texts.get(name)).join('\n')
  const made = (what: string): readonly string[] =>
    [...text.matchAll(new RegExp(`^create ${what} (\\w+)`, 'gm'))].map(([, name = '']) => name)
  return { migrations: names, tables: made('table'), functions: made('function') }
}

const migratorOf = (queries: Kysely<DatabaseSchema>): Migrator =>
  new Migrator({
    db: queries,
    provider: { getMigrations: readMigrations },
    migrationTableName: 'migration',
    migrationLockTableName: 'migration_lock',
  })

async function readMigrations(): Promise<Record<string, Migration>> {
  const texts = await migrationTexts()
  return Object.fromEntries([...texts].map(([name, text]) => [name, { up: (queries) => execute(queries, text) }]))
}

/** By their names, in their order. */
async function migrationTexts(): Promise<ReadonlyMap<string, string>> {
  const files = (await readdir(FOLDER)).filter((name) => name.endsWith('.sql')).sort()
  const texts = files.map(
    async (name) => [name.slice(0, -'.sql'.length), await readFile(`${FOLDER}${name}`, 'utf8')] as const,
  )
  return new Map(await Promise.all(texts))
}

/** Without parameters the driver sends the text as one simple query: a file may hold many statements. */
async function execute(queries: QueryExecutorProvider, text: string): Promise<void> {
  await sql.raw(text).execute(queries)
}
