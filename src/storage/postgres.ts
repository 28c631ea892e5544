import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { isNativeError } from 'node:util/types'
import { Kysely, type Migration, Migrator, PostgresDialect, sql } from 'kysely'
import pg, { type PoolConfig } from 'pg'
import type { Logger } from '../observability/logger.js'
import { type DatabaseSchema, type OpenStore, type StoreEngine, StoreUnusable } from './database.js'
import { isSilence } from './reconnecting-database.js'

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

  constructor(
    private readonly address: PostgresAddress,
    private readonly logger: Logger,
  ) {}

  async open(): Promise<OpenStore> {
    this.logger.debug('opening the store in PostgreSQL')
    const server: PoolConfig = {
      connectionString: this.address.url,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      application_name: 'multi-model-gateway',
    }
    // Without limits: a migration of a large table takes its time, and so does waiting for the replica that is doing it.
    await withOneConnection(server, async (queries) => {
      await refuseOldVersion(queries)
      await migrate(queries)
    })
    return new PostgresStore({ ...server, ...STATEMENT_LIMITS }, this.address.maxConnections)
  }
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
    if (isSilence(error)) return Promise.resolve(false)
    this.look ??= answers(this.server).finally(() => {
      this.look = undefined
    })
    return this.look
  }

  close(): Promise<void> {
    return this.queries.destroy()
  }
}

async function answers(server: PoolConfig): Promise<boolean> {
  try {
    await withOneConnection(server, (queries) => sql`select 1`.execute(queries))
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
