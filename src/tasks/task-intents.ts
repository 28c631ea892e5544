import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'
import type { CallContext } from '../providers/call-context.js'
import { IdempotentReplays } from './idempotent-replays.js'
import type { Task } from './task.js'
import { type IdempotencyClaim, type IntentOutcome, type NewTask, TaskRepository } from './task.repository.js'

/** Added to the time an upstream call may take: for writing down what came of it. */
const LEASE_MARGIN_MS = 30_000

/** What is known of a task before any channel is. */
export interface Draft {
  readonly fields: Omit<NewTask, 'channelId' | 'lockedUntilMs' | 'deadlineAtMs' | 'idempotency'>
  readonly claim: IdempotencyClaim | undefined
}

type Refusal = Exclude<IntentOutcome, { readonly outcome: 'recorded' }>

/** Writes down what is about to be asked of an upstream, before it is asked. */
@Injectable()
export class TaskIntents {
  constructor(
    private readonly tasks: TaskRepository,
    private readonly replays: IdempotentReplays,
    private readonly store: ConfigStore,
  ) {}

  /** Records the intent for its first channel. Rejects with what speaks against it: nothing has been sent yet. */
  async record({ fields, claim }: Draft, { channelId, target }: CallContext): Promise<Task> {
    const { createdAtMs } = fields
    // A process that dies in between leaves the task to the poller when the time of its create is up.
    const lockedUntilMs = createdAtMs + target.timeouts.totalMs + LEASE_MARGIN_MS
    const deadlineAtMs = lockedUntilMs + this.store.current.tasks.reconcileMs
    const task = { ...fields, channelId, deadlineAtMs }
    const idempotency = claim === undefined ? {} : { idempotency: claim }
    const outcome = await this.tasks.recordIntent({ ...task, lockedUntilMs, ...idempotency })
    if (outcome.outcome !== 'recorded') throw await this.refusal(outcome, claim)
    const times = { updatedAtMs: createdAtMs, nextPollAtMs: lockedUntilMs }
    return { ...task, ...times, state: 'creating', polls: 0, misses: 0 }
  }

  /** Records that another channel is asked now, the one before having refused. */
  async move(task: Task, { channelId }: CallContext): Promise<Task> {
    await this.tasks.assignChannel(task.id, channelId)
    return { ...task, channelId }
  }

  /** Forgets a create that made no task. Never rejects: what cannot be forgotten now is looked for, and ended, later. */
  async drop(task: Task): Promise<void> {
    await this.tasks.dropIntent(task.id).catch(() => undefined)
  }

  private async refusal(outcome: Refusal, claim: IdempotencyClaim | undefined): Promise<GatewayError> {
    const record =
      outcome.outcome === 'idempotency_key_taken'
        ? outcome.record
        : // The same request sent twice at once fails on whichever of its two ids is compared first.
          claim && (await this.tasks.findIdempotency(claim))
    if (claim !== undefined && record !== undefined) return this.replays.refusal(record, claim)
    return new GatewayError('conflict', "The 'external_task_id' is in use by another of your tasks.", {
      param: 'external_task_id',
      code: 'external_task_id_in_use',
    })
  }
}
