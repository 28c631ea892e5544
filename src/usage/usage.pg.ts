import { Inject, Injectable } from '@nestjs/common'
import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import { ConfigStore } from '../config/config-store.js'
import {
  type CountedUnits,
  type Pricing,
  UNIT_NAMES,
  type UnitColumn,
  type UnitName,
  UNITS,
  type UsageOutcome,
  type UsageRecord,
} from '../core/usage-record.js'
import type { UsageKind } from '../core/endpoint.js'
import { hasCode } from '../core/errors.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database, type DatabaseSchema, type UsageRecordTable } from '../storage/database.js'
import { deleteOldest, Retention } from '../storage/retention.js'
import { type UsageGroup, type UsagePage, type UsageQuery, UsageRepository, type UsageSum } from './usage.repository.js'

/** Most records of a batch have all of these in common. */
const SHARED = [
  'key_id',
  'owner_id',
  'kind',
  'route',
  'model',
  'channel_id',
  'outcome',
  'reason',
  'translation',
  'pricing',
] as const
const TEXTS = ['id', 'request_id', 'reported', 'estimated'] as const
const WHOLE = ['at_ms', 'duration_ms', 'requests'] as const
const NUMBERS = [...Object.values(UNIT_NAMES), 'cost'] as const

type SharedRow = Readonly<Record<(typeof SHARED)[number], string | null>>
type Row = Partial<
  Record<(typeof TEXTS)[number] | (typeof WHOLE)[number] | (typeof NUMBERS)[number], string | number | undefined>
>

const COLUMNS = sql.raw([...SHARED, ...TEXTS, ...WHOLE, ...NUMBERS].join())

const shapeOf = (...columns: readonly string[]): RawBuilder<unknown> => sql.raw(['place bigint', ...columns].join())
const typed = (names: readonly string[], type: string): string[] => names.map((name) => `${name} ${type}`)
const SHARED_SHAPE = shapeOf(...typed(SHARED, 'text'))
const SHAPE = shapeOf(...typed(TEXTS, 'text'), ...typed(WHOLE, 'bigint'), ...typed(NUMBERS, 'numeric'))

/** Rows whose ids exist already stay as they are. */
export async function insertRecords(queries: Kysely<DatabaseSchema>, records: readonly UsageRecord[]): Promise<void> {
  await insertRows(queries, records, sql`on conflict (id) do nothing`)
}

/**
 * The same for records that are new as a rule. To look for each of them first takes longer than to store it; rejects, with none
 * stored, when one exists already.
 */
async function insertNewRecords(queries: Kysely<DatabaseSchema>, records: readonly UsageRecord[]): Promise<void> {
  await insertRows(queries, records, sql``)
}

/**
 * Two JSON parameters for any number of rows: placeholders for a batch cost more than storing it, and so does it to read in every
 * row what all have in common. JSON keeps the digits of a number, and costs are text until the database reads them.
 */
async function insertRows(
  queries: Kysely<DatabaseSchema>,
  records: readonly UsageRecord[],
  conflict: RawBuilder<unknown>,
): Promise<void> {
  const { shared, rows } = rowsOf(records)
  await sql`insert into usage_record (${COLUMNS}) select ${COLUMNS}
    from json_to_recordset(${JSON.stringify(rows)}::json) as row (${SHAPE})
    join json_to_recordset(${JSON.stringify(shared)}::json) as shared (${SHARED_SHAPE}) using (place)
    ${conflict}`.execute(queries)
}

function rowsOf(records: readonly UsageRecord[]): {
  readonly shared: readonly object[]
  readonly rows: readonly object[]
} {
  const places = new Map<string, number>()
  const shared: object[] = []
  const rows = records.map((record) => {
    const key = keyOf(record)
    let place = places.get(key)
    if (place === undefined) {
      place = shared.push({ place: shared.length, ...sharedOf(record) }) - 1
      places.set(key, place)
    }
    return rowOf(place, record)
  })
  return { shared, rows }
}

const sharedOf = (record: UsageRecord): SharedRow => ({
  key_id: record.keyId,
  owner_id: record.ownerId,
  kind: record.kind,
  route: record.route,
  model: record.model,
  channel_id: record.channelId,
  outcome: record.outcome,
  reason: record.reason ?? null,
  translation: record.translation ?? null,
  pricing: record.pricing,
})

