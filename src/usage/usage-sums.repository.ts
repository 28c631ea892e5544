import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DatabaseSchema } from '../common/database/database-schema.js'
import { UNIT_NAMES, type UnitColumn } from '../common/usage/unit-names.js'
import type { UsageGroup, UsageQuestion, UsageSum } from './usage-reports.js'
import { unitsOf } from '../common/usage/usage-rows.repository.js'

const DAY_MS = 86_400_000

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
  readonly records: number
  readonly unpriced: number
  readonly cost: string
}

/** Sums are of `numeric`: exact, whatever they add up. */
const SUMS = sql.raw(
  [
    'count(*) as records',
    `count(*) filter (where pricing = 'unpriced') as unpriced`,
    'trim_scale(coalesce(sum(cost), 0)) as cost',
    ...Object.values(UNIT_NAMES).map((column) => `sum(${column}) as ${column}`),
  ].join(),
)

/** At most `limit` sums, in the order of their groups. */
export async function sumRecords(
  queries: Kysely<DatabaseSchema>,
  question: UsageQuestion,
  limit: number,
): Promise<readonly UsageSum[]> {
  const groups = question.groupBy.map((group) => GROUPS[group])
  const shown = sql.raw(groups.map(({ column, expression }) => `${expression} as ${column}, `).join(''))
  const positions = groups.map((_group, index) => index + 1).join()
  const grouping = sql.raw(groups.length === 0 ? '' : `group by ${positions} order by ${positions}`)
  const { rows } = await sql<SumRow>`select ${shown}${SUMS} from usage_record where ${conditions(question)}
    ${grouping} limit ${limit}`.execute(queries)
  return rows.map(sumOf)
}

function conditions({ fromMs, toMs, keyId, ownerId, model, channelId }: UsageQuestion): RawBuilder<unknown> {
  const parts = [sql`at_ms >= ${fromMs}`, sql`at_ms < ${toMs}`]
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
    records: row.records,
    unpricedRecords: row.unpriced,
    units: unitsOf(row),
    cost: row.cost,
  }
}
