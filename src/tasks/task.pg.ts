import { Injectable } from '@nestjs/common'
import { type Kysely, sql } from 'kysely'
import type { VideoKind } from '../providers/contract.js'
import { Database, type DatabaseSchema } from '../storage/database.js'
import { applyChange, findKey, insertIntent, IntentRefused, taskOf } from './task-changes.pg.js'
import type { Task, TaskState } from './task.js'
import {
  type ClaimRequest,
  type IdempotencyClaim,
  type IdempotencyRecord,
  type IntentOutcome,
  type LatestTimes,
  type NewTask,
  type Reschedule,
  type TaskChange,
  type TaskPage,
  TaskRepository,
} from './task.repository.js'

type Queries = Kysely<DatabaseSchema>

/** In the same words as the indexes, which the planner compares. */
const isOpen = sql<boolean>`task.state not in ('succeed', 'failed')`
const dueAtMs = sql<number>`greatest(task.next_poll_at_ms, task.locked_until_ms)`

/** Leases due tasks; those that are leased, or are being claimed at the moment, are skipped. */
async function claimDueTasks(queries: Queries, request: ClaimRequest): Promise<readonly Task[]> {
  const { nowMs, lockedUntilMs, limit, exceptChannels } = request
  const rows = await queries
    .with(
      // Materialized, so that the planner evaluates it once: the limit holds.
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

async function earliestDueAtMs(queries: Queries): Promise<number | undefined> {
  const row = await queries
    .selectFrom('task')
    .select(dueAtMs.as('due_at_ms'))
    .where(isOpen)
    .orderBy(dueAtMs)
    .limit(1)
    .executeTakeFirst()
  return row?.due_at_ms
}

/** The first condition is the one of the index: nearly always no row has such a time. */
async function bringTasksForward(queries: Queries, latest: LatestTimes): Promise<void> {
  const { pollAtMs, lockedUntilMs, createLockedUntilMs } = latest
  const latestLock = sql`case when task.state = 'creating' then ${createLockedUntilMs}::bigint else ${lockedUntilMs}::bigint end`
  await sql`
    update task set
      next_poll_at_ms = least(next_poll_at_ms, ${pollAtMs}::bigint),
      locked_until_ms = least(locked_until_ms, ${latestLock})
    where ${isOpen} and ${dueAtMs} > ${Math.min(pollAtMs, lockedUntilMs)}::bigint
      and (locked_until_ms > ${latestLock} or (task.state <> 'creating' and next_poll_at_ms > ${pollAtMs}::bigint))`.execute(
    queries,
  )
}

/** Frees the leases of a batch in one statement; tasks that an upstream callback has made due stay due. */
async function rescheduleTasks(queries: Queries, batch: readonly Reschedule[]): Promise<void> {
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
async function pruneRows(queries: Queries, beforeMs: number, nowMs: number, limit: number): Promise<number> {
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

/** Tasks in PostgreSQL, embedded or not. */
@Injectable()
export class KyselyTaskRepository extends TaskRepository {
  constructor(private readonly database: Database) {
    super()
  }

  override async recordIntent(task: NewTask): Promise<IntentOutcome> {
    try {
      await this.database.transaction((queries) => insertIntent(queries, task))
      return { outcome: 'recorded' }
    } catch (error) {
      if (error instanceof IntentRefused) return error.outcome
      throw error
    }
  }

  override async assignChannel(id: string, channelId: string): Promise<void> {
    await this.database.run((queries) =>
      queries.updateTable('task').set({ channel_id: channelId }).where('id', '=', id).execute(),
    )
  }

  override async dropIntent(id: string): Promise<void> {
    await this.database.run((queries) =>
      queries
        .deleteFrom('task')
        .where('id', '=', id)
        .where('state', 'in', ['creating', 'unknown'])
        .where('upstream_task_id', 'is', null)
        .execute(),
    )
  }

  override change(id: string, change: TaskChange): Promise<boolean> {
    const isSingle = change.event === undefined && change.answer === undefined && change.usage === undefined
    const apply = (queries: Queries): Promise<boolean> => applyChange(queries, id, change)
    return isSingle ? this.database.run(apply) : this.database.transaction(apply)
  }

  override async reschedule(batch: readonly Reschedule[]): Promise<void> {
    if (batch.length > 0) await this.database.run((queries) => rescheduleTasks(queries, batch))
  }

  override claimDue(request: ClaimRequest): Promise<readonly Task[]> {
    return this.database.run((queries) => claimDueTasks(queries, request))
  }

  override nextDueAtMs(): Promise<number | undefined> {
    return this.database.run(earliestDueAtMs)
  }

  override async find(ownerId: string, kind: VideoKind, id: string): Promise<Task | undefined> {
    const row = await this.database.run((queries) =>
      tasksWithId(queries, kind, id)
        .selectAll()
        .where('owner_id', '=', ownerId)
        // One task's external id may be another one's id: the id takes precedence.
        .orderBy(sql`(upstream_task_id = ${id}) desc nulls last`)
        .orderBy('created_at_ms', 'desc')
        .limit(1)
        .executeTakeFirst(),
    )
    return row && taskOf(row)
  }

  override async byId(id: string): Promise<Task | undefined> {
    const row = await this.database.run((queries) =>
      queries.selectFrom('task').selectAll().where('id', '=', id).executeTakeFirst(),
    )
    return row && taskOf(row)
  }

  override async isKnown(kind: VideoKind, id: string): Promise<boolean> {
    const row = await this.database.run((queries) =>
      tasksWithId(queries, kind, id).select('id').limit(1).executeTakeFirst(),
    )
    return row !== undefined
  }

  override async list(ownerId: string, kind: VideoKind, { offset, limit }: TaskPage): Promise<readonly Task[]> {
    const rows = await this.database.run((queries) =>
      queries
        .selectFrom('task')
        .selectAll()
        .where('owner_id', '=', ownerId)
        .where('kind', '=', kind)
        .where('upstream_task_id', 'is not', null)
        .orderBy('created_at_ms', 'desc')
        .orderBy('id', 'desc')
        .offset(offset)
        .limit(limit)
        .execute(),
    )
    return rows.map(taskOf)
  }

  override async bringForward(latest: LatestTimes): Promise<void> {
    await this.database.run((queries) => bringTasksForward(queries, latest))
  }

  override async hasten(callbackToken: string, nowMs: number): Promise<boolean> {
    const row = await this.database.run((queries) =>
      queries
        .updateTable('task')
        .set({ next_poll_at_ms: sql<number>`least(next_poll_at_ms, ${nowMs}::bigint)`, hastened: true })
        .where('callback_token', '=', callbackToken)
        .where(isOpen)
        .returning('id')
        .executeTakeFirst(),
    )
    return row !== undefined
  }

  override findIdempotency(claim: IdempotencyClaim): Promise<IdempotencyRecord | undefined> {
    return this.database.run((queries) => findKey(queries, claim))
  }

  override countOpenByState(): Promise<Readonly<Partial<Record<TaskState, number>>>> {
    return this.database.run(async (queries) => counts(await countedByState(queries).where(isOpen).execute()))
  }

  override countByState(): Promise<Readonly<Partial<Record<TaskState, number>>>> {
    return this.database.run(async (queries) => counts(await countedByState(queries).execute()))
  }

  override prune(beforeMs: number, nowMs: number, limit: number): Promise<number> {
    return this.database.run((queries) => pruneRows(queries, beforeMs, nowMs, limit))
  }
}

/** Tasks of any owner with this id, the upstream's or the caller's own. */
const tasksWithId = (queries: Queries, kind: VideoKind, id: string) =>
  queries
    .selectFrom('task')
    .where('kind', '=', kind)
    .where((task) => task.or([task('upstream_task_id', '=', id), task('external_task_id', '=', id)]))

const countedByState = (queries: Queries) =>
  queries
    .selectFrom('task')
    .select(['state', ({ fn }) => fn.countAll<number>().as('count')])
    .groupBy('state')

const counts = (rows: readonly { readonly state: string; readonly count: number }[]): Record<string, number> =>
  Object.fromEntries(rows.map(({ state, count }) => [state, count]))
