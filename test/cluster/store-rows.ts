import { rowsOf } from './store-query.js'

/** What the store has written down about one task that has ended. */
export interface TaskUsage {
  /** As its caller and its upstream know it; null where the row belongs to no task of the store. */
  readonly task: string | null
  readonly outcome: string
  readonly videos: number
}

/** The request ids of all usage of requests whose ids begin so, in their order; one that is there twice is here twice. */
export async function requestUsage(databaseUrl: string, prefix: string): Promise<readonly string[]> {
  const rows = await rowsOf<{ readonly request_id: string }>(
    databaseUrl,
    `select request_id from usage_record where kind = 'request' and request_id like $1
     order by request_id collate "C"`,
    [`${prefix}%`],
  )
  return rows.map(({ request_id: id }) => id)
}

/** All usage of tasks, in the order of the tasks. */
export function taskUsage(databaseUrl: string): Promise<readonly TaskUsage[]> {
  return rowsOf<TaskUsage>(
    databaseUrl,
    `select upstream_task_id as task, outcome, videos::integer as videos
     from usage_record left join task on usage_record.id = 'task video ' || task.id
     where usage_record.kind = 'task' order by upstream_task_id collate "C"`,
  )
}

/** How many tasks have come to their end, as the store knows it. */
export async function endedTasks(databaseUrl: string): Promise<number> {
  const rows = await rowsOf<{ readonly ended: number }>(
    databaseUrl,
    `select count(*)::integer as ended from task where state in ('succeed', 'failed')`,
  )
  return rows[0]?.ended ?? 0
}
