import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { ownerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { successEnvelope } from '../dialects/task-response.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import type { AttemptContext, UpstreamVideoTask, VideoProvider } from '../providers/contract.js'
import { CallbackAddress } from './callback-attempt.js'
import { TaskRecorder } from './task-updates.js'
import { UPSTREAM_CALLBACK } from './task.endpoints.js'
import { isTerminal, newCallbackToken, newTaskId, type Task, upstreamExternalId } from './task.js'
import {
  type IdempotencyClaim,
  type IdempotencyRecord,
  type IntentConflict,
  type NewTask,
  TaskRepository,
} from './task.repository.js'
import type { CreateTaskResponse, TaskIds, CreateTaskRequest } from './contract.js'
import { outcomeUnknown, seenChange, TransitionSettings } from './transitions.js'
import { PollWakeTimer } from './background-work.js'

/** Replays the stored response of a create with the same idempotency key. */
@Injectable()
export class IdempotentReplays {
  constructor(private readonly tasks: TaskRepository) {}

  /** The stored response; undefined for a new key. Rejects with `unprocessable` or `idempotency_running`. */
  async find(claim: IdempotencyClaim): Promise<CreateTaskResponse | undefined> {
    const record = await this.tasks.findIdempotency(claim)
    if (record === undefined) return undefined
    if (record.fingerprint !== claim.fingerprint) throw otherBody()
    // The response is stored with the task's first known state; before that the create is still running.
    if (record.state === 'running') throw stillRunning()
    return { status: record.status, body: record.body, replayed: true }
  }

  /** The error for the later of two creates that were sent at the same time. */
  refusal(record: IdempotencyRecord, claim: IdempotencyClaim): GatewayError {
    return record.fingerprint === claim.fingerprint ? stillRunning() : otherBody()
  }
}

const otherBody = (): GatewayError =>
  new GatewayError('unprocessable', 'This Idempotency-Key was used before, with another request body.', {
    code: 'idempotency_key_reused',
  })

const stillRunning = (): GatewayError =>
  new GatewayError('idempotency_running', 'The request with this Idempotency-Key is still running.', {
    retryAfterSeconds: 1,
  })

/** Added to the longest upstream call: time to record its outcome. */
const LEASE_MARGIN_MS = 30_000

/** How long only its own process works on a create whose call may take so long. */
export const createLeaseMs = (totalMs: number): number => totalMs + LEASE_MARGIN_MS

/** A task before its channel is selected. */
interface Draft {
  readonly fields: Omit<NewTask, 'channelId' | 'lockedUntilMs' | 'deadlineAtMs' | 'idempotency'>
  readonly claim: IdempotencyClaim | undefined
}

/** Records intents: what is about to be sent to an upstream, before it is sent. */
@Injectable()
export class TaskIntents {
  constructor(
    private readonly tasks: TaskRepository,
    private readonly replays: IdempotentReplays,
    private readonly store: ConfigStore,
  ) {}

  /** Records the intent for its first channel. Rejects when it conflicts: nothing has been sent yet. */
  async record({ fields, claim }: Draft, { channelId, target }: AttemptContext): Promise<Task> {
    const { createdAtMs } = fields
    // If this process dies meanwhile, the poller takes the task over when this lease runs out.
    const lockedUntilMs = createdAtMs + createLeaseMs(target.timeouts.totalMs)
    const deadlineAtMs = lockedUntilMs + this.store.current.tasks.reconcileMs
    const task = { ...fields, channelId, deadlineAtMs }
    const idempotency = claim === undefined ? {} : { idempotency: claim }
    const outcome = await this.tasks.recordIntent({ ...task, lockedUntilMs, ...idempotency })
    if (outcome.outcome !== 'recorded') throw await this.refusal(outcome, claim)
    const times = { updatedAtMs: createdAtMs, nextPollAtMs: lockedUntilMs }
    return { ...task, ...times, state: 'creating', polls: 0, misses: 0 }
  }

  /** Records the next channel, after the previous one has refused. */
  async move(task: Task, { channelId }: AttemptContext): Promise<Task> {
    await this.tasks.assignChannel(task.id, channelId)
    return { ...task, channelId }
  }

  /**
   * Deletes the intent of a create that made no task. Never rejects: one that cannot be deleted now is reconciled by
   * the poller.
   */
  async drop(task: Task): Promise<void> {
    await this.tasks.dropIntent(task.id).catch(() => undefined)
  }

  private async refusal(outcome: IntentConflict, claim: IdempotencyClaim | undefined): Promise<GatewayError> {
    const record =
      outcome.outcome === 'idempotency_key_taken'
        ? outcome.record
        : // Two identical requests at once conflict on whichever of their two ids is compared first.
          claim && (await this.tasks.findIdempotency(claim))
    if (claim !== undefined && record !== undefined) return this.replays.refusal(record, claim)
    return new GatewayError('conflict', "The 'external_task_id' is in use by another of your tasks.", {
      param: 'external_task_id',
      code: 'external_task_id_in_use',
    })
  }
}

/** One create on at most two channels: its recorded task, and whether the upstream may have made one. */
class PendingCreate {
  /** Set once the intent is recorded. */
  task: Task | undefined
  /** Set by an error after which the upstream may have made a task. */
  uncertain: unknown

  constructor(
    private readonly request: CreateTaskRequest,
    private readonly draft: Draft,
    private readonly call: RequestContext,
    private readonly intents: TaskIntents,
    private readonly upstreamCallbackUrl: string | undefined,
  ) {}

  /** One attempt on one channel. Nothing is sent before the intent is recorded for that channel. */
  readonly attempt = async (provider: VideoProvider, context: AttemptContext): Promise<UpstreamVideoTask> => {
    this.assertCallback(context)
    this.task = await (this.task === undefined
      ? this.intents.record(this.draft, context)
      : this.intents.move(this.task, context))
    this.call.assertPresent()
    try {
      return await this.request.send(provider, context, this.idsFor(context))
    } catch (error) {
      // Checked for each attempt: the route may fail with an earlier attempt's error.
      if (mayHaveBeenDone(error)) this.uncertain = error
      throw error
    }
  }

  private idsFor({ callersKey }: AttemptContext): TaskIds {
    const externalId = this.draft.fields.upstreamExternalId
    // Without the caller's key the gateway cannot poll, so that an upstream callback would be useless.
    if (callersKey || this.upstreamCallbackUrl === undefined) return { externalId }
    return { externalId, callbackUrl: this.upstreamCallbackUrl }
  }

  /** With a caller's own key the gateway cannot poll, so that changes for a callback would go unnoticed. */
  private assertCallback({ callersKey }: AttemptContext): void {
    if (!callersKey || this.request.callbackUrl === undefined) return
    throw new GatewayError('invalid_request', "'callback_url' is not supported with an upstream key of your own.", {
      param: 'callback_url',
      code: 'unsupported_parameter',
    })
  }
}

/** Kinds of error that leave the outcome open when their details have no attempt; every other kind means: not sent. */
const UNCERTAIN_KINDS: ReadonlySet<string> = new Set(['caller_left', 'upstream_failed', 'upstream_timeout', 'internal'])

function mayHaveBeenDone(error: unknown): boolean {
  if (!(error instanceof GatewayError)) return true
  const { attempt } = error.details
  return attempt === undefined ? UNCERTAIN_KINDS.has(error.kind) : attempt.phase === 'sent'
}

const IDEMPOTENCY_KEPT_MS = 86_400_000

/**
 * Creates tasks: intent first, upstream second, outcome last, so that the store has every task that may exist. A create
 * is sent once; if its response is lost the task is searched for, never sent again.
 */
@Injectable()
export class TaskCreation {
  private readonly running = new Set<Promise<CreateTaskResponse>>()

  constructor(
    private readonly intents: TaskIntents,
    private readonly replays: IdempotentReplays,
    private readonly recorder: TaskRecorder,
    private readonly transitionSettings: TransitionSettings,
    private readonly store: ConfigStore,
    private readonly wakeTimer: PollWakeTimer,
    private readonly address: CallbackAddress,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** See `Tasks.create`. */
  async create(request: CreateTaskRequest, call: RequestContext): Promise<CreateTaskResponse> {
    const pending = this.run(request, call)
    this.running.add(pending)
    try {
      return await pending
    } finally {
      this.running.delete(pending)
    }
  }

  /** Resolves once no create is under way. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.running)
  }

  private async run(request: CreateTaskRequest, call: RequestContext): Promise<CreateTaskResponse> {
    const draft = draftOf(request, call, this.transitionSettings.for(call).nowMs)
    const replayed = draft.claim && (await this.replays.find(draft.claim))
    if (replayed !== undefined) return replayed
    if (request.callbackUrl !== undefined) await this.address.assertAllowed(request.callbackUrl)
    const pending = new PendingCreate(request, draft, call, this.intents, this.callbackUrl(draft.fields.callbackToken))
    let upstream: UpstreamVideoTask
    try {
      upstream = await request.route.attempt(call, { canRetryAfterSend: false }, pending.attempt)
    } catch (error) {
      throw await this.failCreate(pending, error, call)
    }
    return await this.complete(pending.task as Task, draft.claim, upstream, call)
  }

  /** URL for the upstream's own callbacks. */
  private callbackUrl(token: string): string | undefined {
    const { publicUrl } = this.store.current.server
    return publicUrl === undefined
      ? undefined
      : `${publicUrl.replace(/\/+$/, '')}${UPSTREAM_CALLBACK.path.replace(':token', token)}`
  }

  private async complete(
    task: Task,
    claim: IdempotencyClaim | undefined,
    upstream: UpstreamVideoTask,
    call: RequestContext,
  ): Promise<CreateTaskResponse> {
    const settings = this.transitionSettings.for(call)
    // The response itself reports the new state; only a final state gets an event too, as no other follows.
    const change = seenChange(task, upstream, settings, { hasEvent: isTerminal(upstream.status) })
    try {
      const recorded = await this.recorder.record(task, { ...change, from: ['creating', 'unknown'] })
      this.wakeTimer.scheduleAt(change.nextPollAtMs)
      // The poller has found the task meanwhile: repeats get the response stored then, and so does this request.
      const stored = recorded === undefined && claim !== undefined ? await this.replays.find(claim) : undefined
      if (stored !== undefined) return { ...stored, replayed: false }
    } catch (cause) {
      if (!(cause instanceof GatewayError) || cause.kind !== 'overloaded') throw cause
      throw new GatewayError('overloaded', 'The task was made but not recorded yet; it will be found again.', {
        retryable: false,
        cause,
      })
    }
    return { status: 200, body: successEnvelope(call.requestId, change.object ?? upstream.object), replayed: false }
  }

  /** Records the outcome of a failed create; resolves with the error for its caller. */
  private async failCreate({ task, uncertain }: PendingCreate, error: unknown, call: RequestContext): Promise<unknown> {
    if (task === undefined) return error
    if (uncertain === undefined) {
      await this.intents.drop(task)
      return error
    }
    const settings = this.transitionSettings.for(call)
    try {
      await this.recorder.record(task, outcomeUnknown(settings.nowMs, settings))
      this.wakeTimer.scheduleAt(settings.nowMs)
    } catch (failure) {
      // Still `creating`: reconciled when its lease runs out.
      this.logger.warn({ task: task.id, err: failure }, 'the outcome of a create could not be recorded')
    }
    return uncertain instanceof GatewayError
      ? new GatewayError(uncertain.kind, uncertain.message, { ...uncertain.details, retryable: false })
      : uncertain
  }
}

function draftOf(request: CreateTaskRequest, call: RequestContext, nowMs: number): Draft {
  const { kind, model, externalTaskId, callbackUrl, idempotencyKey: key, fingerprint } = request
  const id = newTaskId()
  const ownerId = ownerOf(call.caller)
  return {
    fields: {
      id,
      kind,
      ownerId,
      model,
      upstreamExternalId: upstreamExternalId(ownerId, externalTaskId, id),
      callbackToken: newCallbackToken(),
      createdAtMs: nowMs,
      ...(externalTaskId === undefined ? {} : { externalTaskId }),
      ...(callbackUrl === undefined ? {} : { callbackUrl }),
    },
    claim:
      key === undefined
        ? undefined
        : { ownerId, route: call.path, key, fingerprint, claimedAtMs: nowMs, expiresAtMs: nowMs + IDEMPOTENCY_KEPT_MS },
  }
}
