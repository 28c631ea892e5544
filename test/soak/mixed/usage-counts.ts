import { rowsOf } from '../../cluster/store-query.js'
import type { MetricsWatch } from './metrics-watch.js'

/** What a store holds. */
export interface StoredUsage {
  /** Records of calls, and of answers within them. */
  readonly stored: number
  /** Tasks that have ended, and the records of them. */
  readonly endedTasks: number
  readonly storedTasks: number
}

/** Records of use: what the gateway has counted, and what its store holds after its end. */
export interface UsageCounts extends StoredUsage {
  /** Of calls, and of answers within them: when nobody called any more. */
  readonly counted: number
  readonly faults: readonly string[]
}

const STORED = `select
  (select count(*) from usage_record where kind <> 'task')::integer as "stored",
  (select count(*) from usage_record where kind = 'task')::integer as "storedTasks",
  (select count(*) from task where state in ('succeed', 'failed'))::integer as "endedTasks"`

/** To be called when the gateway has ended. `metrics`: as they were when nobody asked it for anything any more. */
export async function countRecords(
  databaseUrl: string | undefined,
  metrics: MetricsWatch | undefined,
): Promise<UsageCounts | undefined> {
  if (databaseUrl === undefined || metrics === undefined) return undefined
  const [stored] = await rowsOf<StoredUsage>(databaseUrl, STORED)
  return stored && comparedCounts(metrics, stored)
}

/**
 * Not one record may be lost, and none be there twice. Tasks go on ending until the gateway does: theirs are compared with
 * the tasks that the store says have ended, and left out of what was counted, by the same scrape.
 */
export function comparedCounts(metrics: Pick<MetricsWatch, 'sumOf'>, held: StoredUsage): UsageCounts {
  const counted = metrics.sumOf('gateway_usage_records_total') - metrics.sumOf('gateway_tasks_ended_total')
  const { stored, endedTasks, storedTasks } = held
  const faults = [
    ...(stored === counted ? [] : [`${counted} records of calls and answers were counted, and ${stored} are stored`]),
    ...(storedTasks === endedTasks
      ? []
      : [`${endedTasks} tasks have ended, and ${storedTasks} records of them are stored`]),
  ]
  return { ...held, counted, faults }
}
