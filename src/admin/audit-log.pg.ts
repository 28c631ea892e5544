import { Injectable } from '@nestjs/common'
import type { AdminAuditRow } from '../storage/database-schema.js'
import { Database } from '../storage/database.js'
import { AdminAuditRepository, type AuditEntry, type AuditOutcome, type AuditRecord } from './admin-audit.repository.js'

/** The audit log in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyAdminAuditRepository extends AdminAuditRepository {
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

  override async settle(sequence: number, outcome: AuditOutcome): Promise<void> {
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

  override async prune(beforeMs: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.database.run((queries) =>
      queries
        .deleteFrom('admin_audit')
        .where('sequence', 'in', (part) =>
          part.selectFrom('admin_audit').select('sequence').where('at_ms', '<', beforeMs).orderBy('at_ms').limit(limit),
        )
        .executeTakeFirstOrThrow(),
    )
    return Number(numDeletedRows)
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
