import type { Kysely } from 'kysely'
import type { DatabaseSchema } from './database-schema.js'

/** The store, embedded or PostgreSQL, behind one query layer; also the injection token. Repositories alone use it. */
export abstract class Database {
  /**
   * Runs queries once the store is open (it is opened, and migrated, by the first one who asks). Rejects with
   * `GatewayError('overloaded')` when the store cannot be opened or the connection is lost; other database errors pass as
   * they are, with PostgreSQL's `code`.
   */
  abstract run<Result>(work: (queries: Kysely<DatabaseSchema>) => Promise<Result>): Promise<Result>
  /** The same inside one transaction. */
  abstract transaction<Result>(work: (queries: Kysely<DatabaseSchema>) => Promise<Result>): Promise<Result>
  /**
   * Opens and migrates now. Rejects with `StoreUnusable`, whose message tells the operator what to do, or with
   * `GatewayError('overloaded')` while PostgreSQL cannot be reached: it is looked for in the background from then on.
   */
  abstract open(): Promise<void>
  /**
   * Calls back once, when the store is open for the first time; at once when it is. For loops that work on rows: they start
   * here and stop in `beforeApplicationShutdown`, because the store closes in `onApplicationShutdown`.
   */
  abstract whenOpen(listener: () => void): void
}
