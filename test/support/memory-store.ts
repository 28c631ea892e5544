import { GatewayError } from '../../src/core/gateway-error.js'
import type { UsageRecord } from '../../src/core/usage-record.js'
import type { CallbackDelivery } from '../../src/tasks/callback.repository.js'
import type { Task } from '../../src/tasks/task.js'
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
