/** One event on its way to a caller. Times are Unix milliseconds. */
export interface CallbackDelivery {
  /** The same for all attempts: receivers detect duplicates by it. */
  readonly webhookId: string
  readonly taskId: string
  readonly ownerId: string
  readonly url: string
  /** Exactly these bytes are signed and sent, each time. */
  readonly body: string
  readonly attempts: number
  readonly createdAtMs: number
  /** Absent once delivered or exhausted. */
  readonly nextAttemptAtMs?: number
  readonly deliveredAtMs?: number
  readonly exhaustedAtMs?: number
  /** The gateway's own words, without addresses. */
  readonly lastError?: string
}

export interface CallbackClaim {
  readonly nowMs: number
  readonly lockedUntilMs: number
  readonly limit: number
  /** Hosts (`URL.host`) whose queues are full. */
  readonly exceptHosts: readonly string[]
  /** Owners that hold their share. */
  readonly exceptOwners: readonly string[]
  /** Callers with bearers of their own hold the share of all of them. */
  readonly exceptBearers: boolean
}

/** The latest times that can have been planned (Unix milliseconds). */
export interface LatestCallbackTimes {
  /** By the schedule, for each number of attempts made; the last one holds for more. */
  readonly attemptAtMs: readonly number[]
  /** After a first attempt, as receivers may ask for it. */
  readonly askedAtMs: number
  readonly lockedUntilMs: number
  /** A row made later than this is one of a clock that was set back since: the schedule alone holds. */
  readonly createdAtMs: number
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
  /** Leases due deliveries that are not leased, oldest first (FOR UPDATE SKIP LOCKED). */
  abstract claimDue(claim: CallbackClaim): Promise<readonly CallbackDelivery[]>
  abstract nextDueAtMs(): Promise<number | undefined>
  /** Brings later times of open deliveries forward to these: they were planned by a clock that was set back since. */
  abstract bringForward(latest: LatestCallbackTimes): Promise<void>
  /** Counts the attempt, records its outcome and frees the lease. */
  abstract recordOutcome(webhookId: string, outcome: CallbackOutcome): Promise<void>
  /** The owner's deliveries of one task, oldest first. */
  abstract ofTask(ownerId: string, taskId: string): Promise<readonly CallbackDelivery[]>
  /** Restarts the schedule of one of the owner's deliveries, in whatever state; false when there is none. */
  abstract redeliver(ownerId: string, webhookId: string, nowMs: number): Promise<boolean>
  abstract countOpen(): Promise<{ readonly waiting: number; readonly exhausted: number }>
}
