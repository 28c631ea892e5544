import { Inject, Injectable } from '@nestjs/common'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { type AdminAuditRow, Database } from '../storage/database.js'
import { deleteOldest, Retention } from '../storage/retention.js'
import { AuditRepository, type AuditEntry, type AuditOutcome, type AuditRecord } from './audit-log.js'

const BATCH_ROWS = 500

/** Retention of the audit log: over a year, for yearly reviews. */
const RETENTION_MS = 400 * 86_400_000

@Injectable()
export class AuditRetention extends Retention {
  constructor(database: Database, audit: AuditRepository, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => audit.prune(Date.now() - RETENTION_MS, limit)
    super(database, { prune, batchRows: BATCH_ROWS, failure: 'the audit log could not be cut' }, logger)
  }
}

/** The audit log in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyAuditRepository extends AuditRepository {
  constructor(private readonly database: Database) {
    super()
  }

  override async record(entry: AuditEntry): Promise<number> {
    const { sequence } = await this.database.run((queries) =>
      queries
        .insertInto('admin_audit')
        .values({
          at_ms: entry.atMs,
          actor: entry.actor,
          action: entry.action,
          target: entry.target ?? null,
          outcome: entry.outcome,
          details: JSON.stringify(entry.details),
          request_id: entry.requestId,
        })
        .returning('sequence')
        .executeTakeFirstOrThrow(),
    )
    return sequence
  }

  override async recordOutcome(sequence: number, outcome: AuditOutcome): Promise<void> {
    await this.database.run((queries) =>
      queries.updateTable('admin_audit').set({ outcome }).where('sequence', '=', sequence).execute(),
    )
  }

  override async page(limit: number, before?: number): Promise<readonly AuditRecord[]> {
    const rows = await this.database.run((queries) =>
      queries
        .selectFrom('admin_audit')
        .selectAll()
        .$if(before !== undefined, (query) => query.where('sequence', '<', before ?? 0))
        .orderBy('sequence', 'desc')
        .limit(limit)
        .execute(),
    )
    return rows.map(recordOf)
  }

  override prune(beforeMs: number, limit: number): Promise<number> {
    const place = { table: 'admin_audit', timeColumn: 'at_ms' } as const
    return this.database.run((queries) => deleteOldest(queries, place, beforeMs, limit))
  }
}

const recordOf = (row: AdminAuditRow): AuditRecord => ({
  sequence: row.sequence,
  atMs: row.at_ms,
  actor: row.actor,
  action: row.action,
  ...(row.target === null ? {} : { target: row.target }),
  outcome: row.outcome,
  details: JSON.parse(row.details) as Readonly<Record<string, unknown>>,
  requestId: row.request_id,
})
