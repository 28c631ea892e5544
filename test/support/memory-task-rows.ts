import { GatewayError } from '../../src/core/gateway-error.js'
import type { Task } from '../../src/tasks/task.js'
import type { IdempotencyClaim, IdempotencyRecord, TaskChange } from '../../src/tasks/task.repository.js'
import type { MemoryStore, TaskRow } from './memory-store.js'

/** Two tasks of one channel cannot have one id. */
const sharedUpstreamId = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream answered with the id of another task.', { retryable: false })

const keyOf = ({ ownerId, route, key }: IdempotencyClaim): string => JSON.stringify([ownerId, route, key])

/** The rows of tasks in a store in memory, and those of other tables that go with them. */
export class MemoryTaskRows {
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
