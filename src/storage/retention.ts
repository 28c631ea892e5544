import { setImmediate as nextTurn } from 'node:timers/promises'
import type { BeforeApplicationShutdown, OnModuleDestroy, OnModuleInit } from '@nestjs/common'
import { type Kysely, sql } from 'kysely'
import type { Logger } from '../observability/logger.js'
import type { Database, DatabaseSchema } from './database.js'

const SWEEP_EVERY_MS = 3_600_000

interface Sweep {
  /** Deletes at most so many old rows, or so many of each kind; resolves with how many there were. */
  readonly prune: (limit: number) => Promise<number>
  /** Few enough that no other statement waits long for a batch. */
  readonly batchRows: number
  /** What the log says when it fails. */
  readonly failure: string
}

interface AgingTable {
  readonly table: keyof DatabaseSchema
  /** Unix milliseconds; indexed. */
  readonly timeColumn: string
}

/** Deletes the oldest rows from before a time, at most `limit`, without waiting for other processes; resolves with how many there were. */
export async function deleteOldest(
  queries: Kysely<DatabaseSchema>,
  { table, timeColumn }: AgingTable,
  beforeMs: number,
  limit: number,
): Promise<number> {
  const time = sql.ref(timeColumn)
  const { numAffectedRows } = await sql`
    delete from ${sql.table(table)} where ctid = any (array(
      select ctid from ${sql.table(table)} where ${time} < ${beforeMs} order by ${time} limit ${limit}
      for update skip locked
    ))`.execute(queries)
  return Number(numAffectedRows)
}

/** Deletes old rows at once and then every hour, batch by batch until none is left. */
export class HourlySweep {
  private timer: NodeJS.Timeout | undefined
  private sweeping: Promise<void> = Promise.resolve()
  private isStopping = false

  constructor(
    private readonly what: Sweep,
    private readonly logger: Logger,
  ) {}

  start(): void {
    if (this.isStopping || this.timer !== undefined) return
    const sweep = (): void => {
      this.sweeping = this.sweep()
    }
    this.timer = setInterval(sweep, SWEEP_EVERY_MS).unref()
    sweep()
  }

  /** Resolves when the batch under way is deleted; no other is begun. */
  async stop(): Promise<void> {
    this.isStopping = true
    clearInterval(this.timer)
    await this.sweeping
  }

  /** Never rejects: what is left is deleted an hour later. */
  private async sweep(): Promise<void> {
    const { prune, batchRows, failure } = this.what
    try {
      while (!this.isStopping && (await prune(batchRows)) >= batchRows) await nextTurn()
    } catch (error) {
      this.logger.warn({ err: error }, failure)
    }
  }
}

/** Deletes old rows from the moment the store is open until the end of the process, which waits for the last batch. */
export abstract class Retention implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly sweep: HourlySweep
  private stopping: Promise<void> | undefined

  constructor(
    private readonly database: Database,
    what: Sweep,
    logger: Logger,
  ) {
    this.sweep = new HourlySweep(what, logger)
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.sweep.start()
    })
  }

  onModuleDestroy(): void {
    this.stopping ??= this.sweep.stop()
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.stopping
  }
}
