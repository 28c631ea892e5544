import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { hasCode } from '../core/errors.js'
import { StoreUnusable } from './database.js'
import { freeLeases } from './embedded.js'
import { applyMigrations, FILLING, isHalfFilled, knownMigrations, type Made, migrate, migrateTo } from './migrations.js'
import { markPendingUsage } from './pending-usage.js'
import {
  insertRows,
  migrationsOf,
  pagesOf,
  type Queries,
  RowSum,
  type Sequence,
  sequencesOf,
  setSequences,
  type StoreTable,
  type Sum,
  tablesOf,
} from './store-tables.js'
import { dropAll, refuseForeign, refuseRows, type StoreTarget } from './store-target.js'

/** The columns of each table, which are to be the same where the rows go. */
export type Shapes = Readonly<Record<string, readonly string[]>>

export interface Page {
  readonly table: string
  readonly rows: readonly string[]
}

/** A whole store, to be read once from its beginning to its end. */
export interface RowSource {
  /** For the operator, without a password. */
  readonly name: string
  readonly migrations: readonly string[]
  readonly shapes: Shapes
  /** Only of a file, which may hold anything: rejects with `StoreUnusable` where its rows are none of these tables. */
  readonly assertFits?: (queries: Queries, tables: readonly StoreTable[]) => Promise<void>
  /** Each table after those that it refers to. */
  pages(): AsyncIterable<Page>
  /** After the pages. */
  sequences(): Promise<Readonly<Record<string, Sequence>>>
}

export type Sums = Readonly<Record<string, Sum>>

/** Tells how far it is: a table, and how many of its rows are done. */
export type OnProgress = (table: string, rows: number, isCheck: boolean) => void

/** Gives a store to `work` as it is at this moment, whatever is written meanwhile. */
export function withSnapshot<Result>(
  queries: Queries,
  name: string,
  work: (source: RowSource) => Promise<Result>,
): Promise<Result> {
  return queries
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (transaction) => {
      const migrations = await migrationsOf(transaction, name)
      const tables = await tablesOf(transaction, (await knownMigrations(migrations)).tables)
      if (await isHalfFilled(transaction))
        throw new StoreUnusable(`The store in ${name} is not whole: it was being filled.`)
      return work({
        name,
        migrations,
        shapes: shapesOf(tables),
        pages: () => allPages(transaction, tables),
        sequences: () => sequencesOf(transaction, tables),
      })
    })
}

const shapesOf = (tables: readonly StoreTable[]): Shapes =>
  Object.fromEntries(tables.map(({ name, columns }) => [name, columns]))

async function* allPages(queries: Queries, tables: readonly StoreTable[]): AsyncGenerator<Page> {
  for (const table of tables) for await (const rows of pagesOf(queries, table)) yield { table: table.name, rows }
}

interface Filling {
  /** Which source, and of which version. */
  readonly source: string
  /** Rows that are in the target, by their tables. */
  readonly done: Map<string, number>
}

const SOURCE = 'source'

/**
 * Moves all rows of a source into an empty store, checks them there, and makes the store usable. Each page is one transaction,
 * which also notes how far it is: what was killed goes on from there. Until the end no gateway opens the store.
 */
export async function fillStore(
  source: RowSource,
  target: StoreTarget,
  isRestart: boolean,
  onProgress: OnProgress,
): Promise<Sums> {
  const { queries } = target
  await lock(queries, target.name)
  const filling = await begin(source, target, isRestart)
  const tables = await tablesOf(queries, Object.keys(source.shapes))
  assertShapes(source, tables)
  const sums = await copyRows(source, queries, tables, filling, onProgress)
  await setSequences(queries, tables, await source.sequences())
  await check(sums, queries, tables, onProgress)
  // Before the store is usable: the command cannot be given again after that.
  if (target.directory !== undefined && hasPendingUsage(sums)) await markPendingUsage(target.directory)
  await queries.transaction().execute(async (transaction) => {
    // What was leased belongs to a process that works on the other store.
    await freeLeases(transaction)
    await sql`drop table ${sql.table(FILLING)}`.execute(transaction)
  })
  await migrate(queries)
  await sql`analyze`.execute(queries)
  return sums
}

const hasPendingUsage = (sums: Sums): boolean => (sums['background_response']?.rows ?? 0) > 0

/** 'MMG': until the connection ends. */
const LOCK = 0x4d_4d_47
/** PostgreSQL may notice the end of a killed process late. */
const LOCK_ATTEMPTS = 20
const LOCK_RETRY_MS = 250

async function lock(queries: Queries, name: string): Promise<void> {
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt += 1) {
    const { rows } = await sql<{ free: boolean }>`select pg_try_advisory_lock(${sql.lit(LOCK)}) as free`.execute(
      queries,
    )
    if (rows[0]?.free === true) return
    await pause(LOCK_RETRY_MS)
  }
  throw new StoreUnusable(`Another process is filling the store in ${name}.`)
}

