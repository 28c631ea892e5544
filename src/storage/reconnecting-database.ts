import type { Readable } from 'node:stream'
import { isNativeError } from 'node:util/types'
import type { OnApplicationShutdown } from '@nestjs/common'
import type { Kysely } from 'kysely'
import { GatewayError } from '../core/errors.js'
import type { Logger } from '../observability/logger.js'
import type { Readiness } from '../observability/readiness.js'
import { Database, type DatabaseSchema, type OpenStore, type StoreEngine, StoreUnusable } from './database.js'

/** What an error of the driver is about: the connection is gone, the server is busy, or it is the statement. */
type StoreFailure = 'lost' | 'busy' | 'statement'

/**
 * PostgreSQL: connection exceptions (08…), shutdown, crash, starting up; a server that only reads, and one without the tables or
 * the database, as after a fail-over to another. Node: what sockets and resolvers say.
 */
const LOST_CODES =
  /^(?:08\w{3}|57P0[1-5]|25006|42P01|3D000|ECONN\w+|E(?:PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN|ADDRNOTAVAIL|AI_AGAIN)|ENOTFOUND)$/
/** Insufficient resources (53…: connections, memory, disk), statement timeout, lock timeout; collisions, as below. */
const BUSY_CODES = /^(?:53\w{3}|57014|55P03|40001|40P01)$/
/** Transactions that stood in each other's way, or would have waited for each other for ever: one of them goes again. */
const COLLISION_CODES: ReadonlySet<string> = new Set(['40001', '40P01'])
const MAXIMUM_ATTEMPTS = 3
/** Another server, or another state of it: its connections are of no use, even once it writes again. */
const NO_DATABASE = '3D000'
const NO_TABLE = '42P01'
const DISK_FULL = '53100'
const UNFIT_CODES: ReadonlySet<string> = new Set(['25006', NO_TABLE, NO_DATABASE, DISK_FULL])
/** PostgreSQL's word for it, and those of Node. */
const DISK_FULL_CODES: ReadonlySet<string> = new Set([DISK_FULL, 'ENOSPC', 'EDQUOT'])

/** The driver's own words; it gives these no code. */
const SILENCE_WORDS = 'Query read timeout'
const LOST_WORDS = [
  'Connection terminated',
  'Client has encountered a connection error',
  'Client was closed',
  'terminating connection',
  'driver has already been destroyed',
]
const POOL_ENDED_WORDS = 'Cannot use a pool'
const POOL_FULL_WORDS = 'timeout exceeded when trying to connect'

const MESSAGES = {
  lost: { text: 'The database cannot be reached at the moment.', retryAfterSeconds: 5 },
  busy: { text: 'The database has too much to do at the moment.', retryAfterSeconds: 1 },
} as const

/** Reads what the driver threw. */
export function storeFailure(error: unknown): StoreFailure {
  if (!isNativeError(error)) return 'statement'
  const code = codeOf(error)
  const says = (words: string): boolean => error.message.startsWith(words)
  if (LOST_CODES.test(code) || isSilence(error) || LOST_WORDS.some(says) || says(POOL_ENDED_WORDS)) return 'lost'
  if (BUSY_CODES.test(code) || says(POOL_FULL_WORDS)) return 'busy'
  return 'statement'
}

/** PostgreSQL's, or Node's. */
const codeOf = (error: unknown): string =>
  isNativeError(error) && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** Whether there is no room on the disk that the store is on. */
const isDiskFull = (error: unknown): boolean =>
  DISK_FULL_CODES.has(codeOf(error)) || (isNativeError(error) && error.cause !== undefined && isDiskFull(error.cause))

/** True for a query that was given up on: its connection is still waiting for the answer. */
const isSilence = (error: unknown): boolean => isNativeError(error) && error.message.startsWith(SILENCE_WORDS)

/** Whether no connection to the server is of use any more, although it may still answer. */
export const isUseless = (error: unknown): boolean => isSilence(error) || UNFIT_CODES.has(codeOf(error))

/** Whether a table is missing. */
export const lacksTables = (error: unknown): boolean => codeOf(error) === NO_TABLE

/** The caller's error; the cause is for the log. */
export function storeOverloaded(failure: 'lost' | 'busy', cause: unknown): GatewayError {
  const { text, retryAfterSeconds } = MESSAGES[failure]
  return new GatewayError('overloaded', text, { cause, retryAfterSeconds })
}

/** Runs a transaction again that was undone for the sake of another one. */
async function repeated<Result>(transaction: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction()
    } catch (error) {
      if (attempt === MAXIMUM_ATTEMPTS || !COLLISION_CODES.has(codeOf(error))) throw error
    }
  }
}

const LOST_RETRY_MS = 1_000
const UNUSABLE_RETRY_MS = 15_000

/**
 * Opens an engine when it is first needed and again whenever it is lost, and says so to `Readiness`. From the loss until
 * then every call is refused at once; an engine inside the process is opened by the next call.
 */
