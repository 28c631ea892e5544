import { EventEmitter, once } from 'node:events'
import {
  type CallbackClaim,
  type CallbackDelivery,
  type CallbackOutcome,
  CallbackRepository,
} from '../../src/tasks/callback.repository.js'

interface Row extends CallbackDelivery {
  readonly lockedUntilMs: number
}

/** The outbox in memory, with the leases of the real one; what a sender does with it can be waited for, and made to fail. */
export class CallbackOutbox extends CallbackRepository {
  /** Each call takes the first of these, and rejects with it. */
  readonly claimFailures: Error[] = []
  readonly settleFailures: Error[] = []
  claims = 0
  private readonly rows = new Map<string, Row>()
  private readonly events = new EventEmitter()

  add(row: Pick<CallbackDelivery, 'webhookId' | 'url'> & Partial<CallbackDelivery>): void {
    this.rows.set(row.webhookId, {
      taskId: `task of ${row.webhookId}`,
      ownerId: 'owner',
      body: `{"task_id":"${row.webhookId}"}`,
      attempts: 0,
      createdAtMs: 0,
      nextAttemptAtMs: 0,
      lockedUntilMs: 0,
      ...row,
    })
  }

  row(webhookId: string): CallbackDelivery {
    const row = this.rows.get(webhookId)
    if (row === undefined) throw new Error(`no delivery ${webhookId}`)
    return row
  }

  /** Resolves once the condition holds after an attempt was recorded, or failed to be. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await once(this.events, 'settled')
  }

  /** Resolves at the next claim. */
  async claimed(): Promise<void> {
    await once(this.events, 'claimed')
  }

  claimDue({ nowMs, lockedUntilMs, limit, exceptHosts }: CallbackClaim): Promise<readonly CallbackDelivery[]> {
    this.claims++
    setImmediate(() => this.events.emit('claimed'))
    const failure = this.claimFailures.shift()
    if (failure !== undefined) return Promise.reject(failure)
    const due = this.open()
      .filter((row) => (row.nextAttemptAtMs ?? Infinity) <= nowMs && row.lockedUntilMs <= nowMs)
      .filter(({ url }) => !URL.canParse(url) || !exceptHosts.includes(new URL(url).host))
      .slice(0, limit)
    for (const row of due) this.rows.set(row.webhookId, { ...row, lockedUntilMs })
    return Promise.resolve(due)
  }

  nextDueAtMs(): Promise<number | undefined> {
    const times = this.open().map(({ nextAttemptAtMs = 0, lockedUntilMs }) => Math.max(nextAttemptAtMs, lockedUntilMs))
    return Promise.resolve(times.length === 0 ? undefined : Math.min(...times))
  }

  settle(webhookId: string, outcome: CallbackOutcome): Promise<void> {
    setImmediate(() => this.events.emit('settled'))
    const failure = this.settleFailures.shift()
    if (failure !== undefined) return Promise.reject(failure)
    const row = this.row(webhookId)
    this.rows.set(webhookId, { ...event(row), attempts: row.attempts + 1, ...settled(outcome) })
    return Promise.resolve()
  }

  ofTask(ownerId: string, taskId: string): Promise<readonly CallbackDelivery[]> {
    return Promise.resolve([...this.rows.values()].filter((row) => row.ownerId === ownerId && row.taskId === taskId))
  }

  redeliver(ownerId: string, webhookId: string, nowMs: number): Promise<boolean> {
    const row = this.rows.get(webhookId)
    if (row?.ownerId !== ownerId) return Promise.resolve(false)
    this.rows.set(webhookId, { ...event(row), nextAttemptAtMs: nowMs })
    return Promise.resolve(true)
  }

  countOpen(): Promise<{ waiting: number; exhausted: number }> {
    const exhausted = [...this.rows.values()].filter(({ exhaustedAtMs }) => exhaustedAtMs !== undefined).length
    return Promise.resolve({ waiting: this.open().length, exhausted })
  }

  private open(): Row[] {
    return [...this.rows.values()].filter(({ nextAttemptAtMs }) => nextAttemptAtMs !== undefined)
  }
}

/** What never changes of a delivery, as if nothing had been tried. */
const event = ({ webhookId, taskId, ownerId, url, body, createdAtMs }: CallbackDelivery): Row => ({
  ...{ webhookId, taskId, ownerId, url, body, createdAtMs },
  attempts: 0,
  lockedUntilMs: 0,
})

function settled(outcome: CallbackOutcome): Partial<CallbackDelivery> {
  if (outcome.outcome === 'delivered') return { deliveredAtMs: outcome.atMs }
  if (outcome.outcome === 'retry') return { nextAttemptAtMs: outcome.nextAttemptAtMs, lastError: outcome.error }
  return { exhaustedAtMs: outcome.atMs, lastError: outcome.error }
}
