import { Injectable } from '@nestjs/common'
import { type Kysely, sql } from 'kysely'
import type { VideoKind } from '../providers/video.contract.js'
import type { DatabaseSchema } from '../storage/database-schema.js'
import { Database } from '../storage/database.js'
import { applyChange } from './task-change-rows.repository.js'
import { findKey, insertIntent, IntentRefused } from './task-changes.pg.js'
import { claimDueTasks, earliestDueAtMs, isOpen, pruneRows, rescheduleTasks } from './task-queue-rows.repository.js'
import { taskOf } from './task-row.js'
import type { Task, TaskState } from './task.js'
import {
  type ClaimRequest,
  type IdempotencyClaim,
  type IdempotencyRecord,
  type IntentOutcome,
  type NewTask,
  type Reschedule,
  type TaskChange,
  type TaskPage,
  TaskRepository,
} from './task.repository.js'

type Queries = Kysely<DatabaseSchema>

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
      known(queries, kind, id)
        .selectAll()
        .where('owner_id', '=', ownerId)
        // One task may carry as its external id what another one has as its id: then the id counts.
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
    const row = await this.database.run((queries) => known(queries, kind, id).select('id').limit(1).executeTakeFirst())
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

/** Tasks of any owner that go by this id, the upstream's or the caller's own. */
const known = (queries: Queries, kind: VideoKind, id: string) =>
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
