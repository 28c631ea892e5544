import { Kysely, PostgresDialect, sql } from 'kysely'
import pg, { type PoolConfig } from 'pg'
import { hasCode } from '../core/errors.js'
import type { Logger } from '../observability/logger.js'
import { type BareStore, type DatabaseSchema, type OpenStore, type StoreEngine, StoreUnusable } from './database.js'
import { knownMigrations, migrate, missingMigrations } from './migrations.js'
import { isUseless } from './reconnecting-database.js'

/** Counts and milliseconds stay far below 2^53: they are read as numbers. Per pool, as the driver's own table is global. */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, Number)

/**
 * Connects when the first query comes; `destroy()` ends it. `onError` gets the errors of idle connections; the pool has
 * forgotten them by then.
 */
export function connectionPool(options: pg.PoolConfig, onError: (error: Error) => void): Kysely<DatabaseSchema> {
  const pool = new pg.Pool({ ...options, types })
  pool.on('error', onError)
  // A connection that dies at work tells its query; the error it also emits would, without a listener, end the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return new Kysely({ dialect: new PostgresDialect({ pool }) })
}

const OLDEST_VERSION = 140_000
const CONNECT_MS = 3_000
const KEEP_ALIVE_MS = 10_000
/** The server ends a statement first; a server that does not even do that cannot be reached any more. */
const STATEMENT_LIMITS = { statement_timeout: 3_000, query_timeout: 5_000 } as const

interface PostgresAddress {
  readonly url: string
  readonly maxConnections: number
}

/** A PostgreSQL server that any number of gateways share. */
export class PostgresEngine implements StoreEngine {
  readonly isLocal = false
  /** Whether this process has worked with the tables: from then on they are there, or it is another database. */
  private wasOpen = false

  constructor(
    private readonly address: PostgresAddress,
    private readonly logger: Logger,
  ) {}

  async open(): Promise<OpenStore> {
    this.logger.debug('opening the store in PostgreSQL')
    const server = await firstOf(serversOf(this.address.url), (candidate) => this.prepare(candidate))
    this.wasOpen = true
    return new PostgresStore({ ...server, ...STATEMENT_LIMITS }, this.address.maxConnections)
  }

  private async prepare(server: PoolConfig): Promise<void> {
    // A server that says nothing must not keep the next one of the address waiting.
    await withOneConnection({ ...server, ...STATEMENT_LIMITS }, async (queries) => {
      await refuseOldVersion(queries)
      await refuseReadOnly(queries)
      if (!this.wasOpen) return
      await refuseOtherDatabase(queries)
      await refuseMissingTables(queries)
      await refuseFullDisk(queries)
    })
    if (this.wasOpen) return
    // Without limits: a migration of a large table takes its time, and so does waiting for the replica that is doing it.
    await withOneConnection(server, async (queries) => {
      await migrate(queries)
      await refuseMissingTables(queries)
    })
  }
}

/** A server by one connection, as it is: nothing is migrated. Without limits, as a copy of a large store takes its time. */
export async function openServer(url: string, isWritten: boolean): Promise<BareStore> {
  const server = await firstOf(serversOf(url), (candidate) =>
    withOneConnection(candidate, async (queries) => {
      await refuseOldVersion(queries)
      if (isWritten) await refuseReadOnly(queries)
    }),
  )
  const queries = connectionPool({ ...server, max: 1, idleTimeoutMillis: 0 }, () => undefined)
  return { queries, close: () => queries.destroy() }
}

class PostgresStore implements OpenStore {
  readonly queries: Kysely<DatabaseSchema>
  readonly lost: Promise<unknown>
  private look: Promise<boolean> | undefined

  constructor(
    private readonly server: PoolConfig,
    maxConnections: number,
  ) {
    let announce: (cause: unknown) => void
    this.lost = new Promise((resolve) => {
      announce = resolve
    })
    this.queries = connectionPool({ ...server, max: maxConnections }, (error) => {
      void this.survives(error).then((survives) => {
        if (!survives) announce(error)
      })
    })
  }

  /** A single connection may end for many reasons. One that is silent would go on blocking its place in the pool. */
  survives(error: unknown): Promise<boolean> {
    if (isUseless(error)) return Promise.resolve(false)
    this.look ??= answers(this.server).finally(() => {
      this.look = undefined
    })
    return this.look
  }

