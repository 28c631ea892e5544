import { hostOf } from '../../src/tasks/callback-host.js'
import {
  type CallbackClaim,
  type CallbackDelivery,
  type CallbackOutcome,
  CallbackRepository,
} from '../../src/tasks/callback.repository.js'
import type { MemoryStore } from './memory-store.js'

/** The outbox in memory. */
export class MemoryCallbackRepository extends CallbackRepository {
  constructor(private readonly store: MemoryStore) {
    super()
  }

  claimDue({ nowMs, lockedUntilMs, limit, exceptHosts }: CallbackClaim): Promise<readonly CallbackDelivery[]> {
    return this.store.work(() => {
      const due = [...this.store.deliveries.values()].filter(
        ({ delivery, lockedUntilMs: lockedMs }) =>
          (delivery.nextAttemptAtMs ?? Infinity) <= nowMs &&
          lockedMs <= nowMs &&
          !exceptHosts.includes(hostOf(delivery.url)),
      )
      due.sort((a, b) => (a.delivery.nextAttemptAtMs ?? 0) - (b.delivery.nextAttemptAtMs ?? 0))
      return due.slice(0, limit).map((row) => {
        row.lockedUntilMs = lockedUntilMs
        return row.delivery
      })
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

  settle(webhookId: string, outcome: CallbackOutcome): Promise<void> {
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
