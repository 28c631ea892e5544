import { type Kysely, type RawBuilder, sql } from 'kysely'
import { UNIT_NAMES, type UnitColumn } from '../core/unit-names.js'
import type { DatabaseSchema } from '../storage/database-schema.js'
import { unitsOf } from './usage-rows.repository.js'
import type { UsageGroup, UsageQuestion, UsageSum } from './usage-usage-reports.js'

const DAY_MS = 86_400_000
/** What `usage_hour` adds up. */
export const HOUR_MS = 3_600_000
const UNIT_COLUMNS = Object.values(UNIT_NAMES)

/** What a group is called in a row, and what makes it. Days are those of UTC. */
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
  /** null: of nothing. */
  readonly records: number | null
  readonly unpriced: number | null
  readonly cost: string
}

/** Sums are of `numeric`: exact, whatever they add up. */
const SUMS = sql.raw(
  [
    'sum(records)::bigint as records',
    'sum(unpriced)::bigint as unpriced',
    'trim_scale(coalesce(sum(cost), 0)) as cost',
    ...UNIT_COLUMNS.map((column) => `sum(${column}) as ${column}`),
  ].join(),
)

const PARTS = sql.raw(['key_id', 'cost', ...UNIT_COLUMNS].join())

/** As `usage_hour` has it: a caller may invent names by the thousand, and be refused. */
const MODEL = sql.raw(`case when outcome = 'refused' and pricing = 'free' then null else model end`)

/** At most `limit` sums, in the order of their groups. Whole hours are added up already; the rest is read row by row. */
export async function sumRecords(
  queries: Kysely<DatabaseSchema>,
  question: UsageQuestion,
  limit: number,
): Promise<readonly UsageSum[]> {
  const groups = question.groupBy.map((group) => GROUPS[group])
  const shown = sql.raw(groups.map(({ column, expression }) => `${expression} as ${column}, `).join(''))
  const positions = groups.map((_group, index) => index + 1).join()
  const grouping = sql.raw(groups.length === 0 ? '' : `group by ${positions} order by ${positions}`)
  const { fromMs, toMs } = question
  const { beginMs, endMs } = wholeHours(question)
  const { rows } = await sql<SumRow>`with hours as (
      select hour_ms as at_ms, owner_id, nullif(model, '') as model, nullif(channel_id, '') as channel_id,
        records, unpriced, ${PARTS}
      from usage_hour where hour_ms >= ${beginMs} and hour_ms < ${endMs}
    ), rest as (
      select at_ms, owner_id, ${MODEL} as model, channel_id,
        1 as records, (pricing = 'unpriced')::int as unpriced, ${PARTS}
      from usage_record where (at_ms >= ${fromMs} and at_ms < ${beginMs}) or (at_ms >= ${endMs} and at_ms < ${toMs})
    )
    select ${shown}${SUMS}
    from (select * from hours union all select * from rest) as part where ${conditions(question)}
    ${grouping} limit ${limit}`.execute(queries)
  // Without groups there is one row, also of nothing, which has no sums.
  return rows.map(sumOf)
}

/** Empty, at the end, where there is none in the period. */
function wholeHours({ fromMs, toMs }: UsageQuestion): { readonly beginMs: number; readonly endMs: number } {
  const beginMs = Math.ceil(fromMs / HOUR_MS) * HOUR_MS
  const endMs = Math.floor(toMs / HOUR_MS) * HOUR_MS
  return beginMs < endMs ? { beginMs, endMs } : { beginMs: toMs, endMs: toMs }
}

function conditions({ keyId, ownerId, model, channelId }: UsageQuestion): RawBuilder<unknown> {
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
