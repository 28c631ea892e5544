import { hash } from 'node:crypto'
import { type Kysely, sql, type Transaction } from 'kysely'
import { type DatabaseSchema, StoreUnusable } from './database.js'

export type Queries = Kysely<DatabaseSchema>

/** A table of the migrations, as far as moving its rows needs it. */
export interface StoreTable {
  readonly name: string
  readonly columns: readonly string[]
  /** The columns of its primary key, with their types. */
  readonly key: readonly string[]
  readonly keyTypes: readonly string[]
  /** Its column that the store counts by itself. */
  readonly identity: string | null
  readonly refersTo: readonly string[]
  readonly hasTriggers: boolean
}

/** How far a table's own count has come. */
export interface Sequence {
  readonly last: string
  readonly isCalled: boolean
}

/** The tables with these names, each after those that it refers to. */
export async function tablesOf(queries: Queries, names: readonly string[]): Promise<readonly StoreTable[]> {
  const { rows } = await sql<StoreTable>`
    select c.relname as name,
      array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
        order by attnum) as columns,
      array(select a.attname::text from pg_index i cross join unnest(i.indkey) with ordinality k (number, place)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
        where i.indrelid = c.oid and i.indisprimary order by k.place) as key,
      array(select format_type(a.atttypid, a.atttypmod)
        from pg_index i cross join unnest(i.indkey) with ordinality k (number, place)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number
        where i.indrelid = c.oid and i.indisprimary order by k.place) as "keyTypes",
      (select attname::text from pg_attribute where attrelid = c.oid and attidentity <> '') as identity,
      array(select f.confrelid::regclass::text from pg_constraint f where f.conrelid = c.oid and f.contype = 'f')
        as "refersTo",
      exists (select from pg_trigger where tgrelid = c.oid and not tgisinternal) as "hasTriggers"
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname = any(${names})
    order by c.relname`.execute(queries)
  const ordered: StoreTable[] = []
  const place = (table: StoreTable): void => {
    if (ordered.includes(table)) return
    for (const other of rows) if (table.refersTo.includes(other.name)) place(other)
    ordered.push(table)
  }
  rows.forEach(place)
  return ordered
}

/** Rows that are read at once; fewer where they are large, so that memory stays flat. */
const PAGE_ROWS = 1000
const PAGE_BYTES = 8 * 1024 * 1024

interface PageRow {
  /** PostgreSQL's text of the whole row: it is read back by the same type, whatever is in it. */
  readonly row: string
  readonly key: readonly string[]
}

/** All rows of a table in the order of its key, page by page. For one transaction with one snapshot. */
export async function* pagesOf(queries: Queries, table: StoreTable): AsyncGenerator<readonly string[]> {
  let after: readonly string[] | undefined
  for (;;) {
    const { rows } = await pageOf(queries, table, after)
    if (rows.length === 0) return
    yield rows.map(({ row }) => row)
    after = rows.at(-1)?.key
  }
}

function pageOf(queries: Queries, table: StoreTable, after: readonly string[] | undefined) {
  const columns = sql.join(table.key.map((column) => sql.ref(column)))
  const values = after?.map(
    (value, at) => sql`cast(cast(${value} as text) as ${sql.raw(table.keyTypes[at] ?? 'text')})`,
  )
  const beyond = values === undefined ? sql`` : sql`where (${columns}) > (${sql.join(values)})`
  return sql<PageRow>`
    select row, key from (
      select row, key, place, sum(octet_length(row)) over (order by place) as bytes from (
        select t::text as row, array[${sql.join(table.key.map((column) => sql`t.${sql.ref(column)}::text`))}] as key,
          row_number() over (order by ${columns}) as place
        from (select * from ${sql.table(table.name)} ${beyond} order by ${columns} limit ${sql.lit(PAGE_ROWS)}) t
        offset 0
      ) listed
    ) measured
    where place = 1 or bytes <= ${sql.lit(PAGE_BYTES)} order by place`.execute(queries)
}

