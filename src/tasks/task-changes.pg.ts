import { type Kysely, sql } from 'kysely'
import { GatewayError } from '../core/gateway-error.js'
import type { DatabaseSchema } from '../storage/database-schema.js'
import type { IdempotencyClaim, IdempotencyRecord, IntentOutcome, NewTask } from './task.repository.js'

type Queries = Kysely<DatabaseSchema>

/** Undoes the transaction it is thrown in; what it carries is an answer, not a failure. */
export class IntentRefused extends Error {
  override readonly name = 'IntentRefused'

  constructor(readonly outcome: Exclude<IntentOutcome, { readonly outcome: 'recorded' }>) {
    super(outcome.outcome)
  }
}

/** Writes the intent and its idempotency key; throws `IntentRefused` when one of its ids is taken. For a transaction. */
export async function insertIntent(queries: Queries, task: NewTask): Promise<void> {
  // The key first: a create that is repeated as it was has the same external id too.
  if (task.idempotency !== undefined && !(await claimKey(queries, task, task.idempotency))) {
    const record = await findKey(queries, task.idempotency)
    // Its create has been forgotten in this instant: the caller has to come again.
    if (record === undefined) throw keyGivenUp()
    throw new IntentRefused({ outcome: 'idempotency_key_taken', record })
  }
  if (!(await insertTask(queries, task))) throw new IntentRefused({ outcome: 'external_id_taken' })
}

const keyGivenUp = (): GatewayError =>
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

/** False when the key is in use; waits for a transaction that is claiming it at the moment. An expired key is taken over. */
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
