import { Inject, Injectable, Optional } from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import type { RequestContext, Units } from '../core/request-context.js'
import { type EndedTask, UsageRecorder } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { ProviderRouter } from '../routing/router.js'
import { withTimeout } from './background-work.js'
import { CallbackSender } from './callback-sender.js'
import { isTerminal, type Task } from './task.js'
import { videoTaskPath } from './task.endpoints.js'
import { type Reschedule, type TaskChange, TaskRepository } from './task.repository.js'
import { changed, nextTransition, type PollResult, type TaskTransition, TransitionSettings } from './transitions.js'

/** Interval of reads for changes made by other replicas. */
const REREAD_MS = 2000

type ReadTask = () => Promise<Task | undefined>

/** Watches single tasks: notified of changes by this process, and by polling the store for those of other replicas. */
@Injectable()
export class TaskWatchers {
  private readonly listeners = new Map<string, Set<() => void>>()

  /** The interval is set by tests only. */
  constructor(@Optional() private readonly rereadMs: number = REREAD_MS) {}

  notify(taskId: string): void {
    for (const listener of [...(this.listeners.get(taskId) ?? [])]) listener()
  }

  /**
   * Calls back with the task at once and at every change; resolves when it has ended, is deleted, or `stop` is aborted.
   */
  async watch(task: Task, stop: AbortSignal, read: ReadTask, onChange: (task: Task) => void): Promise<void> {
    const signal = new Signal(this.rereadMs)
    const removeTaskListener = this.listen(task.id, signal.set)
    stop.addEventListener('abort', signal.set)
    // A signal that is aborted already fires no event.
    if (stop.aborted) signal.set()
    try {
      let latest = task
      onChange(latest)
      while (!isTerminal(latest.state)) {
        await signal.wait()
        if (stop.aborted) return
        // An outage of the store does not end the stream.
        const current = await read().catch(() => latest)
        if (current === undefined) return
        if (current.state === latest.state && current.object === latest.object) continue
        latest = current
        onChange(latest)
      }
    } finally {
      removeTaskListener()
      stop.removeEventListener('abort', signal.set)
    }
  }

  private listen(taskId: string, listener: () => void): () => void {
    const listeners = this.listeners.get(taskId) ?? new Set()
    this.listeners.set(taskId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) this.listeners.delete(taskId)
    }
  }
}

/** A signal by event or timeout; one that is given while nothing waits is kept. */
class Signal {
  private isSet = false
  private wake: () => void = () => undefined

  constructor(private readonly timeoutMs: number) {}

  readonly set = (): void => {
    this.isSet = true
    this.wake()
  }

  async wait(): Promise<void> {
    if (!this.isSet) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.timeoutMs)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.isSet = false
  }
}

/** The usage data of a task that has just ended: one video, or none of a task that has failed. */
export function endedTask(task: Task): EndedTask {
  const hasSucceeded = task.state === 'succeed'
  return {
    id: `video ${task.id}`,
    ownerId: task.ownerId,
    usageClass: 'video',
    route: videoTaskPath(task.kind),
    model: task.model,
    channelId: task.channelId,
    outcome: hasSucceeded ? 'ok' : 'upstream_failed',
    usage: { units: { ...deductions(task.object), videos: hasSucceeded ? 1 : 0 }, estimated: false },
    // The clock may have been set back meanwhile.
    durationMs: Math.max(0, task.updatedAtMs - task.createdAtMs),
  }
}

/** What the upstream has deducted from the account; it writes its numbers as text. */
function deductions(object: string | undefined): Units {
  const {
    final_unit_deduction: units,
    final_balance_deduction: { quota, list_price: listPrice },
  } = fieldsOf(object)
  const balance = { ...figure('quota', quota), ...figure('list_price', listPrice) }
  return {
    ...figure('final_unit_deduction', units),
    ...(Object.keys(balance).length === 0 ? {} : { final_balance_deduction: balance }),
  }
}

interface DeductionFields {
  readonly final_unit_deduction?: unknown
  readonly final_balance_deduction: { readonly quota?: unknown; readonly list_price?: unknown }
}

function fieldsOf(object: string | undefined): DeductionFields {
  const nothing: DeductionFields = { final_balance_deduction: {} }
  try {
    const fields = JSON.parse(object ?? '{}') as Partial<DeductionFields>
    return { ...nothing, ...fields, final_balance_deduction: fields.final_balance_deduction ?? {} }
  } catch {
    return nothing
  }
}