export class StoreDatabase extends Database implements OnApplicationShutdown {
  private store: OpenStore | undefined
  private opening: Promise<OpenStore> | undefined
  private retry: NodeJS.Timeout | undefined
  private isDown = false
  private isClosed = false
  private lastFailure = ''
  /** undefined once the store has been open. */
  private listeners: (() => void)[] | undefined = []

  constructor(
    private readonly engine: StoreEngine,
    private readonly readiness: Readiness,
    private readonly logger: Logger,
  ) {
    super()
  }

  async run<Result>(work: (queries: Kysely<DatabaseSchema>) => Promise<Result>): Promise<Result> {
    const store = await this.usable()
    try {
      return await work(store.queries)
    } catch (error) {
      const failure = storeFailure(error)
      if (failure === 'statement') throw error
      if (failure === 'lost' || isDiskFull(error)) void this.examine(store, error)
      throw storeOverloaded(failure, error)
    }
  }

  transaction<Result>(work: (queries: Kysely<DatabaseSchema>) => Promise<Result>): Promise<Result> {
    return this.run((queries) => repeated(() => queries.transaction().execute(work)))
  }

  async open(): Promise<void> {
    await this.opened()
  }

  whenOpen(listener: () => void): void {
    if (this.listeners === undefined) listener()
    else this.listeners.push(listener)
  }

  override async snapshot(): Promise<Readable> {
    const store = await this.usable()
    return store.snapshot?.() ?? super.snapshot()
  }

  /** Nest calls it after `beforeApplicationShutdown`, where loops stop, and after the last request. */
  async onApplicationShutdown(): Promise<void> {
    this.isClosed = true
    clearTimeout(this.retry)
    await this.opening?.catch(() => undefined)
    const store = this.store
    this.store = undefined
    await store?.close()
  }

  private async usable(): Promise<OpenStore> {
    if (this.isDown && !this.engine.isLocal) throw storeOverloaded('lost', undefined)
    try {
      return await this.opened()
    } catch (error) {
      throw error instanceof GatewayError ? error : storeOverloaded('lost', error)
    }
  }

  private opened(): Promise<OpenStore> {
    if (this.isClosed) return Promise.reject(storeOverloaded('lost', undefined))
    if (this.store !== undefined) return Promise.resolve(this.store)
    this.opening ??= this.openNow().finally(() => {
      this.opening = undefined
    })
    return this.opening
  }

  private get hasBeenOpen(): boolean {
    return this.listeners === undefined
  }

  private async openNow(): Promise<OpenStore> {
    try {
      const store = await this.engine.open()
      this.store = store
      void store.lost.then((cause) => {
        this.lose(store, cause)
      })
      this.markOpen()
      return store
    } catch (error) {
      // A database that has never been there is a mistake in the configuration.
      const isLost =
        isDiskFull(error) || (storeFailure(error) === 'lost' && (this.hasBeenOpen || codeOf(error) !== NO_DATABASE))
      this.markDown(error, 'the store cannot be opened')
      this.openLater(isLost ? LOST_RETRY_MS : UNUSABLE_RETRY_MS)
      throw isLost ? storeOverloaded('lost', error) : unusable(error)
    }
  }

  private async examine(store: OpenStore, cause: unknown): Promise<void> {
    if (this.store === store && !(await store.survives(cause))) this.lose(store, cause)
  }

  private lose(store: OpenStore, cause: unknown): void {
    if (this.store !== store) return
    this.store = undefined
    this.markDown(cause, 'the store is lost')
    store.close().catch((error: unknown) => {
      this.logger.warn({ err: error }, 'a lost store did not close')
    })
    this.openLater(0)
  }

  private openLater(delayMs: number): void {
    if (this.isClosed) return
    clearTimeout(this.retry)
    this.retry = setTimeout(() => {
      // A failure is noted, and tried again, where it happens.
      this.opened().catch(() => undefined)
    }, delayMs)
    this.retry.unref()
  }

  private markOpen(): void {
    clearTimeout(this.retry)
    if (this.isDown) this.logger.info('the store is back')
    this.isDown = false
    this.lastFailure = ''
    this.readiness.markStoreBack()
    const listeners = this.listeners ?? []
    this.listeners = undefined
    for (const listener of listeners) listener()
  }

  private markDown(error: unknown, what: string): void {
    this.isDown = true
    const isFull = isDiskFull(error)
    const message = isFull ? 'the disk of the store is full' : what
    this.readiness.markStoreLost(isFull ? 'disk_full' : 'store_unreachable')
    // Attempts to open it fail once a second: the same failure is said once.
    const failure = `${message}: ${isNativeError(error) ? error.message : String(error)}`
    if (failure !== this.lastFailure) this.logger.error({ err: error }, message)
    this.lastFailure = failure
  }
}

const unusable = (error: unknown): StoreUnusable =>
  error instanceof StoreUnusable
    ? error
    : new StoreUnusable(`The store cannot be opened: ${isNativeError(error) ? error.message : String(error)}`, {
        cause: error,
      })
