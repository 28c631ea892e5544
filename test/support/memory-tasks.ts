import { GatewayError } from '../../src/core/errors.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { VideoKind } from '../../src/providers/contract.js'
import { isTerminal, isUnconfirmed, type Task, type TaskState } from '../../src/tasks/task.js'
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
} from '../../src/tasks/task.repository.js'
import { MemoryCallbackRepository, MemoryStore, type TaskRow } from './memory-store.js'

/** Two tasks of one channel cannot have one id. */
const sharedUpstreamId = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream answered with the id of another task.', { retryable: false })

const keyOf = ({ ownerId, route, key }: IdempotencyClaim): string => JSON.stringify([ownerId, route, key])

/** The rows of tasks in a store in memory, and those of other tables that go with them. */
class MemoryTaskRows {
  constructor(private readonly store: MemoryStore) {}

  all(): TaskRow[] {
    return [...this.store.tasks.values()]
  }

  /** Throws when another task of the channel has it. */
  takeUpstreamId(id: string, channelId: string, upstreamTaskId: string): void {
    const key = JSON.stringify([channelId, upstreamTaskId])
    if ((this.store.upstreamIds.get(key) ?? id) !== id) throw sharedUpstreamId()
    this.store.upstreamIds.set(key, id)
  }

  /** The task, and all that goes with it. */
  forget(id: string): void {
    this.store.tasks.delete(id)
    for (const [key, { taskId }] of this.store.keys) if (taskId === id) this.store.keys.delete(key)
    for (const [key, taskId] of this.store.upstreamIds) if (taskId === id) this.store.upstreamIds.delete(key)
    for (const [webhookId, { delivery }] of this.store.deliveries) {
      if (delivery.taskId === id) this.store.deliveries.delete(webhookId)
    }
  }

  addDelivery(task: Task, event: NonNullable<TaskChange['event']>): void {
    const { webhookId, body, nextAttemptAtMs } = event
    const { id: taskId, ownerId, callbackUrl: url = '', updatedAtMs: createdAtMs } = task
    const delivery = { webhookId, taskId, ownerId, url, body, attempts: 0, createdAtMs, nextAttemptAtMs }
    this.store.deliveries.set(webhookId, { delivery, lockedUntilMs: 0 })
  }

  /** What is kept under an idempotency key that has not expired by then. */
  keptUnder(claim: IdempotencyClaim, atMs: number): IdempotencyRecord | undefined {
    const known = this.store.keys.get(keyOf(claim))
    return known !== undefined && known.expiresAtMs > atMs ? known.record : undefined
  }

  /** Takes an idempotency key for a create that has begun. */
  keep(claim: IdempotencyClaim, taskId: string): void {
    const { fingerprint, expiresAtMs } = claim
    this.store.keys.set(keyOf(claim), { taskId, expiresAtMs, record: { state: 'running', fingerprint, taskId } })
  }

  storeAnswer(id: string, { status, body }: NonNullable<TaskChange['answer']>): void {
    for (const row of this.store.keys.values()) {
      if (row.taskId === id) row.record = { state: 'done', fingerprint: row.record.fingerprint, status, body }
    }
  }
}

const dueAtMs = ({ task, lockedUntilMs }: TaskRow): number => Math.max(task.nextPollAtMs, lockedUntilMs)

const duplicateKey = (): Error => Object.assign(new Error('duplicate key'), { code: '23505' })

class MemoryTaskRepository extends TaskRepository {
  /** Number of searches for work, for tests that wait for a poller. */
  claims = 0

  private readonly rows: MemoryTaskRows

  constructor(private readonly store: MemoryStore) {
    super()
    this.rows = new MemoryTaskRows(store)
  }

