import pg from 'pg'
import type { MetricsWatch } from './metrics-watch.js'

/** Records of use: what the gateway has counted, and what its store holds after its end. */
export interface UsageCounts {
  readonly counted: number
  readonly stored: number
  readonly faults: readonly string[]
}

/** To be called when the gateway has ended. `metrics`: as they were when nobody asked it for anything any more. */
export async function countRecords(
  databaseUrl: string | undefined,
  metrics: MetricsWatch | undefined,
): Promise<UsageCounts | undefined> {
  if (databaseUrl === undefined || metrics === undefined) return undefined
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ stored: number }>('select count(*)::integer as stored from usage_record')
    const [counted, stored] = [metrics.sumOf('gateway_usage_records_total'), rows[0]?.stored ?? 0]
    const isWhole = stored >= counted
    return { counted, stored, faults: isWhole ? [] : [`${counted} records of use, ${stored} of them stored`] }
  } finally {
    await client.end()
  }
}
