import { type Kysely, type Selectable, sql } from 'kysely'
import type { CountedUnits } from '../core/counted-units.js'
import { UNIT_NAMES, type UnitName, UNITS } from '../core/unit-names.js'
import type { Pricing, UsageKind, UsageOutcome, UsageRecord } from '../core/usage-record.js'
import type { DatabaseSchema, UsageRecordTable } from '../storage/database-schema.js'

const TEXTS = ['id', 'request_id', 'key_id', 'owner_id', 'kind', 'route', 'model', 'channel_id', 'outcome'] as const
const TIMES = ['at_ms', 'duration_ms'] as const
const OTHERS = ['reported', 'estimated', 'pricing'] as const
const NUMBERS = [...Object.values(UNIT_NAMES), 'cost'] as const

const COLUMNS = [...TEXTS, ...TIMES, ...OTHERS, ...NUMBERS]

const typed = (names: readonly string[], type: string): string[] => names.map((name) => `${name} ${type}`)

/**
 * One parameter for any number of rows: a batch as placeholders costs more to put together than to store. JSON keeps the
 * digits of a number, and costs are text until the database reads them.
 */
const SHAPE = [...typed([...TEXTS, ...OTHERS], 'text'), ...typed(TIMES, 'bigint'), ...typed(NUMBERS, 'numeric')].join()

/** Rows whose ids are there already are left as they are. */
export async function insertRecords(queries: Kysely<DatabaseSchema>, records: readonly UsageRecord[]): Promise<void> {
  const columns = sql.raw(COLUMNS.join())
  await sql`insert into usage_record (${columns}) select ${columns}
    from json_to_recordset(${JSON.stringify(records.map(rowOf))}::json) as row (${sql.raw(SHAPE)})
    on conflict (id) do nothing`.execute(queries)
}

function rowOf(record: UsageRecord): Record<string, string | number | null> {
  const row: Record<string, string | number | null> = {
    id: record.id,
    request_id: record.requestId,
    key_id: record.keyId,
    owner_id: record.ownerId,
    kind: record.kind,
    route: record.route,
    model: record.model,
    channel_id: record.channelId,
    outcome: record.outcome,
    at_ms: record.atMs,
    duration_ms: record.durationMs,
    reported: record.reported,
    estimated: record.estimated,
    pricing: record.pricing,
    cost: record.cost,
  }
  // What is left out is null.
  for (const name in record.units) row[UNIT_NAMES[name as UnitName]] = record.units[name as UnitName] ?? null
  return row
}

export function recordOf(row: Selectable<UsageRecordTable>): UsageRecord {
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
    durationMs: row.duration_ms,
    units: unitsOf(row),
    reported: row.reported,
    estimated: row.estimated,
    pricing: row.pricing as Pricing,
    cost: row.cost,
  }
}

/** Of a row, or of the sums over many. */
export function unitsOf(row: Readonly<Partial<Record<(typeof NUMBERS)[number], string | null>>>): CountedUnits {
  const units: { -readonly [Name in UnitName]?: number } = {}
  for (const name of UNITS) {
    const text = row[UNIT_NAMES[name]]
    if (typeof text === 'string') units[name] = Number(text)
  }
  return units
}
