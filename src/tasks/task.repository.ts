import type { UsageRecord } from '../core/usage-record.js'
import type { VideoKind } from '../providers/contract.js'
import type { Task, TaskState } from './task.js'

/** A task before its create is sent. */
export interface NewTask extends Omit<
  Task,
  'state' | 'upstreamTaskId' | 'object' | 'polls' | 'misses' | 'updatedAtMs' | 'nextPollAtMs'
> {
  /** Until then only the creating process works on it; afterwards the poller takes it over. */
  readonly lockedUntilMs: number
  readonly idempotency?: IdempotencyClaim
}

export interface IdempotencyClaim {
  readonly ownerId: string
  readonly route: string
  readonly key: string
  /** SHA-256 of the body, hex. */
  readonly fingerprint: string
  /** Time of the create: a key that had expired by then is free. */
  readonly claimedAtMs: number
  readonly expiresAtMs: number
}

/** The stored create of an idempotency key. */
export type IdempotencyRecord =
  | { readonly state: 'running'; readonly fingerprint: string; readonly taskId: string }
  | { readonly state: 'done'; readonly fingerprint: string; readonly status: number; readonly body: string }

export type IntentOutcome =
  | { readonly outcome: 'recorded' }
  | { readonly outcome: 'external_id_taken' }
  | { readonly outcome: 'idempotency_key_taken'; readonly record: IdempotencyRecord }

export type IntentConflict = Exclude<IntentOutcome, { readonly outcome: 'recorded' }>

/** A change of a task; applied only while the task is still in one of `from`. */
export interface TaskChange {
  readonly from: readonly TaskState[]
  readonly state: TaskState
  readonly upstreamTaskId?: string
  readonly object?: string
  readonly nextPollAtMs: number
  readonly polls: number
  readonly misses: number
  readonly updatedAtMs: number
  readonly deadlineAtMs: number
  /** An event for the caller, written in the same transaction. */
  readonly event?: { readonly webhookId: string; readonly body: string; readonly nextAttemptAtMs: number }
  /** The stored response of the create, for repeats under the same idempotency key. */
  readonly answer?: { readonly status: number; readonly body: string }
  /** Usage of an ended task: written in the same transaction, unless a record of that id exists already. */
  readonly usage?: UsageRecord
}

/** A poll without a change of state. */
export interface Reschedule {
  readonly id: string
  readonly nextPollAtMs: number
  readonly polls: number
  readonly misses: number
  /** A newer object in the same state. */
  readonly object?: string
  readonly updatedAtMs?: number
}

export interface ClaimRequest {
  readonly nowMs: number
  readonly lockedUntilMs: number
  readonly limit: number
  /** Channels whose queues are full. */
  readonly exceptChannels: readonly string[]
}

/** The latest times that can have been planned (Unix milliseconds). */
export interface LatestTimes {
  readonly pollAtMs: number
  /** Of a lease for polling. */
  readonly lockedUntilMs: number
  /** Of a create in progress. */
  readonly createLockedUntilMs: number
}

export interface TaskPage {
  /** From 0. */
  readonly offset: number
  readonly limit: number
}

/**
 * Tasks as the store keeps them; also the injection token. All methods reject with `GatewayError('overloaded')` while the
 * database cannot be reached.
 */
export abstract class TaskRepository {
  /** Records the intent, and the idempotency key with it, in one transaction. */
  abstract recordIntent(task: NewTask): Promise<IntentOutcome>
  /** Records the channel of a further attempt, before it is made. */
  abstract assignChannel(id: string, channelId: string): Promise<void>
  /** Deletes a create that made no task, and its idempotency key: both ids are free again. */
  abstract dropIntent(id: string): Promise<void>
  /** Applies a change and frees the lease. False when the task was no longer in one of `from`: nothing was written. */
  abstract change(id: string, change: TaskChange): Promise<boolean>
  /** Frees the leases of tasks that have not changed; one statement for all. */
  abstract reschedule(batch: readonly Reschedule[]): Promise<void>
  /** Leases tasks whose next poll is due and that are not leased, oldest first (FOR UPDATE SKIP LOCKED). */
  abstract claimDue(request: ClaimRequest): Promise<readonly Task[]>
  /** Brings later times of open tasks forward to these: they were planned by a clock that was set back since. */
  abstract bringForward(latest: LatestTimes): Promise<void>
  /** When the next poll is due; undefined without open tasks. */
  abstract nextDueAtMs(): Promise<number | undefined>
  /** By the upstream's id or the owner's external id. */
  abstract find(ownerId: string, kind: VideoKind, id: string): Promise<Task | undefined>
  abstract byId(id: string): Promise<Task | undefined>
  /** Whether any owner has a task under this upstream id or external id. */
  abstract isKnown(kind: VideoKind, id: string): Promise<boolean>
  /** Newest first; without those that have no upstream id yet. */
  abstract list(ownerId: string, kind: VideoKind, page: TaskPage): Promise<readonly Task[]>
  /** Makes the next poll due now; false for an unknown token, or a task that has ended. */
  abstract hasten(callbackToken: string, nowMs: number): Promise<boolean>
  abstract findIdempotency(claim: IdempotencyClaim): Promise<IdempotencyRecord | undefined>
  /** Number of tasks in each state that is not final; cheap, however many have ended. */
  abstract countOpenByState(): Promise<Readonly<Partial<Record<TaskState, number>>>>
  abstract countByState(): Promise<Readonly<Partial<Record<TaskState, number>>>>
  /** Deletes what ended before `beforeMs`, and expired idempotency keys; at most `limit` rows of each. Returns how many. */
  abstract prune(beforeMs: number, nowMs: number, limit: number): Promise<number>
}
