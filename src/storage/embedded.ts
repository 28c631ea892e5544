import { mkdir } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { isNativeError } from 'node:util/types'
import { type Kysely, sql } from 'kysely'
import { GatewayError } from '../core/errors.js'
import type { Logger } from '../observability/logger.js'
import { type DirectoryLock, lockDirectory } from './data-lock.js'
import { type BareStore, type DatabaseSchema, type OpenStore, type StoreEngine, StoreUnusable } from './database.js'
import { ensureStore, filesIn, freeBytesOf, makePrivate, visibleDamage } from './embedded-files.js'
import { snapshotOf } from './embedded-snapshot.js'
import { PostgresWorker } from './embedded-worker.js'
import { migrate } from './migrations.js'
import { connectionPool } from './postgres.js'
import { lacksTables } from './reconnecting-database.js'

const ADVICE = 'Restore a backup of the directory, or move it away: a new store is made at the next start.'

const VACUUM_EVERY_MS = 60_000
const LOOK_EVERY_MS = 5_000

type Queries = Kysely<DatabaseSchema>

/**
 * Does work again and again; what one round leaves undone is done by a later one, and a time that finds the last round still
 * under way is left out. Returns what ends it, after the round under way.
 */
export function repeat(everyMs: number, work: () => Promise<void>): () => Promise<void> {
  let round: Promise<void> | undefined
  const timer = setInterval(() => {
    round ??= work()
      // A store that is lost is noticed by those who need it.
      .catch(() => undefined)
      .finally(() => {
        round = undefined
      })
  }, everyMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await round
  }
}

/** Of the log, at least and at most; between them, as large as the store. */
const LOG_BYTES = { least: 32 * 1024 * 1024, most: 256 * 1024 * 1024 } as const

/**
 * The embedded PostgreSQL has no process that makes checkpoints, and keeps its whole log until there is one: a store of 300 MB
 * would have another gigabyte beside it, which every start after a kill has to read.
 */
export async function shortenLog(queries: Queries): Promise<void> {
  const { rows } = await sql<{ isDue: boolean }>`
    select pg_current_wal_lsn() - redo_lsn > greatest(${sql.lit(LOG_BYTES.least)},
      least(${sql.lit(LOG_BYTES.most)}, pg_database_size(current_database()))) as "isDue"
    from pg_control_checkpoint()`.execute(queries)
  if (rows[0]?.isDue === true) await sql`checkpoint`.execute(queries)
}

/** Two files of the log: PostgreSQL ends, in the middle of its work, where it gets none. */
const ROOM_BYTES = 32 * 1024 * 1024

/**
 * Vacuums and analyses the tables that have changed enough: the embedded PostgreSQL has no autovacuum, so that every poll of a
 * task would leave a dead row behind for good, and the planner would know nothing of the tables.
 * By the thresholds of autovacuum, but for small tables.
 */
