import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'
import { ownerOf } from '../core/owner.js'
import type { Call } from '../core/request-context.js'
import { successEnvelope } from '../dialects/task-answer.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import type { UpstreamVideoTask } from '../providers/video.contract.js'
import { CallbackAddress } from './callback-address.js'
import { newCallbackToken, newTaskId, upstreamExternalId } from './external-ids.js'
import { IdempotentReplays } from './idempotent-replays.js'
import { PendingCreate } from './pending-create.js'
import { PollAlarm } from './poll-alarm.js'
import { TaskRecorder } from './record-task.js'
import { type Draft, TaskIntents } from './task-intents.js'
import { TaskTerms } from './task-terms.js'
import { isTerminal, type Task } from './task.js'
import type { IdempotencyClaim } from './task.repository.js'
import type { CreateAnswer, TaskOrder } from './tasks.js'
import { outcomeUnknown, seenChange } from './transitions.js'

const IDEMPOTENCY_KEPT_MS = 86_400_000

/**
 * Makes tasks: intent first, upstream second, outcome last, so that at every instant the store knows of each task that may
 * exist. A create is sent once; where its answer is lost it is looked for, never sent again.
 */
@Injectable()
export class TaskCreation {
  private readonly running = new Set<Promise<CreateAnswer>>()

  constructor(
    private readonly intents: TaskIntents,
    private readonly replays: IdempotentReplays,
    private readonly recorder: TaskRecorder,
    private readonly terms: TaskTerms,
    private readonly store: ConfigStore,
    private readonly alarm: PollAlarm,
    private readonly address: CallbackAddress,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** See `Tasks.create`. */
  async create(order: TaskOrder, call: Call): Promise<CreateAnswer> {
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

  private async run(order: TaskOrder, call: Call): Promise<CreateAnswer> {
    const draft = draftOf(order, call, this.terms.for(call).nowMs)
    const before = draft.claim && (await this.replays.find(draft.claim))
    if (before !== undefined) return before
    if (order.callbackUrl !== undefined) await this.address.assertAllowed(order.callbackUrl)
    const pending = new PendingCreate(order, draft, call, this.intents, this.callbackUrl(draft.fields.callbackToken))
    let upstream: UpstreamVideoTask
    try {
      upstream = await order.route.attempt(call, { repeatableOnceSent: false }, pending.attempt)
    } catch (error) {
      throw await this.giveUp(pending, error, call)
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
    call: Call,
  ): Promise<CreateAnswer> {
    const terms = this.terms.for(call)
    // The caller hears of it now; only an end is worth saying twice, as nothing else follows it.
    const change = seenChange(task, upstream, terms, { announced: isTerminal(upstream.status) })
    try {
      const recorded = await this.recorder.record(task, { ...change, from: ['creating', 'unknown'] })
      this.alarm.ring(change.nextPollAtMs)
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
  private async giveUp({ task, doubt }: PendingCreate, error: unknown, call: Call): Promise<unknown> {
    if (task === undefined) return error
    if (doubt === undefined) {
      await this.intents.drop(task)
      return error
    }
    const terms = this.terms.for(call)
    try {
      await this.recorder.record(task, outcomeUnknown(terms.nowMs, terms))
      this.alarm.ring(terms.nowMs)
    } catch (failure) {
      // Still `creating`: found again when its lease has run out.
      this.logger.warn({ task: task.id, err: failure }, 'the outcome of a create could not be recorded')
    }
    return doubt instanceof GatewayError
      ? new GatewayError(doubt.kind, doubt.message, { ...doubt.details, retryable: false })
      : doubt
  }
}

function draftOf(order: TaskOrder, call: Call, nowMs: number): Draft {
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
  { idempotencyKey: key, fingerprint }: TaskOrder,
  ownerId: string,
  route: string,
  nowMs: number,
): IdempotencyClaim | undefined {
  if (key === undefined) return undefined
  return { ownerId, route, key, fingerprint, claimedAtMs: nowMs, expiresAtMs: nowMs + IDEMPOTENCY_KEPT_MS }
}