function figure(name: string, value: unknown): Units {
  const number = typeof value === 'string' && /^\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : value
  return typeof number === 'number' ? { [name]: number } : {}
}

/** The part of the callback sender that is used here: a signal without an address. */
export type CallbackQueue = Pick<CallbackSender, 'wake'>

/** Writes changes of tasks with the usage of ended ones, and notifies this process' watchers and callback sender. */
@Injectable()
export class TaskRecorder {
  /** Ends recorded by this process, for the metrics. */
  readonly endedTasks = { succeed: 0, failed: 0 }

  constructor(
    private readonly tasks: TaskRepository,
    private readonly watchers: TaskWatchers,
    @Inject(CallbackSender) private readonly sender: CallbackQueue,
    private readonly usage: UsageRecorder,
  ) {}

  /** The task after the change; undefined when it had been changed meanwhile: then nothing was written. */
  async record(task: Task, change: TaskChange): Promise<Task | undefined> {
    const after = changed(task, change)
    const isWritten = isTerminal(after.state)
      ? await this.usage.endTask(endedTask(after), (usage) =>
          this.tasks.change(task.id, usage === undefined ? change : { ...change, usage }),
        )
      : await this.tasks.change(task.id, change)
    if (!isWritten) return undefined
    this.watchers.notify(task.id)
    if (change.event !== undefined) this.sender.wake()
    // Counted once over all replicas: a second write of the same end is refused above.
    if (after.state === 'succeed' || after.state === 'failed') this.endedTasks[after.state]++
    return after
  }
}

/** Timeout of one poll, all of it; shorter than the lease. */
const READ_TIMEOUT_MS = 20_000

/** Result of a poll: the task afterwards, and what is left to write when it has not changed. */
interface Refreshed {
  /** Undefined when it was changed by another writer meanwhile. */
  readonly task: Task | undefined
  readonly reschedule?: Reschedule
}

/** Polls a task's upstream and applies the transition rules to the result. */
@Injectable()
export class TaskRefresher {
  /** Failed polls in a row, by channel: failures concern the channel more often than one task. */
  private readonly failures = new Map<string, number>()

  constructor(
    private readonly router: ProviderRouter,
    private readonly recorder: TaskRecorder,
    private readonly transitionSettings: TransitionSettings,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Polls once; never rejects. */
  async poll(task: Task, call: RequestContext): Promise<PollResult> {
    const id = task.upstreamTaskId ?? task.upstreamExternalId
    try {
      const route = this.router.videoChannels(call.caller).find(({ channelId }) => channelId === task.channelId)
      if (route === undefined) return { kind: 'unreachable' }
      const read = route.attempt(call, { canRetryAfterSend: true }, (provider, context) => {
        const deadlineAtMs = Math.min(context.deadlineAtMs, performance.now() + READ_TIMEOUT_MS)
        return provider.read(task.kind, id, { ...context, deadlineAtMs })
      })
      const upstream = await withTimeout(read, call, READ_TIMEOUT_MS)
      this.failures.delete(task.channelId)
      return upstream === undefined ? { kind: 'absent' } : { kind: 'seen', upstream }
    } catch (error) {
      return this.failed(task, error, call)
    }
  }

  /** Writes the transition that follows from a poll, if there is one. Rejects with `overloaded` while the store is away. */
  async settle(task: Task, result: PollResult, call: RequestContext): Promise<Refreshed> {
    const transition: TaskTransition = nextTransition(task, result, this.transitionSettings.for(call))
    if ('reschedule' in transition) return { task, reschedule: transition.reschedule }
    return { task: await this.recorder.record(task, transition.change) }
  }

  /** The result for a task that could not be settled: it waits as if its upstream had failed. */
  failed({ id, channelId }: Task, error: unknown, call: RequestContext): PollResult {
    if (!(error instanceof GatewayError)) this.logger.warn({ task: id, channel: channelId, err: error }, 'poll failed')
    const failures = this.failures.get(channelId) ?? 0
    // A disconnected client is no failure of the upstream.
    if (!call.disconnect.aborted) this.failures.set(channelId, failures + 1)
    const retryAfterSeconds = error instanceof GatewayError ? error.details.retryAfterSeconds : undefined
    return { kind: 'failed', failures, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) }
  }
}
