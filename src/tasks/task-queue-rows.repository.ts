import { type Kysely, sql } from 'kysely'
import type { DatabaseSchema } from '../storage/database-schema.js'
import { taskOf } from './task-row.js'
import type { Task } from './task.js'
import type { ClaimRequest, Reschedule } from './task.repository.js'

type Queries = Kysely<DatabaseSchema>

/** In these words, which the indexes have too: the planner compares them. */
export const isOpen = sql<boolean>`task.state not in ('succeed', 'failed')`
const dueAtMs = sql<number>`greatest(task.next_poll_at_ms, task.locked_until_ms)`

/** Leases tasks that are due to whoever asks; those of others, and those being claimed at the moment, are passed over. */
export async function claimDueTasks(queries: Queries, request: ClaimRequest): Promise<readonly Task[]> {
  const { nowMs, lockedUntilMs, limit, exceptChannels } = request
  const rows = await queries
    .with(
      // Evaluated once, whatever the planner makes of the join: the limit holds.
      (name) => name('due').materialized(),
      (parts) =>
        parts
          .selectFrom('task')
          .select(['task.id', dueAtMs.as('due_at_ms')])
          .where(isOpen)
          .where(dueAtMs, '<=', nowMs)
          .where(sql<boolean>`task.channel_id <> all (${exceptChannels}::text[])`)
          .orderBy(dueAtMs)
          .limit(limit)
          .forUpdate()
          .skipLocked(),
    )
    .updateTable('task')
    .from('due')
    .set({ locked_until_ms: lockedUntilMs, hastened: false })
    .whereRef('task.id', '=', 'due.id')
    .returningAll('task')
    .returning('due.due_at_ms')
    .execute()
  return rows.sort((one, other) => one.due_at_ms - other.due_at_ms).map(taskOf)
}

export async function earliestDueAtMs(queries: Queries): Promise<number | undefined> {
  const row = await queries
    .selectFrom('task')
    .select(dueAtMs.as('due_at_ms'))
    .where(isOpen)
    .orderBy(dueAtMs)
    .limit(1)
    .executeTakeFirst()
  return row?.due_at_ms
}

/** Frees the leases of a whole batch in one statement; what the upstream has hastened meanwhile stays due. */
export async function rescheduleTasks(queries: Queries, batch: readonly Reschedule[]): Promise<void> {
  const column = <Value>(read: (item: Reschedule) => Value): (Value | null)[] => batch.map((item) => read(item) ?? null)
  await sql`
    update task set
      next_poll_at_ms = case when task.hastened then task.next_poll_at_ms else batch.next_poll_at_ms end,
      polls = batch.polls,
      misses = batch.misses,
      object = coalesce(batch.object, task.object),
      updated_at_ms = coalesce(batch.updated_at_ms, task.updated_at_ms),
      locked_until_ms = 0
    from unnest(
      ${column(({ id }) => id)}::text[],
      ${column(({ nextPollAtMs }) => nextPollAtMs)}::bigint[],
      ${column(({ polls }) => polls)}::integer[],
      ${column(({ misses }) => misses)}::integer[],
      ${column(({ object }) => object)}::text[],
      ${column(({ updatedAtMs }) => updatedAtMs)}::bigint[]
    ) as batch (id, next_poll_at_ms, polls, misses, object, updated_at_ms)
    where task.id = batch.id and ${isOpen}`.execute(queries)
}

/** Deletes tasks that ended before `beforeMs` and keys that expired by `nowMs`, at most `limit` of each; returns how many. */
export async function pruneRows(queries: Queries, beforeMs: number, nowMs: number, limit: number): Promise<number> {
  const keys = await sql`
    delete from idempotency_key where ctid = any (array(
      select ctid from idempotency_key where expires_at_ms <= ${nowMs} limit ${limit} for update skip locked
    ))`.execute(queries)
  const tasks = await sql`
    delete from task where id = any (array(
      select id from task where state in ('succeed', 'failed') and updated_at_ms < ${beforeMs}
      order by updated_at_ms limit ${limit} for update skip locked
    ))`.execute(queries)
  return Number(keys.numAffectedRows ?? 0) + Number(tasks.numAffectedRows ?? 0)
}
