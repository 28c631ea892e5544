import { isNativeError } from 'node:util/types'
import type { OnApplicationShutdown } from '@nestjs/common'
import type { Kysely } from 'kysely'
import { GatewayError } from '../core/gateway-error.js'
import type { Logger } from '../observability/logger.js'
import type { Readiness } from '../observability/readiness.js'
import type { DatabaseSchema } from './database-schema.js'
import { Database } from './database.js'
import type { OpenStore, StoreEngine } from './store-engine.js'
import { storeFailure, storeOverloaded } from './store-failures.js'
import { StoreUnusable } from './store-unusable.js'

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
      if (failure === 'lost') void this.examine(store, error)
      throw storeOverloaded(failure, error)
    }
  }

  transaction<Result>(work: (queries: Kysely<DatabaseSchema>) => Promise<Result>): Promise<Result> {
    return this.run((queries) => queries.transaction().execute(work))
  }

  async open(): Promise<void> {
    await this.opened()
  }

  whenOpen(listener: () => void): void {
    if (this.listeners === undefined) listener()
    else this.listeners.push(listener)
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

  private async openNow(): Promise<OpenStore> {
    try {
      const store = await this.engine.open()
      this.store = store
      void store.lost.then((cause) => {
        this.lose(store, cause)
      })
      this.announceOpen()
      return store
    } catch (error) {
      const isLost = storeFailure(error) === 'lost'
      this.announceDown(error, 'the store cannot be opened')
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
    this.announceDown(cause, 'the store is lost')
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

  private announceOpen(): void {
    clearTimeout(this.retry)
    if (this.isDown) this.logger.info('the store is back')
    this.isDown = false
    this.lastFailure = ''
    this.readiness.announceStoreBack()
    const listeners = this.listeners ?? []
    this.listeners = undefined
    for (const listener of listeners) listener()
  }

  private announceDown(error: unknown, message: string): void {
    this.isDown = true
    this.readiness.announceStoreLost()
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
