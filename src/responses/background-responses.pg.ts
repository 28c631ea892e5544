import { Injectable } from '@nestjs/common'
import { type Selectable, sql } from 'kysely'
import type { UsageRecord } from '../core/usage-record.js'
import { type BackgroundResponseTable, Database } from '../storage/database.js'
import { insertRecords } from '../usage/usage.pg.js'
import {
  type BackgroundClaim,
  type BackgroundResponseRow,
  BackgroundResponses,
  type LatestPolls,
  type NextPoll,
} from './background-responses.js'
import { insertPins } from './response-pins.pg.js'

/** In the same words as the index, which the planner compares. */
const dueAtMs = sql<number>`greatest(next_poll_at_ms, locked_until_ms)`

/** Responses in the background in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyBackgroundResponses extends BackgroundResponses {
  constructor(private readonly database: Database) {
    super()
  }

  override async check(): Promise<void> {
    await this.database.run((queries) => sql`select 1`.execute(queries))
  }

  override begin(row: BackgroundResponseRow): Promise<void> {
    const { ownerId, id, channelId, model, route, createdAtMs, nextPollAtMs, polls, misses } = row
    const values = {
      owner_id: ownerId,
      id,
      channel_id: channelId,
      model,
      route,
      created_at_ms: createdAtMs,
      next_poll_at_ms: nextPollAtMs,
      polls,
      misses,
    }
    return this.database.transaction(async (queries) => {
      await queries
        .insertInto('background_response')
        .values(values)
        .onConflict((conflict) => conflict.columns(['owner_id', 'id']).doNothing())
        .execute()
      await insertPins(queries, { ownerId, channelId, responseId: id, itemIds: [] })
    })
  }

  override async find(ownerId: string, id: string): Promise<BackgroundResponseRow | undefined> {
    const row = await this.database.run((queries) =>
      queries
        .selectFrom('background_response')
        .selectAll()
        .where('owner_id', '=', ownerId)
        .where('id', '=', id)
        .executeTakeFirst(),
    )
    return row && rowOf(row)
  }

  override async claimDue(claim: BackgroundClaim): Promise<readonly BackgroundResponseRow[]> {
    const { nowMs, lockedUntilMs, limit, exceptChannels } = claim
    // Materialized, so that the planner evaluates it once: the limit holds.
    const { rows } = await this.database.run((queries) =>
      sql<Selectable<BackgroundResponseTable>>`
        with due as materialized (
          select owner_id, id from background_response
          where ${dueAtMs} <= ${nowMs}::bigint and channel_id <> all (${exceptChannels}::text[])
          order by ${dueAtMs} limit ${limit} for update skip locked
        )
        update background_response response set locked_until_ms = ${lockedUntilMs}::bigint
        from due where response.owner_id = due.owner_id and response.id = due.id
        returning response.*`.execute(queries),
    )
    return rows.map(rowOf)
  }

  override async nextDueAtMs(): Promise<number | undefined> {
    const row = await this.database.run((queries) =>
      queries
        .selectFrom('background_response')
        .select(dueAtMs.as('due_at_ms'))
        .orderBy(dueAtMs)
        .limit(1)
        .executeTakeFirst(),
    )
    return row?.due_at_ms
  }

  override async reschedule(claimed: BackgroundResponseRow, { nextPollAtMs, polls, misses }: NextPoll): Promise<void> {
    await this.database.run((queries) =>
      queries
        .updateTable('background_response')
        .set({
          next_poll_at_ms: sql<number>`case when next_poll_at_ms = ${claimed.nextPollAtMs}::bigint
            then ${nextPollAtMs}::bigint else next_poll_at_ms end`,
          locked_until_ms: 0,
          polls,
          misses,
        })
        .where('owner_id', '=', claimed.ownerId)
        .where('id', '=', claimed.id)
        .execute(),
    )
  }

  override async hasten(ownerId: string, id: string, atMs: number): Promise<void> {
    await this.database.run((queries) =>
      queries
        .updateTable('background_response')
        .set({ next_poll_at_ms: atMs })
        .where('owner_id', '=', ownerId)
        .where('id', '=', id)
        .where('next_poll_at_ms', '>', atMs)
        .execute(),
    )
  }

  override end(
    { ownerId, id, channelId }: BackgroundResponseRow,
    itemIds: readonly string[],
    record: UsageRecord | undefined,
  ): Promise<boolean> {
    return this.database.transaction(async (queries) => {
      const ended = await queries
        .deleteFrom('background_response')
        .where('owner_id', '=', ownerId)
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst()
      if (ended === undefined) return false
      if (record !== undefined) await insertRecords(queries, [record])
      if (itemIds.length > 0) await insertPins(queries, { ownerId, channelId, responseId: id, itemIds })
      return true
    })
  }

  override async bringForward({ pollAtMs, lockedUntilMs }: LatestPolls): Promise<void> {
    await this.database.run((queries) =>
      sql`
        update background_response set
          next_poll_at_ms = least(next_poll_at_ms, ${pollAtMs}::bigint),
          locked_until_ms = least(locked_until_ms, ${lockedUntilMs}::bigint)
        where ${dueAtMs} > ${Math.min(pollAtMs, lockedUntilMs)}::bigint
          and (next_poll_at_ms > ${pollAtMs}::bigint or locked_until_ms > ${lockedUntilMs}::bigint)`.execute(queries),
    )
  }
}

const rowOf = (row: Selectable<BackgroundResponseTable>): BackgroundResponseRow => ({
  ownerId: row.owner_id,
  id: row.id,
  channelId: row.channel_id,
  model: row.model,
  route: row.route,
  createdAtMs: row.created_at_ms,
  nextPollAtMs: row.next_poll_at_ms,
  polls: row.polls,
  misses: row.misses,
})
