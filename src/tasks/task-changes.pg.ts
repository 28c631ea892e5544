import { type Kysely, sql } from 'kysely'
import { GatewayError, hasCode } from '../core/errors.js'
import type { VideoKind } from '../providers/contract.js'
import type { DatabaseSchema, TaskRow } from '../storage/database.js'
import { insertRecords } from '../usage/usage.pg.js'
import { hostOf } from './callback-attempt.js'
import type { Task, TaskState } from './task.js'
import type { IdempotencyClaim, IdempotencyRecord, IntentConflict, NewTask, TaskChange } from './task.repository.js'

type Queries = Kysely<DatabaseSchema>
interface ChangedRow {
  readonly owner_id: string
  readonly callback_url: string | null
}

const UNIQUE_VIOLATION = '23505'

/**
 * Applies a change with its event, its stored response and its usage, if any: then in a transaction. False when the
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
    throw hasCode(error, UNIQUE_VIOLATION) ? sharedUpstreamId(error) : error
  }
}

/** Inserts the event of a change; a task without a callback URL has none. */
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

/** A broken upstream: two tasks of one channel cannot have the same id. */
const sharedUpstreamId = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream answered with the id of another task.', { cause, retryable: false })

/** Maps a row to a task. Only the gateway writes `kind` and `state`. */
export function taskOf(row: TaskRow): Task {
  return {
    id: row.id,
    kind: row.kind as VideoKind,
    ownerId: row.owner_id,
    channelId: row.channel_id,
    model: row.model,
    state: row.state as TaskState,
    ...(row.upstream_task_id === null ? {} : { upstreamTaskId: row.upstream_task_id }),
    ...(row.external_task_id === null ? {} : { externalTaskId: row.external_task_id }),
    upstreamExternalId: row.upstream_external_id,
    ...(row.object === null ? {} : { object: row.object }),
    ...(row.callback_url === null ? {} : { callbackUrl: row.callback_url }),
    callbackToken: row.callback_token,
    nextPollAtMs: row.next_poll_at_ms,
    polls: row.polls,
    misses: row.misses,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    deadlineAtMs: row.deadline_at_ms,
  }
}

/** Rolls back the transaction it is thrown in; it carries a result, not a failure. */
export class IntentRefused extends Error {
  override readonly name = 'IntentRefused'

  constructor(readonly outcome: IntentConflict) {
    super(outcome.outcome)
  }
}

/** Writes the intent and its idempotency key; throws `IntentRefused` when one of its ids is taken. For a transaction. */
export async function insertIntent(queries: Queries, task: NewTask): Promise<void> {
  // The key first: a repeated create has the same external id too.
  if (task.idempotency !== undefined && !(await claimKey(queries, task, task.idempotency))) {
    const record = await findKey(queries, task.idempotency)
    // Its create was deleted at this moment: the caller has to retry.
    if (record === undefined) throw keyReleased()
    throw new IntentRefused({ outcome: 'idempotency_key_taken', record })
  }
  if (!(await insertTask(queries, task))) throw new IntentRefused({ outcome: 'external_id_taken' })
}

const keyReleased = (): GatewayError =>
  new GatewayError('idempotency_running', 'The request with this Idempotency-Key has just ended without an answer.', {
    retryAfterSeconds: 1,
  })

export async function findKey(queries: Queries, claim: IdempotencyClaim): Promise<IdempotencyRecord | undefined> {
  const row = await queries
    .selectFrom('idempotency_key')
    .select(['fingerprint', 'task_id', 'status', 'body'])
    .where('owner_id', '=', claim.ownerId)
    .where('route', '=', claim.route)
    .where('key', '=', claim.key)
    .where('expires_at_ms', '>', claim.claimedAtMs)
    .executeTakeFirst()
  if (row === undefined) return undefined
  const { fingerprint, task_id: taskId, status, body } = row
  if (status === null || body === null) return { state: 'running', fingerprint, taskId }
  return { state: 'done', fingerprint, status, body }
}

/** False when the key is in use; waits for a transaction that is just claiming it. An expired key is taken over. */
async function claimKey(queries: Queries, task: NewTask, claim: IdempotencyClaim): Promise<boolean> {
  const values = {
    fingerprint: claim.fingerprint,
    task_id: task.id,
    status: null,
    body: null,
    expires_at_ms: claim.expiresAtMs,
  }
  const row = await queries
    .insertInto('idempotency_key')
    .values({ owner_id: claim.ownerId, route: claim.route, key: claim.key, ...values })
    .onConflict((conflict) =>
      conflict
        .columns(['owner_id', 'route', 'key'])
        .doUpdateSet(values)
        .where('idempotency_key.expires_at_ms', '<=', task.createdAtMs),
    )
    .returning('key')
    .executeTakeFirst()
  return row !== undefined
}

/** False when the owner has another task with this external id. */
async function insertTask(queries: Queries, task: NewTask): Promise<boolean> {
  const row = await queries
    .insertInto('task')
    .values({
      id: task.id,
      kind: task.kind,
      owner_id: task.ownerId,
      channel_id: task.channelId,
      model: task.model,
      state: 'creating',
      external_task_id: task.externalTaskId ?? null,
      upstream_external_id: task.upstreamExternalId,
      callback_url: task.callbackUrl ?? null,
      callback_token: task.callbackToken,
      next_poll_at_ms: task.lockedUntilMs,
      locked_until_ms: task.lockedUntilMs,
      created_at_ms: task.createdAtMs,
      updated_at_ms: task.createdAtMs,
      deadline_at_ms: task.deadlineAtMs,
    })
    .onConflict((conflict) =>
      conflict.columns(['external_task_id', 'owner_id']).where('external_task_id', 'is not', null).doNothing(),
    )
    .returning(sql<number>`1`.as('inserted'))
    .executeTakeFirst()
  return row !== undefined
}
