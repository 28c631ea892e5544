import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { ownerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { successEnvelope } from '../dialects/task-response.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import type { AttemptContext, UpstreamVideoTask, VideoProvider } from '../providers/contract.js'
import { CallbackAddress } from './callback-request.js'
import { TaskRecorder } from './record-task.js'
import { isTerminal, newCallbackToken, newTaskId, type Task, upstreamExternalId } from './task.js'
import {
  type IdempotencyClaim,
  type IdempotencyRecord,
  type IntentOutcome,
  type NewTask,
  TaskRepository,
} from './task.repository.js'
import type { CreateTaskResponse, TaskIds, CreateTaskRequest } from './tasks.js'
import { outcomeUnknown, seenChange, TransitionSettings } from './transitions.js'
import { PollWakeTimer } from './wake-timer.js'

/** Answers creates that were sent before under the same idempotency key. */
@Injectable()
export class IdempotentReplays {
  constructor(private readonly tasks: TaskRepository) {}

  /** The stored answer; undefined for a key that is new. Rejects with `unprocessable` or `idempotency_running`. */
  async find(claim: IdempotencyClaim): Promise<CreateTaskResponse | undefined> {
    const record = await this.tasks.findIdempotency(claim)
    if (record === undefined) return undefined
    if (record.fingerprint !== claim.fingerprint) throw otherBody()
    // The answer is written with the task's first known state, whoever learns of it: without one there is none yet.
    if (record.state === 'running') throw stillRunning()
    return { status: record.status, body: record.body, replayed: true }
  }

  /** What a create is told that came second by a moment. */
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

/** Added to the time an upstream call may take: for writing down what came of it. */
const LEASE_MARGIN_MS = 30_000

/** What is known of a task before any channel is. */
interface Draft {
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
  async record({ fields, claim }: Draft, { channelId, target }: AttemptContext): Promise<Task> {
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
  async move(task: Task, { channelId }: AttemptContext): Promise<Task> {
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

/** One create on its way through at most two channels: what is recorded of it, and whether it may have been done. */
class PendingCreate {
  /** Set once the intent is recorded. */
  task: Task | undefined
  /** Set by a failure after which nobody knows whether the upstream made a task. */
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
      // Judged here, attempt by attempt: what the route fails with may be an earlier attempt's error.
      if (mayHaveBeenDone(error)) this.uncertain = error
      throw error
    }
  }

  private idsFor({ callersKey }: AttemptContext): TaskIds {
    const externalId = this.draft.fields.upstreamExternalId
    // The poll that the upstream's call would bring forward could not be made without the caller's key.
    if (callersKey || this.upstreamCallbackUrl === undefined) return { externalId }
    return { externalId, callbackUrl: this.upstreamCallbackUrl }
  }

  /** Without the caller's key a task cannot be followed, so that no change of it would ever be noticed. */
  private assertCallback({ callersKey }: AttemptContext): void {
    if (!callersKey || this.request.callbackUrl === undefined) return
    throw new GatewayError('invalid_request', "'callback_url' is not supported with an upstream key of your own.", {
      param: 'callback_url',
      code: 'unsupported_parameter',
    })
  }
}

/** Without an attempt in their details these say nothing about how far it came; every other kind means: not far. */
const UNCERTAIN_KINDS: ReadonlySet<string> = new Set(['caller_left', 'upstream_failed', 'upstream_timeout', 'internal'])

function mayHaveBeenDone(error: unknown): boolean {
  if (!(error instanceof GatewayError)) return true
  const { attempt } = error.details
  return attempt === undefined ? UNCERTAIN_KINDS.has(error.kind) : attempt.phase === 'sent'
}

const IDEMPOTENCY_KEPT_MS = 86_400_000

/**
 * Makes tasks: intent first, upstream second, outcome last, so that at every instant the store knows of each task that may
 * exist. A create is sent once; where its answer is lost it is looked for, never sent again.
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
  async create(order: CreateTaskRequest, call: RequestContext): Promise<CreateTaskResponse> {
    const work = this.run(order, call)
    this.running.add(work)
    try {
      return await work
    } finally {
      this.running.delete(work)
    }
  }

  /** Resolves once no create is under way. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.running)
  }

  private async run(order: CreateTaskRequest, call: RequestContext): Promise<CreateTaskResponse> {
    const draft = draftOf(order, call, this.transitionSettings.for(call).nowMs)
    const before = draft.claim && (await this.replays.find(draft.claim))
    if (before !== undefined) return before
    if (order.callbackUrl !== undefined) await this.address.assertAllowed(order.callbackUrl)
    const pending = new PendingCreate(order, draft, call, this.intents, this.callbackUrl(draft.fields.callbackToken))
    let upstream: UpstreamVideoTask
    try {
      upstream = await order.route.attempt(call, { repeatableOnceSent: false }, pending.attempt)
    } catch (error) {
      throw await this.failCreate(pending, error, call)
    }
    return await this.complete(pending.task as Task, draft.claim, upstream, call)
  }

  /** Where the upstream may announce changes of the task. */
  private callbackUrl(token: string): string | undefined {
    const { publicUrl } = this.store.current.server
    return publicUrl === undefined ? undefined : `${publicUrl.replace(/\/+$/, '')}/vidgen/callbacks/${token}`
  }

  private async complete(
    task: Task,
    claim: IdempotencyClaim | undefined,
    upstream: UpstreamVideoTask,
    call: RequestContext,
  ): Promise<CreateTaskResponse> {
    const terms = this.transitionSettings.for(call)
    // The caller hears of it now; only an end is worth saying twice, as nothing else follows it.
    const change = seenChange(task, upstream, terms, { announced: isTerminal(upstream.status) })
    try {
      const recorded = await this.recorder.record(task, { ...change, from: ['creating', 'unknown'] })
      this.wakeTimer.scheduleAt(change.nextPollAtMs)
      // Found by its external id meanwhile: repeats will get the answer that was stored then, and so does this one.
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

  /** Notes what a failed create leaves behind; resolves with what its caller is told. */
  private async failCreate(
    { task, uncertain: doubt }: PendingCreate,
    error: unknown,
    call: RequestContext,
  ): Promise<unknown> {
    if (task === undefined) return error
    if (doubt === undefined) {
      await this.intents.drop(task)
      return error
    }
    const terms = this.transitionSettings.for(call)
    try {
      await this.recorder.record(task, outcomeUnknown(terms.nowMs, terms))
      this.wakeTimer.scheduleAt(terms.nowMs)
    } catch (failure) {
      // Still `creating`: found again when its lease has run out.
      this.logger.warn({ task: task.id, err: failure }, 'the outcome of a create could not be recorded')
    }
    return doubt instanceof GatewayError
      ? new GatewayError(doubt.kind, doubt.message, { ...doubt.details, retryable: false })
      : doubt
  }
}

function draftOf(order: CreateTaskRequest, call: RequestContext, nowMs: number): Draft {
  const { kind, model, externalTaskId, callbackUrl } = order
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
    claim: claimOf(order, ownerId, call.path, nowMs),
  }
}

function claimOf(
  { idempotencyKey: key, fingerprint }: CreateTaskRequest,
  ownerId: string,
  route: string,
  nowMs: number,
): IdempotencyClaim | undefined {
  if (key === undefined) return undefined
  return { ownerId, route, key, fingerprint, claimedAtMs: nowMs, expiresAtMs: nowMs + IDEMPOTENCY_KEPT_MS }
}
