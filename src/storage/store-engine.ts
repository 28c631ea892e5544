import type { Kysely } from 'kysely'
import type { DatabaseSchema } from './database-schema.js'

/** One way to have a PostgreSQL: inside the process, or by address. */
export interface StoreEngine {
  /** True when nobody but this process can bring the store back: then the next one who needs it does not only wait. */
  readonly isLocal: boolean
  /**
   * Opens and migrates. Rejects with `StoreUnusable` where the operator must act, otherwise with the error of the
   * connection. May be called again once what it gave is lost or closed.
   */
  open(): Promise<OpenStore>
}

export interface OpenStore {
  readonly queries: Kysely<DatabaseSchema>
  /** Resolves with the cause when the store is found lost while nobody uses it; never rejects. */
  readonly lost: Promise<unknown>
  /** Whether the store still answers after one of its connections has failed with this error; never rejects. */
  survives(error: unknown): Promise<boolean>
  /** Ends the connections, after the queries under way; safe on a store that is lost. */
  close(): Promise<void>
}
