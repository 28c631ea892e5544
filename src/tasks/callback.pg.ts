import { Injectable } from '@nestjs/common'
import { BEARER_PREFIX } from '../core/caller.js'
import { type Kysely, sql } from 'kysely'
import { type CallbackDeliveryRow, Database, type DatabaseSchema } from '../storage/database.js'
import {
  type CallbackClaim,
  type CallbackDelivery,
  type CallbackOutcome,
  CallbackRepository,
  type LatestCallbackTimes,
} from './callback.repository.js'

type Queries = Kysely<DatabaseSchema>

/** In the same words as the index, which the planner compares. */
const isOpen = sql<boolean>`callback_delivery.next_attempt_at_ms is not null`
const dueAtMs = sql<number>`greatest(callback_delivery.next_attempt_at_ms, callback_delivery.locked_until_ms)`

/** The outbox in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyCallbackRepository extends CallbackRepository {
  constructor(private readonly database: Database) {
    super()
  }

  override async claimDue(claim: CallbackClaim): Promise<readonly CallbackDelivery[]> {
    const rows = await this.database.run((queries) => claimRows(queries, claim))
    return rows.sort((one, other) => one.due_at_ms - other.due_at_ms || one.sequence - other.sequence).map(deliveryOf)
  }

  override async nextDueAtMs(): Promise<number | undefined> {
    const row = await this.database.run((queries) =>
      queries
        .selectFrom('callback_delivery')
        .select(dueAtMs.as('due_at_ms'))
        .where(isOpen)
        .orderBy(dueAtMs)
        .limit(1)
        .executeTakeFirst(),
    )
    return row?.due_at_ms
  }

  override async bringForward(latest: LatestCallbackTimes): Promise<void> {
    await this.database.run((queries) => bringRowsForward(queries, latest))
  }

  override async recordOutcome(webhookId: string, outcome: CallbackOutcome): Promise<void> {
    await this.database.run((queries) =>
      queries
        .updateTable('callback_delivery')
        .set({ attempts: sql<number>`attempts + 1`, locked_until_ms: 0, ...settled(outcome) })
        .where('webhook_id', '=', webhookId)
        // A process whose lease expired may still settle; a delivery that has ended stays as it is.
        .where(isOpen)
        .execute(),
    )
  }

  override async ofTask(ownerId: string, taskId: string): Promise<readonly CallbackDelivery[]> {
    const rows = await this.database.run((queries) =>
      queries
        .selectFrom('callback_delivery')
        .selectAll()
        .where('owner_id', '=', ownerId)
        .where('task_id', '=', taskId)
        .orderBy('sequence')
        .execute(),
    )
    return rows.map(deliveryOf)
  }

  override async redeliver(ownerId: string, webhookId: string, nowMs: number): Promise<boolean> {
    const row = await this.database.run((queries) =>
      queries
        .updateTable('callback_delivery')
        .set({ attempts: 0, next_attempt_at_ms: nowMs, delivered_at_ms: null, exhausted_at_ms: null, last_error: null })
        .where('owner_id', '=', ownerId)
        .where('webhook_id', '=', webhookId)
        .returning('webhook_id')
        .executeTakeFirst(),
    )
    return row !== undefined
  }

  override async countOpen(): Promise<{ readonly waiting: number; readonly exhausted: number }> {
    return this.database.run(async (queries) => {
      const waiting = await queries
        .selectFrom('callback_delivery')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where(isOpen)
        .executeTakeFirstOrThrow()
      const exhausted = await queries
        .selectFrom('callback_delivery')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('exhausted_at_ms', 'is not', null)
        .executeTakeFirstOrThrow()
      return { waiting: waiting.count, exhausted: exhausted.count }
    })
  }
}

const claimRows = (queries: Queries, claim: CallbackClaim) => {
  const { nowMs, lockedUntilMs, limit, exceptHosts, exceptOwners, exceptBearers } = claim
  return queries
    .with(
      // Materialized, so that the planner evaluates it once: the limit holds.
      (name) => name('due').materialized(),
      (parts) =>
        parts
          .selectFrom('callback_delivery')
          .select(['callback_delivery.webhook_id', dueAtMs.as('due_at_ms')])
          .where(isOpen)
          .where(dueAtMs, '<=', nowMs)
          .where(sql<boolean>`callback_delivery.host <> all (${exceptHosts}::text[])`)
          .where(sql<boolean>`callback_delivery.owner_id <> all (${exceptOwners}::text[])`)
          .$if(exceptBearers, (rows) => rows.where('callback_delivery.owner_id', 'not like', `${BEARER_PREFIX}%`))
          .orderBy(dueAtMs)
          .orderBy('callback_delivery.sequence')
          .limit(limit)
          .forUpdate()
          .skipLocked(),
    )
    .updateTable('callback_delivery')
    .from('due')
    .set({ locked_until_ms: lockedUntilMs })
    .whereRef('callback_delivery.webhook_id', '=', 'due.webhook_id')
    .returningAll('callback_delivery')
    .returning('due.due_at_ms')
    .execute()
}

/** The first condition is the one of the index; it leaves out what is due soon, which are most rows. */
async function bringRowsForward(queries: Queries, latest: LatestCallbackTimes): Promise<void> {
  const { attemptAtMs, askedAtMs, lockedUntilMs, createdAtMs } = latest
  const scheduled = sql`(${attemptAtMs}::bigint[])[least(attempts + 1, ${attemptAtMs.length}::integer)]`
  await sql`
    update callback_delivery set
      next_attempt_at_ms = case when next_attempt_at_ms > ${scheduled} then ${scheduled} else next_attempt_at_ms end,
      locked_until_ms = least(locked_until_ms, ${lockedUntilMs}::bigint)
    where ${isOpen} and ${dueAtMs} > ${Math.min(lockedUntilMs, ...attemptAtMs)}::bigint
      and (locked_until_ms > ${lockedUntilMs}::bigint or next_attempt_at_ms >
        case when attempts = 0 or created_at_ms > ${createdAtMs}::bigint
          then ${scheduled} else greatest(${scheduled}, ${askedAtMs}::bigint) end)`.execute(queries)
}

function settled(outcome: CallbackOutcome) {
  switch (outcome.outcome) {
    case 'delivered':
      return { next_attempt_at_ms: null, delivered_at_ms: outcome.atMs, last_error: null }
    case 'retry':
      return { next_attempt_at_ms: outcome.nextAttemptAtMs, last_error: outcome.error }
    case 'exhausted':
      return { next_attempt_at_ms: null, exhausted_at_ms: outcome.atMs, last_error: outcome.error }
  }
}

const deliveryOf = (row: CallbackDeliveryRow): CallbackDelivery => ({
  webhookId: row.webhook_id,
  taskId: row.task_id,
  ownerId: row.owner_id,
  url: row.url,
  body: row.body,
  attempts: row.attempts,
  createdAtMs: row.created_at_ms,
  ...(row.next_attempt_at_ms === null ? {} : { nextAttemptAtMs: row.next_attempt_at_ms }),
  ...(row.delivered_at_ms === null ? {} : { deliveredAtMs: row.delivered_at_ms }),
  ...(row.exhausted_at_ms === null ? {} : { exhaustedAtMs: row.exhausted_at_ms }),
  ...(row.last_error === null ? {} : { lastError: row.last_error }),
})
