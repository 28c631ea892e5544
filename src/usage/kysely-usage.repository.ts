import { Injectable } from '@nestjs/common'
import { sql } from 'kysely'
import { Database } from '../common/database/database.js'
import { insertRecords, recordOf } from '../common/usage/usage-rows.repository.js'
import { sumRecords } from './usage-sums.repository.js'
import type { UsageRecord } from '../common/usage/usage-record.js'
import type { UsageQuestion, UsageSum } from './usage-reports.js'
import { type UsagePage, UsageRepository } from './usage.repository.js'

/** Usage records in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyUsageRepository extends UsageRepository {
  constructor(private readonly database: Database) {
    super()
  }

  override open(): Promise<void> {
    return this.database.run(() => Promise.resolve())
  }

  override async insert(records: readonly UsageRecord[]): Promise<void> {
    if (records.length > 0) await this.database.run((queries) => insertRecords(queries, records))
  }

  override sums(question: UsageQuestion, limit: number): Promise<readonly UsageSum[]> {
    return this.database.run((queries) => sumRecords(queries, question, limit))
  }

  override async list({ ownerId, fromMs, toMs, after, limit }: UsagePage): Promise<readonly UsageRecord[]> {
    const rows = await this.database.run((queries) => {
      let query = queries
        .selectFrom('usage_record')
        .selectAll()
        .where('owner_id', '=', ownerId)
        .where('at_ms', '>=', fromMs)
        .where('at_ms', '<', toMs)
      if (after !== undefined) query = query.where(sql<boolean>`(at_ms, id) < (${after.atMs}::bigint, ${after.id})`)
      return query.orderBy('at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
    })
    return rows.map(recordOf)
  }

  override async prune(beforeMs: number, limit: number): Promise<number> {
    const { numDeletedRows } = await this.database.run((queries) =>
      queries
        .deleteFrom('usage_record')
        .where('id', 'in', (rows) =>
          rows
            .selectFrom('usage_record')
            .select('id')
            .where('at_ms', '<', beforeMs)
            .orderBy('at_ms')
            .limit(limit)
            .forUpdate()
            .skipLocked(),
        )
        .executeTakeFirst(),
    )
    return Number(numDeletedRows)
  }
}