  recordIntent({ lockedUntilMs, idempotency, ...fields }: NewTask): Promise<IntentOutcome> {
    return this.store.work(() => {
      const record = idempotency && this.rows.keptUnder(idempotency, fields.createdAtMs)
      if (record !== undefined) return { outcome: 'idempotency_key_taken', record }
      const { ownerId, externalTaskId, id, createdAtMs } = fields
      const isTaken = this.rows
        .all()
        .some(({ task }) => task.ownerId === ownerId && task.externalTaskId === externalTaskId)
      if (externalTaskId !== undefined && isTaken) return { outcome: 'external_id_taken' }
      const start = {
        state: 'creating',
        polls: 0,
        misses: 0,
        updatedAtMs: createdAtMs,
        nextPollAtMs: lockedUntilMs,
      } as const
      this.store.tasks.set(id, { task: { ...fields, ...start }, lockedUntilMs, isHastened: false })
      if (idempotency !== undefined) this.rows.keep(idempotency, id)
      return { outcome: 'recorded' }
    })
  }

  assignChannel(id: string, channelId: string): Promise<void> {
    return this.store.work(() => {
      const row = this.store.tasks.get(id)
      if (row !== undefined) row.task = { ...row.task, channelId }
    })
  }

  dropIntent(id: string): Promise<void> {
    return this.store.work(() => {
      const task = this.store.tasks.get(id)?.task
      if (task !== undefined && isUnconfirmed(task.state)) this.rows.forget(id)
    })
  }

  change(id: string, { from, event, answer, usage, ...fields }: TaskChange): Promise<boolean> {
    return this.store.work(() => {
      const row = this.store.tasks.get(id)
      if (row === undefined || !from.includes(row.task.state)) return false
      // A transaction: whatever cannot be written leaves everything as it was.
      if (event !== undefined && this.store.deliveries.has(event.webhookId)) throw duplicateKey()
      if (fields.upstreamTaskId !== undefined) this.rows.takeUpstreamId(id, row.task.channelId, fields.upstreamTaskId)
      const nextPollAtMs = row.isHastened ? row.task.nextPollAtMs : fields.nextPollAtMs
      row.task = { ...row.task, ...fields, nextPollAtMs }
      row.lockedUntilMs = 0
      if (event !== undefined && row.task.callbackUrl !== undefined) this.rows.addDelivery(row.task, event)
      if (answer !== undefined) this.rows.storeAnswer(id, answer)
      if (usage !== undefined && !this.store.usage.has(usage.id)) this.store.usage.set(usage.id, usage)
      return true
    })
  }

  reschedule(batch: readonly Reschedule[]): Promise<void> {
    return this.store.work(() => {
      for (const { id, ...fields } of batch) {
        const row = this.store.tasks.get(id)
        if (row === undefined || isTerminal(row.task.state)) continue
        const nextPollAtMs = row.isHastened ? row.task.nextPollAtMs : fields.nextPollAtMs
        row.task = { ...row.task, ...fields, nextPollAtMs }
        row.lockedUntilMs = 0
      }
    })
  }

  claimDue({ nowMs, lockedUntilMs, limit, exceptChannels }: ClaimRequest): Promise<readonly Task[]> {
    this.claims++
    return this.store.work(() => {
      const due = this.rows
        .all()
        .filter(
          (row) => !isTerminal(row.task.state) && dueAtMs(row) <= nowMs && !exceptChannels.includes(row.task.channelId),
        )
      due.sort((a, b) => dueAtMs(a) - dueAtMs(b))
      return due.slice(0, limit).map((row) => {
        row.lockedUntilMs = lockedUntilMs
        row.isHastened = false
        return row.task
      })
    })
  }

  bringForward({ pollAtMs, lockedUntilMs, createLockedUntilMs }: LatestTimes): Promise<void> {
    return this.store.work(() => {
      for (const row of this.rows.all()) {
        if (isTerminal(row.task.state)) continue
        const isCreate = row.task.state === 'creating'
        const latestLockMs = isCreate ? createLockedUntilMs : lockedUntilMs
        if (row.lockedUntilMs <= latestLockMs && (isCreate || row.task.nextPollAtMs <= pollAtMs)) continue
        row.task = { ...row.task, nextPollAtMs: Math.min(row.task.nextPollAtMs, pollAtMs) }
        row.lockedUntilMs = Math.min(row.lockedUntilMs, latestLockMs)
      }
    })
  }

  nextDueAtMs(): Promise<number | undefined> {
    return this.store.work(() => {
      const waiting = this.rows.all().filter(({ task }) => !isTerminal(task.state))
      const times = waiting.map(dueAtMs)
      return times.length === 0 ? undefined : Math.min(...times)
    })
  }