/** Reads rows as those of a table, as `insertRows` does, and writes nothing. Rejects where one is none. */
export async function castRows(queries: Queries, table: StoreTable, rows: readonly string[]): Promise<void> {
  await sql`select count(line::${sql.table(table.name)}) from unnest(${rows}::text[]) line`.execute(queries)
}

/** Writes rows as `pagesOf` has read them, without what the table's triggers would add. */
export async function insertRows(
  queries: Transaction<DatabaseSchema>,
  table: StoreTable,
  rows: readonly string[],
): Promise<void> {
  const name = sql.table(table.name)
  if (table.hasTriggers) await sql`alter table ${name} disable trigger user`.execute(queries)
  // Read once a row, not once a column: `offset 0` keeps the planner from merging the two.
  await sql`insert into ${name} overriding system value
    select (written.as_row).* from (select line::${name} as as_row from unnest(${rows}::text[]) line offset 0) written`.execute(
    queries,
  )
  if (table.hasTriggers) await sql`alter table ${name} enable trigger user`.execute(queries)
}

/** How far the counts of the tables have come, by the names of the tables. */
export async function sequencesOf(
  queries: Queries,
  tables: readonly StoreTable[],
): Promise<Readonly<Record<string, Sequence>>> {
  const read: Record<string, Sequence> = {}
  for (const { name, identity } of tables) {
    if (identity === null) continue
    const found = await sql<{
      sequence: string
    }>`select pg_get_serial_sequence(${name}, ${identity}) as sequence`.execute(queries)
    const { rows } = await sql<Sequence>`
      select last_value::text as last, is_called as "isCalled" from ${sql.raw(found.rows[0]?.sequence ?? '')}`.execute(
      queries,
    )
    if (rows[0] !== undefined) read[name] = rows[0]
  }
  return read
}

export async function setSequences(
  queries: Queries,
  tables: readonly StoreTable[],
  sequences: Readonly<Record<string, Sequence>>,
): Promise<void> {
  for (const { name, identity } of tables) {
    const sequence = sequences[name]
    if (identity === null || sequence === undefined) continue
    await sql`select setval(pg_get_serial_sequence(${name}, ${identity}), ${sequence.last}::bigint,
      ${sequence.isCalled}::boolean)`.execute(queries)
  }
}

/** Values of the same type read alike in every session. */
export async function fixFormats(queries: Queries): Promise<void> {
  await sql`set timezone = 'UTC'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; set bytea_output = 'hex';
    set extra_float_digits = 1; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0`.execute(queries)
}

/** The migrations that a store has had, in their order; rejects with `StoreUnusable` where none has been. */
export async function migrationsOf(queries: Queries, what: string): Promise<readonly string[]> {
  const { rows } = await sql<{ isThere: boolean }>`select to_regclass('migration') is not null as "isThere"`.execute(
    queries,
  )
  if (rows[0]?.isThere !== true) throw new StoreUnusable(`There is no store of the gateway in ${what}.`)
  const read = await sql<{ name: string }>`select name from migration order by name`.execute(queries)
  return read.rows.map(({ name }) => name)
}

/** How many rows, and a sum that does not depend on their order. */
export interface Sum {
  readonly rows: number
  /** Hexadecimal. */
  readonly checksum: string
}

const SUM_BITS = 64

/** Counts rows and adds up their SHA-256, of each the first 64 bits. */
export class RowSum {
  private rows = 0
  private sum = 0n

  add(rows: readonly string[]): void {
    this.rows += rows.length
    for (const row of rows) this.sum += BigInt(`0x${hash('sha256', row, 'hex').slice(0, SUM_BITS / 4)}`)
    this.sum = BigInt.asUintN(SUM_BITS, this.sum)
  }

  get value(): Sum {
    return { rows: this.rows, checksum: this.sum.toString(16).padStart(SUM_BITS / 4, '0') }
  }
}
