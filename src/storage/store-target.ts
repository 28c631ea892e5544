import { isNativeError } from 'node:util/types'
import { sql } from 'kysely'
import { hasCode } from '../core/errors.js'
import { StoreUnusable } from './database.js'
import { FILLING, knownMigrations, type Made } from './migrations.js'
import { type Queries, tablesOf } from './store-tables.js'

/** A store, or a database that may become one. */
export interface StoreTarget {
  /** For the operator, without a password. */
  readonly name: string
  /** Of an embedded store. */
  readonly directory?: string
  readonly queries: Queries
}

/** Tables that tell how far a store is, by the columns that ours have. */
const BOOKS: ReadonlyMap<string, readonly string[]> = new Map([
  ['migration', ['name', 'timestamp']],
  ['migration_lock', ['id', 'is_locked']],
  [FILLING, ['name', 'value']],
])

interface Relation {
  readonly name: string
  readonly columns: readonly string[]
  /** A table, and in the schema where the store is made: an earlier one of the search path would hide another. */
  readonly isOwnTable: boolean
}

/** Rejects with `StoreUnusable` where something has a name of the gateway's that its migrations have not made. */
export async function refuseForeign({ name, queries }: StoreTarget, known: Made): Promise<void> {
  const found = await relationsOf(queries, [...BOOKS.keys(), ...known.tables])
  const foreign = found.find(
    ({ name: table, columns, isOwnTable }) =>
      !isOwnTable || BOOKS.get(table)?.some((column) => !columns.includes(column)) === true,
  )
  if (foreign !== undefined) throw notOurs(name, foreign.name)
  const applied = found.some(({ name: table }) => table === 'migration')
    ? (await sql<{ name: string }>`select name from migration order by name`.execute(queries)).rows
    : []
  const other = applied.find((migration, at) => known.migrations[at] !== migration.name)
  if (other !== undefined) throw notOurs(name, `migration (${other.name})`)
  const made = await knownMigrations(applied.map((migration) => migration.name))
  // A filling begins once the tables are there.
  const possible = applied.length === 0 ? ['migration', 'migration_lock'] : [...BOOKS.keys(), ...made.tables]
  const beside = found.find(({ name: table }) => !possible.includes(table))?.name
  const extra = beside ?? (await foreignFunction(queries, known, made))
  if (extra !== undefined) throw notOurs(name, extra)
}

async function relationsOf(queries: Queries, names: readonly string[]): Promise<readonly Relation[]> {
  const { rows } = await sql<Relation>`
    select c.relname as name, c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace as "isOwnTable",
      array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) as columns
    from unnest(${names}::text[]) wanted join pg_class c on c.oid = to_regclass(wanted)`.execute(queries)
  return rows
}

async function foreignFunction(queries: Queries, known: Made, made: Made): Promise<string | undefined> {
  const { rows } = await sql<{ name: string }>`
    select proname as name from pg_proc where pronamespace = current_schema()::regnamespace
      and proname = any(${known.functions}) and not (proname = any(${made.functions}) and pronargs = 0)`.execute(
    queries,
  )
  return rows[0]?.name
}

const notOurs = (target: string, what: string): StoreUnusable =>
  new StoreUnusable(
    `${target} has ${what}, which is not from this version of the gateway or an earlier one: only an empty database, or an ` +
      'empty store, can be filled.',
  )

export async function refuseRows({ name, queries }: StoreTarget, { tables }: Made): Promise<void> {
  for (const table of await tablesOf(queries, tables)) {
    const { rows } = await sql`select from ${sql.table(table.name)} limit 1`.execute(queries)
    if (rows.length === 0) continue
    throw new StoreUnusable(`The store in ${name} is not empty (${table.name}): only an empty one can be filled.`)
  }
}

const DEPENDED_ON = '2BP01'

/**
 * Drops the tables of a store, which may be of a newer version than the source, and nothing else: they are made anew, of the source's.
 * Rejects with `StoreUnusable` where something of others hangs on them.
 */
export async function dropAll({ name, queries }: StoreTarget, known: Made): Promise<void> {
  const tables = [...BOOKS.keys(), ...known.tables].map((table) => sql.table(table))
  try {
    // In one statement, as they refer to each other.
    await sql`drop table if exists ${sql.join(tables)}`.execute(queries)
    for (const each of known.functions) await sql`drop function if exists ${sql.table(each)}()`.execute(queries)
  } catch (error) {
    if (!isNativeError(error) || !hasCode(error, DEPENDED_ON)) throw error
    const detail = 'detail' in error ? String(error.detail).split('\n')[0] : undefined
    throw new StoreUnusable(
      `The tables of the gateway in ${name} cannot be made anew, as something else uses them (${detail ?? error.message}): remove that ` +
        'first, or name an empty database.',
      { cause: error },
    )
  }
}