  find(ownerId: string, kind: VideoKind, id: string): Promise<Task | undefined> {
    return this.store.work(() => {
      const own = this.rows.all().map(({ task }) => task)
      const mine = own.filter((task) => task.ownerId === ownerId && task.kind === kind)
      return mine.find((task) => task.upstreamTaskId === id) ?? mine.find((task) => task.externalTaskId === id)
    })
  }

  byId(id: string): Promise<Task | undefined> {
    return this.store.work(() => this.store.tasks.get(id)?.task)
  }

  isKnown(kind: VideoKind, id: string): Promise<boolean> {
    return this.store.work(() =>
      this.rows
        .all()
        .some(({ task }) => task.kind === kind && (task.upstreamTaskId === id || task.externalTaskId === id)),
    )
  }

  list(ownerId: string, kind: VideoKind, { offset, limit }: TaskPage): Promise<readonly Task[]> {
    return this.store.work(() => {
      const tasks = this.rows.all().map(({ task }) => task)
      const own = tasks.filter(
        (task) => task.ownerId === ownerId && task.kind === kind && task.upstreamTaskId !== undefined,
      )
      return own
        .reverse()
        .sort((a, b) => b.createdAtMs - a.createdAtMs)
        .slice(offset, offset + limit)
    })
  }

  hasten(callbackToken: string, nowMs: number): Promise<boolean> {
    return this.store.work(() => {
      const row = this.rows.all().find(({ task }) => task.callbackToken === callbackToken)
      if (row === undefined || isTerminal(row.task.state)) return false
      row.task = { ...row.task, nextPollAtMs: Math.min(nowMs, row.task.nextPollAtMs) }
      row.isHastened = true
      return true
    })
  }

  findIdempotency(claim: IdempotencyClaim): Promise<IdempotencyRecord | undefined> {
    return this.store.work(() => this.rows.keptUnder(claim, claim.claimedAtMs))
  }

  async countOpenByState(): Promise<Readonly<Partial<Record<TaskState, number>>>> {
    const all = Object.entries(await this.countByState())
    return Object.fromEntries(all.filter(([state]) => !isTerminal(state as TaskState)))
  }

  countByState(): Promise<Readonly<Partial<Record<TaskState, number>>>> {
    return this.store.work(() => {
      const counts: Partial<Record<TaskState, number>> = {}
      for (const { task } of this.rows.all()) counts[task.state] = (counts[task.state] ?? 0) + 1
      return counts
    })
  }

  prune(beforeMs: number, nowMs: number, limit: number): Promise<number> {
    return this.store.work(() => {
      const ended = this.rows.all().filter(({ task }) => isTerminal(task.state) && task.updatedAtMs < beforeMs)
      const expired = [...this.store.keys].filter(([, { expiresAtMs }]) => expiresAtMs <= nowMs)
      for (const { task } of ended.slice(0, limit)) this.rows.forget(task.id)
      for (const [key] of expired.slice(0, limit)) this.store.keys.delete(key)
      return Math.min(ended.length, limit) + Math.min(expired.length, limit)
    })
  }
}

/** The two repositories over one store in memory, which obeys the same rules as the one in the database. */
export interface MemoryRepositories {
  readonly tasks: MemoryTaskRepository
  readonly callbacks: MemoryCallbackRepository
  /** Written with the ends of tasks. */
  readonly usageOf: (ownerId: string) => Promise<readonly UsageRecord[]>
  /** False makes every call reject with `overloaded`. */
  readonly setReachable: (isReachable: boolean) => void
  /** How many calls were rejected because of that. */
  readonly refusals: () => number
}

export function memoryRepositories(): MemoryRepositories {
  const store = new MemoryStore()
  return {
    tasks: new MemoryTaskRepository(store),
    callbacks: new MemoryCallbackRepository(store),
    usageOf: (ownerId) => Promise.resolve([...store.usage.values()].filter((record) => record.ownerId === ownerId)),
    setReachable: (isReachable) => {
      store.isReachable = isReachable
    },
    refusals: () => store.refusals,
  }
}
