/** One event on its way to a caller. Times are Unix milliseconds. */
export interface CallbackDelivery {
  /** Stable over all attempts: receivers tell repeats by it. */
  readonly webhookId: string
  readonly taskId: string
  readonly ownerId: string
  readonly url: string
  /** Exactly these bytes are signed and sent, each time. */
  readonly body: string
  /** Attempts made so far. */
  readonly attempts: number
  readonly createdAtMs: number
  /** Absent once delivered or exhausted. */
  readonly nextAttemptAtMs?: number
  readonly deliveredAtMs?: number
  readonly exhaustedAtMs?: number
  /** Our words, without addresses. */
  readonly lastError?: string
}

export interface CallbackClaim {
  readonly nowMs: number
  readonly lockedUntilMs: number
  readonly limit: number
  /** Hosts (`URL.host`) that have as many deliveries under way as they may. */
  readonly exceptHosts: readonly string[]
}

export type CallbackOutcome =
  | { readonly outcome: 'delivered'; readonly atMs: number }
  | { readonly outcome: 'retry'; readonly nextAttemptAtMs: number; readonly error: string }
  | { readonly outcome: 'exhausted'; readonly atMs: number; readonly error: string }

/**
 * The outbox of events; also the injection token. Rows are written by `TaskRepository.change`, in its transaction. All
 * methods reject with `GatewayError('overloaded')` while the database cannot be reached.
 */
export abstract class CallbackRepository {
  /** Takes deliveries that are due and that nobody works on, oldest first (FOR UPDATE SKIP LOCKED). */
  abstract claimDue(claim: CallbackClaim): Promise<readonly CallbackDelivery[]>
  abstract nextDueAtMs(): Promise<number | undefined>
  /** Counts the attempt, notes how it ended and frees the lease. */
  abstract settle(webhookId: string, outcome: CallbackOutcome): Promise<void>
  /** The owner's deliveries of one task, oldest first. */
  abstract ofTask(ownerId: string, taskId: string): Promise<readonly CallbackDelivery[]>
  /** Starts the schedule anew for one of the owner's deliveries, whatever became of it; false when there is none. */
  abstract redeliver(ownerId: string, webhookId: string, nowMs: number): Promise<boolean>
  abstract countOpen(): Promise<{ readonly waiting: number; readonly exhausted: number }>
}
