import { Injectable } from '@nestjs/common'
import { type Kysely, sql } from 'kysely'
import type { UsageRecord } from '../core/usage-record.js'
import type { DatabaseSchema } from '../storage/database-schema.js'
import { Database } from '../storage/database.js'
import { insertRecords, recordOf } from './usage-rows.repository.js'
import type { UsageQuestion, UsageSum } from './usage-usage-reports.js'
import { HOUR_MS, sumRecords } from './usage.pg.js'
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

  override prune(beforeMs: number, limit: number): Promise<number> {
    return this.database.run(async (queries) => {
      const records = await pruneRecords(queries, beforeMs, limit)
      return Math.max(records, await pruneHours(queries, beforeMs - HOUR_MS, limit))
    })
  }
}

async function pruneRecords(queries: Kysely<DatabaseSchema>, beforeMs: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`delete from usage_record where id in (
      select id from usage_record where at_ms < ${beforeMs} order by at_ms limit ${limit} for update skip locked
    )`.execute(queries)
  return Number(numAffectedRows)
}

/** `lastMs`: when the newest that goes began. */
async function pruneHours(queries: Kysely<DatabaseSchema>, lastMs: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`delete from usage_hour where ctid in (
      select ctid from usage_hour where hour_ms <= ${lastMs} order by hour_ms limit ${limit} for update skip locked
    )`.execute(queries)
  return Number(numAffectedRows)
}