export async function tidy(queries: Queries): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
    where n_dead_tup > 1000 + 0.2 * n_live_tup or n_mod_since_analyze > 250 + 0.1 * n_live_tup`.execute(queries)
  for (const { name } of rows) await sql`vacuum (analyze) ${sql.table(name)}`.execute(queries)
}

/**
 * Frees what a process that was killed had leased to itself. The directory has one owner, so that at its opening no other can
 * hold a lease; waiting for their ends would keep tasks and callbacks from being worked on for up to ten minutes. A create
 * that was under way is due at once: its upstream has to be asked whether it made the task. Not for stores that are shared.
 */
export async function freeLeases(queries: Kysely<DatabaseSchema>): Promise<void> {
  await sql`
    update task set
      locked_until_ms = 0,
      next_poll_at_ms = case when state = 'creating' then created_at_ms else next_poll_at_ms end
    where locked_until_ms > 0 and state not in ('succeed', 'failed')`.execute(queries)
  await sql`update callback_delivery set locked_until_ms = 0 where locked_until_ms > 0`.execute(queries)
}

/** How long a query waits for those before it: there is one connection. */
const QUEUE_MS = 10_000

/** PostgreSQL inside the process (PGlite, in a thread of its own), its files in one directory of its own. */
export class EmbeddedEngine implements StoreEngine {
  readonly isLocal = true
  private closing: Promise<void> = Promise.resolve()
  /** What is leased after the first opening is leased by this process, which may be at work on it. */
  private wasOpen = false
  private isInBackup = false

  constructor(
    private readonly directory: string,
    private readonly logger: Logger,
  ) {}

  async open(): Promise<OpenStore> {
    // A close that failed is over all the same: what it left behind is found, and judged, by the lock.
    await this.closing.catch(() => undefined)
    this.logger.info(`opening the store in ${this.directory}`)
    const lock = await this.locked()
    try {
      return await this.opened(lock)
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  /** As it is, for a command. */
  async openBare(): Promise<BareStore> {
    const lock = await this.locked()
    try {
      return await this.bare(lock)
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  private async bare(lock: DirectoryLock): Promise<BareStore & { readonly worker: PostgresWorker }> {
    const worker = await this.started()
    const queries = connectionPool(
      { stream: () => worker.connect(), max: 1, connectionTimeoutMillis: QUEUE_MS, idleTimeoutMillis: 0, ...SESSION },
      () => undefined,
    )
    const close = once(async () => {
      await queries.destroy()
      await worker.close()
      await lock.release()
    })
    return { worker, queries, close }
  }

  private async opened(lock: DirectoryLock): Promise<OpenStore> {
    const bare = await this.bare(lock)
    const { worker, queries } = bare
    const endVacuum = repeat(VACUUM_EVERY_MS, () => tidy(queries))
    let announceFull: (cause: unknown) => void
    const full = new Promise((resolve) => {
      announceFull = resolve
    })
    const endLook = repeat(LOOK_EVERY_MS, async () => {
      await this.refuseFullDisk().catch(announceFull)
      // A backup needs the log of its time.
      if (!this.isInBackup) await shortenLog(queries)
    })
    const close = once(async () => {
      await Promise.all([endVacuum(), endLook()])
      await bare.close()
    })
    try {
      await migrate(queries)
      if (!this.wasOpen) await freeLeases(queries)
      this.wasOpen = true
    } catch (error) {
      await close()
      throw error
    }
    return {
      queries,
      lost: Promise.race([worker.died, full]),
      // With its only connection the worker is gone, or silent for good. Files without a table stay without it.
      survives: (cause) => Promise.resolve(lacksTables(cause)),
      snapshot: () => this.snapshot(queries),
      close: () => (this.closing = close()),
    }
  }

  private snapshot(queries: Queries): Readable {
    if (this.isInBackup) throw new GatewayError('conflict', 'Another backup of the store is under way.')
    this.isInBackup = true
    return snapshotOf(filesIn(this.directory), queries, () => {
      this.isInBackup = false
    })
  }

  private async locked(): Promise<DirectoryLock> {
    try {
      await mkdir(this.directory, { recursive: true, mode: 0o700 })
      await this.refuseFullDisk()
      return await lockDirectory(this.directory)
    } catch (error) {
      if (error instanceof StoreUnusable) throw error
      throw this.unusable('cannot be written to', error)
    }
  }

  /** Earlier than PostgreSQL notices: what it cannot write to its log would end it, and a new start needs room as well. */
  private async refuseFullDisk(): Promise<void> {
    const freeBytes = await freeBytesOf(this.directory)
    if (freeBytes === undefined || freeBytes >= ROOM_BYTES) return
    const [free, needed] = [freeBytes, ROOM_BYTES].map((bytes) => Math.floor(bytes / 1024 / 1024))
    throw new StoreUnusable(
      `The disk of the store in ${this.directory} is full: ${free} MiB are free, and ${needed} are needed. The store goes on by ` +
        'itself once there is room.',
      { cause: Object.assign(new Error('no space left'), { code: 'ENOSPC' }) },
    )
  }

  private async started(): Promise<PostgresWorker> {
    const files = filesIn(this.directory)
    try {
      await ensureStore(this.directory, files)
    } catch (error) {
      throw this.unusable('cannot be made', error)
    }
    const damage = await this.examined(files)
    if (damage !== undefined)
      throw new StoreUnusable(`The store in ${this.directory} cannot be opened: ${damage}. ${ADVICE}`)
    try {
      return await PostgresWorker.start(files)
    } catch (cause) {
      throw new StoreUnusable(
        `The store in ${this.directory} cannot be opened; its files are damaged, or memory is short. ${ADVICE}`,
        { cause },
      )
    }
  }

  /** See `visibleDamage`; of files that this user alone may read. */
  private async examined(files: string): Promise<string | undefined> {
    try {
      await makePrivate(this.directory, files)
      return await visibleDamage(files)
    } catch (error) {
      throw this.unusable('cannot be read, or closed to other users', error)
    }
  }

  private unusable(what: string, error: unknown): StoreUnusable {
    const why = isNativeError(error) ? error.message : String(error)
    return new StoreUnusable(`The store in ${this.directory} ${what}: ${why}`, { cause: error })
  }
}

/** Explicit, so that no variable of the environment (PGUSER, PGSSLMODE …) has a say. */
const SESSION = {
  user: 'postgres',
  password: '',
  database: 'postgres',
  host: 'embedded',
  port: 5432,
  ssl: false,
} as const

function once(work: () => Promise<void>): () => Promise<void> {
  let result: Promise<void> | undefined
  return () => (result ??= work())
}
