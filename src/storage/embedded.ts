import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isNativeError } from 'node:util/types'
import type { Logger } from '../observability/logger.js'
import { connectionPool } from './connection-pool.js'
import { beginCreation, endCreation } from './creation.js'
import { type DirectoryLock, lockDirectory } from './data-lock.js'
import { keepHouse } from './housekeeping.js'
import { freeLeases } from './leases.js'
import { migrate } from './migrate.js'
import { PostgresWorker } from './postgres-worker.js'
import type { OpenStore, StoreEngine } from './store-engine.js'
import { StoreUnusable } from './store-unusable.js'

/** How long a query waits for those before it: there is one connection. */
const QUEUE_MS = 10_000

/** PostgreSQL inside the process (PGlite, in a thread of its own), its files in one directory that nobody else uses. */
export class EmbeddedEngine implements StoreEngine {
  readonly isLocal = true
  private closing: Promise<void> = Promise.resolve()
  /** What is leased after the first opening is leased by this process, which may be at work on it. */
  private wasOpen = false

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

  private async opened(lock: DirectoryLock): Promise<OpenStore> {
    const worker = await this.started()
    const queries = connectionPool(
      { stream: () => worker.connect(), max: 1, connectionTimeoutMillis: QUEUE_MS, idleTimeoutMillis: 0, ...SESSION },
      () => undefined,
    )
    const endHousekeeping = keepHouse(queries)
    const close = once(async () => {
      await endHousekeeping()
      await queries.destroy()
      await worker.close()
      await lock.release()
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
      lost: worker.died,
      // With its only connection the worker is gone, or silent for good.
      survives: () => Promise.resolve(false),
      close: () => (this.closing = close()),
    }
  }

  private async locked(): Promise<DirectoryLock> {
    try {
      await mkdir(this.directory, { recursive: true, mode: 0o700 })
      return await lockDirectory(this.directory)
    } catch (error) {
      if (error instanceof StoreUnusable) throw error
      throw this.unusable('cannot be written to', error)
    }
  }

  private async started(): Promise<PostgresWorker> {
    const files = join(this.directory, 'postgres')
    try {
      if (await beginCreation(this.directory, files)) {
        // Making a store takes three times the memory of using it, which only the end of the thread gives back.
        const maker = await PostgresWorker.start(files)
        await maker.close()
        await endCreation(this.directory, files)
      }
      return await PostgresWorker.start(files)
    } catch (error) {
      throw this.unusable('cannot be opened', error)
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