  close(): Promise<void> {
    return this.queries.destroy()
  }
}

/** The hosts of an address, which may be several as in libpq: `postgres://user@one:5432,two/db`. */
const HOSTS = /^(\w+:\/\/(?:[^@/?]*@)?)([^/?]+)(.*)$/s

/** For each host of the address, how to connect to it. */
function serversOf(url: string): readonly PoolConfig[] {
  // An address without a host names a socket.
  const [, start = '', hosts = '', rest = ''] = HOSTS.exec(url) ?? [url, url]
  return hosts.split(',').map((host) => ({
    connectionString: `${start}${host}${withoutTargets(rest)}`,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'multi-model-gateway',
  }))
}

/** `target_session_attrs` is libpq's: the gateway needs a server that writes whatever it says. */
const withoutTargets = (rest: string): string =>
  rest.replace(/([?&])target_session_attrs=[^&]*(?:&|$)/, '$1').replace(/[?&]$/, '')

/** The first that can be prepared; rejects as the first that could not, unless another one shows a mistake of the operator. */
async function firstOf(
  servers: readonly PoolConfig[],
  prepare: (server: PoolConfig) => Promise<void>,
): Promise<PoolConfig> {
  const failures: unknown[] = []
  for (const server of servers) {
    try {
      await prepare(server)
      return server
    } catch (error) {
      failures.push(error)
    }
  }
  throw failures.find((failure) => failure instanceof StoreUnusable) ?? failures[0]
}

/** As PostgreSQL would say it, so that it is treated alike: it is looked for until it writes, or another one does. */
const asReported = (code: string, message: string): Error => Object.assign(new Error(message), { code })

async function refuseReadOnly(queries: Kysely<DatabaseSchema>): Promise<void> {
  const { rows } = await sql<{
    value: string
  }>`select current_setting('transaction_read_only') as value`.execute(queries)
  if (rows[0]?.value === 'on') throw asReported('25006', 'the server is read-only')
}

/** Making the tables anew would hide that everything in them is gone. */
async function refuseOtherDatabase(queries: Kysely<DatabaseSchema>): Promise<void> {
  if ((await missingMigrations(queries)) > 0) {
    throw asReported('42P01', 'the database has not the tables that it had: it is another one, or they were removed')
  }
}

/** The record of the migrations may be there although a table is not: a server without it would be taken for a good one. */
async function refuseMissingTables(queries: Kysely<DatabaseSchema>): Promise<void> {
  const { tables } = await knownMigrations()
  const { rows } = await sql<{ name: string }>`
    select name from unnest(${tables}::text[]) name where to_regclass(name) is null`.execute(queries)
  if (rows.length > 0) throw asReported('42P01', `the database lacks ${rows.map(({ name }) => name).join(', ')}`)
}

/** More than what may be free in the files that there are. */
const PROBE_ROWS = 20_000
const NOT_PERMITTED = '42501'

/** A full disk answers every question: only writing shows it. Rejects with 53100. */
async function refuseFullDisk(queries: Kysely<DatabaseSchema>): Promise<void> {
  try {
    await sql`create temporary table disk_probe as select n from generate_series(1, ${sql.lit(PROBE_ROWS)}) n;
      drop table disk_probe`.execute(queries)
  } catch (error) {
    // Without the right to try, the next create finds out.
    if (!hasCode(error, NOT_PERMITTED)) throw error
  }
}

/** Whether the server is there, and still one that writes. */
async function answers(server: PoolConfig): Promise<boolean> {
  try {
    await withOneConnection(server, refuseReadOnly)
    return true
  } catch {
    return false
  }
}

async function refuseOldVersion(queries: Kysely<DatabaseSchema>): Promise<void> {
  const { rows } = await sql<{
    version: string
  }>`select current_setting('server_version_num') as version`.execute(queries)
  if (Number(rows[0]?.version) >= OLDEST_VERSION) return
  throw new StoreUnusable(
    'The PostgreSQL that DATABASE_URL names is older than version 14, the oldest that is supported.',
  )
}

async function withOneConnection(
  server: PoolConfig,
  work: (queries: Kysely<DatabaseSchema>) => Promise<unknown>,
): Promise<void> {
  // What fails between two queries is seen by the next one.
  const queries = connectionPool({ ...server, max: 1 }, () => undefined)
  try {
    await work(queries)
  } finally {
    await queries.destroy()
  }
}