async function begin(source: RowSource, target: StoreTarget, isRestart: boolean): Promise<Filling> {
  const { name, queries } = target
  const known = await knownMigrations()
  await refuseForeign(target, known)
  const isHalf = await isHalfFilled(queries)
  if (isHalf && !isRestart) return resumed(source, name, queries)
  if (!isHalf) await refuseRows(target, known)
  await tryRows(source, target, known)
  await queries.transaction().execute((transaction) => dropAll({ name, queries: transaction }, known))
  await migrateTo(queries, source.migrations)
  await queries.transaction().execute(async (transaction) => {
    await sql`create table ${sql.table(FILLING)} (name text primary key, value text not null)`.execute(transaction)
    await sql`insert into ${sql.table(FILLING)} values (${SOURCE}, ${identityOf(source)})`.execute(transaction)
  })
  return { source: identityOf(source), done: new Map() }
}

const identityOf = ({ name, migrations }: RowSource): string => `${name} (${migrations.at(-1) ?? ''})`

async function resumed(source: RowSource, target: string, queries: Queries): Promise<Filling> {
  const { rows } = await sql<{ name: string; value: string }>`select name, value from ${sql.table(FILLING)}`.execute(
    queries,
  )
  const states = new Map(rows.map(({ name, value }) => [name, value]))
  const begun = states.get(SOURCE) ?? ''
  if (begun !== identityOf(source)) {
    throw new StoreUnusable(
      `The store in ${target} was being filled from ${begun}. Complete that, or begin anew with --restart, which removes what is there.`,
    )
  }
  states.delete(SOURCE)
  return { source: begun, done: new Map([...states].map(([name, value]) => [name, Number(value)])) }
}

/** Makes the tables that the source needs in a transaction of which nothing is kept, and lets it look at them. */
async function tryRows(
  { migrations, shapes, assertFits }: RowSource,
  { name, queries }: StoreTarget,
  known: Made,
): Promise<void> {
  if (assertFits === undefined) return
  const trial = await queries.startTransaction().execute()
  try {
    await dropAll({ name, queries: trial }, known)
    await applyMigrations(trial, migrations)
    await assertFits(trial, await tablesOf(trial, Object.keys(shapes)))
  } finally {
    // A connection that was lost has rolled back, and what it was lost for is to be seen.
    await trial
      .rollback()
      .execute()
      .catch(() => undefined)
  }
}

function assertShapes(source: RowSource, tables: readonly StoreTable[]): void {
  const shapes = shapesOf(tables)
  for (const [name, columns] of Object.entries(source.shapes)) {
    if (shapes[name]?.join() === columns.join()) continue
    throw new StoreUnusable(
      `The table ${name} of ${source.name} was changed by hand: its columns are not the gateway's.`,
    )
  }
}

async function copyRows(
  source: RowSource,
  queries: Queries,
  tables: readonly StoreTable[],
  { done }: Filling,
  onProgress: OnProgress,
): Promise<Sums> {
  const byName = new Map(tables.map((table) => [table.name, { table, sum: new RowSum(), passed: 0 }]))
  for await (const { table: name, rows } of source.pages()) {
    const entry = byName.get(name)
    if (entry === undefined) throw new StoreUnusable(`${source.name} has rows of an unknown table: ${name}.`)
    entry.sum.add(rows)
    // What an earlier run has written: read again for the sum alone.
    const fresh = rows.slice(Math.max(0, (done.get(name) ?? 0) - entry.passed))
    entry.passed += rows.length
    if (fresh.length > 0) await insertPage(source, queries, entry.table, fresh, entry.passed)
    onProgress(name, entry.passed, false)
  }
  return sumsOf([...byName.values()].map(({ table, sum }) => [table.name, sum]))
}

const sumsOf = (sums: readonly (readonly [string, RowSum])[]): Sums =>
  Object.fromEntries(sums.map(([name, sum]) => [name, sum.value]))

const UNIQUE_VIOLATION = '23505'

async function insertPage(
  source: RowSource,
  queries: Queries,
  table: StoreTable,
  rows: readonly string[],
  passed: number,
): Promise<void> {
  try {
    await queries.transaction().execute(async (transaction) => {
      await insertRows(transaction, table, rows)
      await sql`insert into ${sql.table(FILLING)} values (${table.name}, ${String(passed)})
        on conflict (name) do update set value = excluded.value`.execute(transaction)
    })
  } catch (error) {
    throw hasCode(error, UNIQUE_VIOLATION) ? changed(source.name, table.name, error) : error
  }
}

const changed = (source: string, table: string, cause?: unknown): StoreUnusable =>
  new StoreUnusable(
    `${source} has changed since its rows were first copied (${table}), or something else has written into the target: ` +
      'see that no gateway uses either, and begin anew with --restart, which removes what is there.',
    { cause },
  )

/** Reads everything back. */
async function check(
  sums: Sums,
  queries: Queries,
  tables: readonly StoreTable[],
  onProgress: OnProgress,
): Promise<void> {
  for (const table of tables) {
    const sum = new RowSum()
    for await (const rows of pagesOf(queries, table)) {
      sum.add(rows)
      onProgress(table.name, sum.value.rows, true)
    }
    const expected = sums[table.name]
    if (sum.value.rows === expected?.rows && sum.value.checksum === expected.checksum) continue
    throw changed('The source', table.name)
  }
}