/** The same for records alone that share all: no text in PostgreSQL has a NUL, and one that is empty is not null. */
function keyOf(record: UsageRecord): string {
  const { keyId, ownerId, kind, route, outcome, pricing, model, channelId, reason, translation } = record
  const always = `${keyId}\0${ownerId}\0${kind}\0${route}\0${outcome}\0${pricing}`
  return `${always}\0${partOf(model)}\0${partOf(channelId)}\0${partOf(reason)}\0${partOf(translation)}`
}

const partOf = (text: string | null | undefined): string => (text === null || text === undefined ? '' : `=${text}`)

/** Without what is null; JSON leaves out what is undefined. */
function rowOf(place: number, record: UsageRecord): Row & { readonly place: number } {
  const { id, requestId, atMs, durationMs, requests = 1, reported, estimated, cost, units } = record
  const row: Row & { readonly place: number } = { place, id, at_ms: atMs, requests }
  if (requestId !== null) row.request_id = requestId
  if (durationMs !== null) row.duration_ms = durationMs
  if (reported !== null) row.reported = reported
  if (estimated !== null) row.estimated = estimated
  if (cost !== null) row.cost = cost
  for (const name in units) row[UNIT_NAMES[name as UnitName]] = units[name as UnitName]
  return row
}

function recordOf(row: Selectable<UsageRecordTable>): UsageRecord {
  return {
    id: row.id,
    atMs: row.at_ms,
    requestId: row.request_id,
    keyId: row.key_id,
    ownerId: row.owner_id,
    kind: row.kind as UsageKind,
    route: row.route,
    model: row.model,
    channelId: row.channel_id,
    outcome: row.outcome as UsageOutcome,
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.requests === 1 ? {} : { requests: row.requests }),
    ...(row.translation === null ? {} : { translation: row.translation }),
    durationMs: row.duration_ms,
    units: unitsOf(row),
    reported: row.reported,
    estimated: row.estimated,
    pricing: row.pricing as Pricing,
    cost: row.cost,
  }
}

/** Units of a row, or of the sums over many. */
function unitsOf(row: Readonly<Partial<Record<(typeof NUMBERS)[number], string | null>>>): CountedUnits {
  const units: { -readonly [Name in UnitName]?: number } = {}
  for (const name of UNITS) {
    const text = row[UNIT_NAMES[name]]
    if (typeof text === 'string') units[name] = Number(text)
  }
  return units
}

const DAY_MS = 86_400_000
/** `usage_hour` has sums by hour. */
const HOUR_MS = 3_600_000
const UNIT_COLUMNS = Object.values(UNIT_NAMES)

/** Column and SQL expression of each group. Days are in UTC. */
const GROUPS: Readonly<Record<UsageGroup, { readonly column: string; readonly expression: string }>> = {
  day: { column: 'day', expression: `at_ms / ${DAY_MS}` },
  model: { column: 'model', expression: 'model' },
  channel: { column: 'channel_id', expression: 'channel_id' },
  key: { column: 'key_id', expression: 'key_id' },
}

type SumRow = Readonly<Partial<Record<UnitColumn, string | null>>> & {
  readonly day?: number
  readonly model?: string | null
  readonly channel_id?: string | null
  readonly key_id?: string
  /** null without rows. */
  readonly records: number | null
  readonly unpriced: number | null
  readonly cost: string
}

/** Sums of `numeric` are exact. */
const SUMS = sql.raw(
  [
    'sum(records)::bigint as records',
    'sum(unpriced)::bigint as unpriced',
    'trim_scale(coalesce(sum(cost), 0)) as cost',
    ...UNIT_COLUMNS.map((column) => `sum(${column}) as ${column}`),
  ].join(),
)

const PARTS = sql.raw(['key_id', 'cost', ...UNIT_COLUMNS].join())

/** The same expression as in `usage_hour`: callers may invent model names by the thousand, and be refused. */
const MODEL = sql.raw(`case when outcome = 'refused' and pricing = 'free' then null else model end`)

