import { type Kysely, sql } from 'kysely'
import { GatewayError } from '../core/gateway-error.js'
import type { DatabaseSchema } from '../storage/database-schema.js'
import { insertRecords } from '../usage/usage-rows.repository.js'
import { hostOf } from './callback-host.js'
import type { TaskChange } from './task.repository.js'

type Queries = Kysely<DatabaseSchema>
interface ChangedRow {
  readonly owner_id: string
  readonly callback_url: string | null
}

const UNIQUE_VIOLATION = '23505'

/**
 * Applies a change with its event, its stored answer and its usage: in a transaction when there are such. False when the
 * task is in another state by now.
 */
export async function applyChange(queries: Queries, id: string, change: TaskChange): Promise<boolean> {
  const row = await updateTask(queries, id, change)
  if (row === undefined) return false
  if (change.event !== undefined) await insertEvent(queries, id, row, change, change.event)
  if (change.answer !== undefined) {
    await queries.updateTable('idempotency_key').set(change.answer).where('task_id', '=', id).execute()
  }
  if (change.usage !== undefined) await insertRecords(queries, [change.usage])
  return true
}

async function updateTask(queries: Queries, id: string, change: TaskChange): Promise<ChangedRow | undefined> {
  const { state, upstreamTaskId, object, nextPollAtMs, polls, misses, updatedAtMs, deadlineAtMs } = change
  try {
    return await queries
      .updateTable('task')
      .set({
        state,
        ...(upstreamTaskId === undefined ? {} : { upstream_task_id: upstreamTaskId }),
        ...(object === undefined ? {} : { object }),
        next_poll_at_ms: sql<number>`case when hastened then next_poll_at_ms else ${nextPollAtMs}::bigint end`,
        locked_until_ms: 0,
        polls,
        misses,
        updated_at_ms: updatedAtMs,
        deadline_at_ms: deadlineAtMs,
      })
      .where('id', '=', id)
      .where('state', 'in', change.from)
      .returning(['owner_id', 'callback_url'])
      .executeTakeFirst()
  } catch (error) {
    throw isUniqueViolation(error) ? sharedUpstreamId(error) : error
  }
}

/** A task without an address to call has no events. */
async function insertEvent(
  queries: Queries,
  taskId: string,
  { owner_id, callback_url: url }: ChangedRow,
  { updatedAtMs }: TaskChange,
  { webhookId, body, nextAttemptAtMs }: NonNullable<TaskChange['event']>,
): Promise<void> {
  if (url === null) return
  await queries
    .insertInto('callback_delivery')
    .values({
      webhook_id: webhookId,
      task_id: taskId,
      owner_id,
      url,
      host: hostOf(url),
      body,
      created_at_ms: updatedAtMs,
      next_attempt_at_ms: nextAttemptAtMs,
    })
    .execute()
}

const isUniqueViolation = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === UNIQUE_VIOLATION

/** A broken upstream: two tasks of one channel cannot have one id. */
const sharedUpstreamId = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream answered with the id of another task.', { cause, retryable: false })
