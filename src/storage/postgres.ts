import { Kysely, PostgresDialect, sql } from 'kysely'
import pg, { type PoolConfig } from 'pg'
import type { Logger } from '../observability/logger.js'
import { type DatabaseSchema, type OpenStore, type StoreEngine, StoreUnusable } from './database.js'
import { migrate } from './migrate.js'
import { isSilence } from './reconnecting-database.js'

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

const OLDEST_VERSION = 140_000
const CONNECT_MS = 3_000
const KEEP_ALIVE_MS = 10_000
/** The server ends a statement first; a server that does not even do that cannot be reached any more. */
const STATEMENT_LIMITS = { statement_timeout: 3_000, query_timeout: 5_000 } as const

export interface PostgresAddress {
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