/** At most `limit` sums, in the order of their groups. Whole hours come from `usage_hour`; the rest is read row by row. */
async function sumRecords(
  queries: Kysely<DatabaseSchema>,
  query: UsageQuery,
  limit: number,
): Promise<readonly UsageSum[]> {
  const groups = query.groupBy.map((group) => GROUPS[group])
  const shown = sql.raw(groups.map(({ column, expression }) => `${expression} as ${column}, `).join(''))
  const positions = groups.map((_group, index) => index + 1).join()
  const grouping = sql.raw(groups.length === 0 ? '' : `group by ${positions} order by ${positions}`)
  const { fromMs, toMs } = query
  const { beginMs, endMs } = wholeHours(query)
  const { rows } = await sql<SumRow>`with hours as (
      select hour_ms as at_ms, owner_id, nullif(model, '') as model, nullif(channel_id, '') as channel_id,
        records, unpriced, ${PARTS}
      from usage_hour where hour_ms >= ${beginMs} and hour_ms < ${endMs}
    ), rest as (
      select at_ms, owner_id, ${MODEL} as model, channel_id,
        requests as records, case when pricing = 'unpriced' then requests else 0 end as unpriced, ${PARTS}
      from usage_record where (at_ms >= ${fromMs} and at_ms < ${beginMs}) or (at_ms >= ${endMs} and at_ms < ${toMs})
    )
    select ${shown}${SUMS}
    from (select * from hours union all select * from rest) as part where ${conditions(query)}
    ${grouping} limit ${limit}`.execute(queries)
  // Without groups there is one row, also for no records, which has no sums.
  return rows.map(sumOf)
}

/** The whole hours of a period; empty, at its end, when there are none. */
function wholeHours({ fromMs, toMs }: UsageQuery): { readonly beginMs: number; readonly endMs: number } {
  const beginMs = Math.ceil(fromMs / HOUR_MS) * HOUR_MS
  const endMs = Math.floor(toMs / HOUR_MS) * HOUR_MS
  return beginMs < endMs ? { beginMs, endMs } : { beginMs: toMs, endMs: toMs }
}

function conditions({ keyId, ownerId, model, channelId }: UsageQuery): RawBuilder<unknown> {
  const parts = [sql`true`]
  if (ownerId !== undefined) parts.push(sql`owner_id = ${ownerId}`)
  if (keyId !== undefined) parts.push(sql`key_id = ${keyId}`)
  if (model !== undefined) parts.push(sql`model = ${model}`)
  if (channelId !== undefined) parts.push(sql`channel_id = ${channelId}`)
  return sql.join(parts, sql` and `)
}

function sumOf(row: SumRow): UsageSum {
  return {
    ...(row.day === undefined ? {} : { day: new Date(row.day * DAY_MS).toISOString().slice(0, 'YYYY-MM-DD'.length) }),
    ...(row.model === undefined ? {} : { model: row.model }),
    ...(row.channel_id === undefined ? {} : { channelId: row.channel_id }),
    ...(row.key_id === undefined ? {} : { keyId: row.key_id }),
    records: row.records ?? 0,
    unpricedRecords: row.unpriced ?? 0,
    units: unitsOf(row),
    cost: row.cost,
  }
}

const EXISTS_ALREADY = '23505'

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
    if (records.length === 0) return
    await this.database.run(async (queries) => {
      try {
        await insertNewRecords(queries, records)
      } catch (error) {
        // Some were stored by an attempt whose answer was lost, or by another process that has read the same file.
        if (!hasCode(error, EXISTS_ALREADY)) throw error
        await insertRecords(queries, records)
      }
    })
  }

  override sums(query: UsageQuery, limit: number): Promise<readonly UsageSum[]> {
    return this.database.run((queries) => sumRecords(queries, query, limit))
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
      const records = await deleteOldest(queries, RECORDS, beforeMs, limit)
      // An hour is old once its last record is.
      return Math.max(records, await deleteOldest(queries, HOURS, beforeMs - HOUR_MS + 1, limit))
    })
  }
}

const RECORDS = { table: 'usage_record', timeColumn: 'at_ms' } as const
const HOURS = { table: 'usage_hour', timeColumn: 'hour_ms' } as const

const BATCH_ROWS = 1000

/** Deletes records older than the configured retention. */
@Injectable()
export class UsageRetention extends Retention {
  constructor(records: UsageRepository, database: Database, store: ConfigStore, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => records.prune(Date.now() - store.current.usage.retentionMs, limit)
    super(database, { prune, batchRows: BATCH_ROWS, failure: 'old usage records could not be deleted' }, logger)
  }
}
