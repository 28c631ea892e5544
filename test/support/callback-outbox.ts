import { EventEmitter, once } from 'node:events'
import type { CallbackClaim, CallbackDelivery, CallbackOutcome } from '../../src/tasks/callback.repository.js'
import { MemoryCallbackRepository } from './memory-callbacks.js'
import { MemoryStore } from './memory-store.js'

/** An outbox in memory of its own; what a sender does with it can be waited for, and made to fail. */
export class CallbackOutbox extends MemoryCallbackRepository {
  /** Each call takes the first of these, and rejects with it. */
  readonly claimFailures: Error[] = []
  readonly settleFailures: Error[] = []
  claims = 0
  private readonly rows: MemoryStore['deliveries']
  private readonly events = new EventEmitter()

  constructor() {
    const store = new MemoryStore()
    super(store)
    this.rows = store.deliveries
  }

  add(row: Pick<CallbackDelivery, 'webhookId' | 'url'> & Partial<CallbackDelivery>): void {
    const delivery = {
      taskId: `task of ${row.webhookId}`,
      ownerId: 'owner',
      body: `{"task_id":"${row.webhookId}"}`,
      attempts: 0,
      createdAtMs: 0,
      nextAttemptAtMs: 0,
      ...row,
    }
    this.rows.set(row.webhookId, { delivery, lockedUntilMs: 0 })
  }

  row(webhookId: string): CallbackDelivery {
    const row = this.rows.get(webhookId)
    if (row === undefined) throw new Error(`no delivery ${webhookId}`)
    return row.delivery
  }

  /** Resolves once the condition holds after an attempt was recorded, or failed to be. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await once(this.events, 'settled')
  }

  /** Resolves at the next claim. */
  async claimed(): Promise<void> {
    await once(this.events, 'claimed')
  }

  override claimDue(claim: CallbackClaim): Promise<readonly CallbackDelivery[]> {
    this.claims++
    setImmediate(() => this.events.emit('claimed'))
    const failure = this.claimFailures.shift()
    return failure === undefined ? super.claimDue(claim) : Promise.reject(failure)
  }

  override settle(webhookId: string, outcome: CallbackOutcome): Promise<void> {
    setImmediate(() => this.events.emit('settled'))
    const failure = this.settleFailures.shift()
    return failure === undefined ? super.settle(webhookId, outcome) : Promise.reject(failure)
  }
}
