import { Inject, Injectable } from '@nestjs/common'
import { type Caller, ownerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import type { VideoKind } from '../providers/contract.js'
import { CallbackSender } from './callback-sender.js'
import { TaskCreation } from './create-task.js'
import { type CallbackQueue, TaskRefresher, TaskWatchers } from './task-updates.js'
import { isTerminal, isUnconfirmed, isUpstreamExternalId, type Task } from './task.js'
import { type CallbackDelivery, CallbackRepository } from './callback.repository.js'
import { type TaskPage, TaskRepository } from './task.repository.js'
import { type CreateTaskResponse, type CreateTaskRequest, Tasks } from './contract.js'
import { Clock } from './background-work.js'

/** A task's upstream is polled at most once in this time, however often callers read the task. */
const PAUSE_MS = 1000

/** Remembers which tasks this process refreshed a moment ago. */
@Injectable()
export class RefreshThrottle {
  /** By time: the first is the oldest. */
  private readonly refreshedAtMs = new Map<string, number>()

  constructor(private readonly clock: Clock) {}

  /** Whether a task may be refreshed now; true counts as a refresh. */
  enter(taskId: string): boolean {
    const nowMs = this.clock.nowMs()
    this.forgetBefore(nowMs - PAUSE_MS)
    if (this.refreshedAtMs.has(taskId)) return false
    this.refreshedAtMs.set(taskId, nowMs)
    return true
  }

  private forgetBefore(timeMs: number): void {
    for (const [taskId, atMs] of this.refreshedAtMs) {
      if (atMs > timeMs) return
      this.refreshedAtMs.delete(taskId)
    }
  }
}

/** By then a lost create has been searched for again. */
const UNCONFIRMED_RETRY_SECONDS = 5

/** Durable tasks for callers. The background work is done by `TaskCreation` and `TaskPoller`. */
@Injectable()
export class TaskService extends Tasks {
  constructor(
    private readonly tasks: TaskRepository,
    private readonly callbacks: CallbackRepository,
    private readonly creation: TaskCreation,
    private readonly refresh: TaskRefresher,
    private readonly throttle: RefreshThrottle,
    private readonly watchers: TaskWatchers,
    private readonly clock: Clock,
    @Inject(CallbackSender) private readonly sender: CallbackQueue,
  ) {
    super()
  }

  create(request: CreateTaskRequest, call: RequestContext): Promise<CreateTaskResponse> {
    return this.creation.create(request, call)
  }

  async find(kind: VideoKind, id: string, call: RequestContext): Promise<Task | undefined> {
    const stored = await this.tasks.find(ownerOf(call.caller), kind, id)
    if (stored === undefined) {
      // Requested from its upstream, another owner's task would be shown.
      if (isUpstreamExternalId(id) || (await this.tasks.isKnown(kind, id))) throw notFound('There is no such task.')
      return undefined
    }
    const task = await this.refreshed(stored, call)
    if (task === undefined || isUnconfirmed(task.state)) throw unconfirmed()
    return task
  }

  list(kind: VideoKind, page: TaskPage, caller: Caller): Promise<readonly Task[]> {
    return this.tasks.list(ownerOf(caller), kind, page)
  }

  watch(task: Task, call: RequestContext, stop: AbortSignal, onChange: (task: Task) => void): Promise<void> {
    return this.watchers.watch(task, stop, () => this.current(task.id, call), onChange)
  }

  deliveries(task: Task): Promise<readonly CallbackDelivery[]> {
    return this.callbacks.ofTask(task.ownerId, task.id)
  }

  async redeliver(webhookId: string, caller: Caller): Promise<boolean> {
    const isThere = await this.callbacks.redeliver(ownerOf(caller), webhookId, this.clock.nowMs())
    if (isThere) this.sender.wake()
    return isThere
  }

  /** A task created with a caller's own upstream key changes only when that caller reads it: the poller has no key. */
  private async current(taskId: string, call: RequestContext): Promise<Task | undefined> {
    const task = await this.tasks.byId(taskId)
    return task === undefined || call.caller.bearer === undefined ? task : await this.refreshed(task, call)
  }

  /**
   * The task as its upstream shows it; as stored when it was polled a moment ago, when the poll fails, or when it has ended.
   */
  private async refreshed(task: Task, call: RequestContext): Promise<Task | undefined> {
    if (isTerminal(task.state) || !this.throttle.enter(task.id)) return task
    const result = await this.refresh.poll(task, call)
    // All other results are left to the poller, which holds a lease.
    if (result.kind !== 'seen') return task
    const { task: refreshed } = await this.refresh.settle(task, result, call)
    return refreshed ?? (await this.tasks.byId(task.id))
  }
}

const notFound = (message: string): GatewayError => new GatewayError('not_found', message)

const unconfirmed = (): GatewayError =>
  new GatewayError('not_found', 'There is no such task yet: its create has not been confirmed.', {
    retryAfterSeconds: UNCONFIRMED_RETRY_SECONDS,
    retryable: true,
  })
