import { GatewayError } from '../../src/core/errors.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import { isOwnBearer } from '../../src/core/caller.js'
import { hostOf } from '../../src/tasks/callback-attempt.js'
import type { Task } from '../../src/tasks/task.js'
import {
  type CallbackClaim,
  type CallbackDelivery,
  type CallbackOutcome,
  CallbackRepository,
  type LatestCallbackTimes,
} from '../../src/tasks/callback.repository.js'
import type { IdempotencyRecord } from '../../src/tasks/task.repository.js'

export interface TaskRow {
  task: Task
  lockedUntilMs: number
  /** Called for while a poll was under way: the next one must not be put off. */
  isHastened: boolean
}

export interface DeliveryRow {
  delivery: CallbackDelivery
  lockedUntilMs: number
}

export interface IdempotencyRow {
  readonly taskId: string
  readonly expiresAtMs: number
  record: IdempotencyRecord
}

/** Everything both repositories keep. */
export class MemoryStore {
  /** In order of creation. */
  readonly tasks = new Map<string, TaskRow>()
  readonly deliveries = new Map<string, DeliveryRow>()
  readonly keys = new Map<string, IdempotencyRow>()
  readonly usage = new Map<string, UsageRecord>()
  /** Which task has an upstream's id. */
  readonly upstreamIds = new Map<string, string>()
  isReachable = true
  refusals = 0

  /** As behind a wire: never in the same turn, and refused while the store is away. */
  async work<Result>(work: () => Result): Promise<Result> {
    await Promise.resolve()
    if (!this.isReachable) {
      this.refusals++
      throw new GatewayError('overloaded', 'The store cannot be reached.', { retryAfterSeconds: 1 })
    }
    return work()
  }
}

/** The outbox in memory. */
export class MemoryCallbackRepository extends CallbackRepository {
  constructor(private readonly store: MemoryStore) {
    super()
  }

  claimDue({
    nowMs,
    lockedUntilMs,
    limit,
    exceptHosts,
    exceptOwners,
    exceptBearers,
  }: CallbackClaim): Promise<readonly CallbackDelivery[]> {
    return this.store.work(() => {
      const due = [...this.store.deliveries.values()].filter(
        ({ delivery, lockedUntilMs: lockedMs }) =>
          (delivery.nextAttemptAtMs ?? Infinity) <= nowMs &&
          lockedMs <= nowMs &&
          !exceptHosts.includes(hostOf(delivery.url)) &&
          !exceptOwners.includes(delivery.ownerId) &&
          !(exceptBearers && isOwnBearer(delivery.ownerId)),
      )
      due.sort((a, b) => (a.delivery.nextAttemptAtMs ?? 0) - (b.delivery.nextAttemptAtMs ?? 0))
      return due.slice(0, limit).map((row) => {
        row.lockedUntilMs = lockedUntilMs
        return row.delivery
      })
    })
  }

  bringForward({ attemptAtMs, askedAtMs, lockedUntilMs, createdAtMs }: LatestCallbackTimes): Promise<void> {
    return this.store.work(() => {
      for (const row of this.store.deliveries.values()) {
        const { attempts, nextAttemptAtMs } = row.delivery
        if (nextAttemptAtMs === undefined) continue
        const scheduledMs = attemptAtMs[Math.min(attempts, attemptAtMs.length - 1)] ?? Infinity
        const isStrict = attempts === 0 || row.delivery.createdAtMs > createdAtMs
        const latestMs = isStrict ? scheduledMs : Math.max(scheduledMs, askedAtMs)
        if (nextAttemptAtMs > latestMs || row.lockedUntilMs > lockedUntilMs)
          row.delivery = { ...row.delivery, nextAttemptAtMs: Math.min(nextAttemptAtMs, scheduledMs) }
        row.lockedUntilMs = Math.min(row.lockedUntilMs, lockedUntilMs)
      }
    })
  }

  nextDueAtMs(): Promise<number | undefined> {
    return this.store.work(() => {
      const times = [...this.store.deliveries.values()].flatMap(({ delivery: { nextAttemptAtMs }, lockedUntilMs }) =>
        nextAttemptAtMs === undefined ? [] : [Math.max(nextAttemptAtMs, lockedUntilMs)],
      )
      return times.length === 0 ? undefined : Math.min(...times)
    })
  }

  recordOutcome(webhookId: string, outcome: CallbackOutcome): Promise<void> {
    return this.store.work(() => {
      const row = this.store.deliveries.get(webhookId)
      if (row?.delivery.nextAttemptAtMs === undefined) return
      const { createdAtMs, attempts } = row.delivery
      const kept = { webhookId, ...fixedFields(row.delivery), createdAtMs }
      row.delivery = { ...kept, attempts: attempts + 1, ...settledFields(outcome) }
      row.lockedUntilMs = 0
    })
  }

  ofTask(ownerId: string, taskId: string): Promise<readonly CallbackDelivery[]> {
    return this.store.work(() =>
      [...this.store.deliveries.values()]
        .map(({ delivery }) => delivery)
        .filter((delivery) => delivery.ownerId === ownerId && delivery.taskId === taskId)
        .sort((a, b) => a.createdAtMs - b.createdAtMs),
    )
  }

  redeliver(ownerId: string, webhookId: string, nowMs: number): Promise<boolean> {
    return this.store.work(() => {
      const row = this.store.deliveries.get(webhookId)
      if (row?.delivery.ownerId !== ownerId) return false
      const { createdAtMs } = row.delivery
      row.delivery = { webhookId, ...fixedFields(row.delivery), createdAtMs, attempts: 0, nextAttemptAtMs: nowMs }
      return true
    })
  }

  countOpen(): Promise<{ readonly waiting: number; readonly exhausted: number }> {
    return this.store.work(() => {
      const all = [...this.store.deliveries.values()].map(({ delivery }) => delivery)
      return {
        waiting: all.filter(({ nextAttemptAtMs }) => nextAttemptAtMs !== undefined).length,
        exhausted: all.filter(({ exhaustedAtMs }) => exhaustedAtMs !== undefined).length,
      }
    })
  }
}

const fixedFields = ({ taskId, ownerId, url, body }: CallbackDelivery) => ({ taskId, ownerId, url, body })

function settledFields(outcome: CallbackOutcome): Partial<CallbackDelivery> {
  if (outcome.outcome === 'delivered') return { deliveredAtMs: outcome.atMs }
  if (outcome.outcome === 'retry') return { nextAttemptAtMs: outcome.nextAttemptAtMs, lastError: outcome.error }
  return { exhaustedAtMs: outcome.atMs, lastError: outcome.error }
}
