import { Inject, Injectable } from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import { type RequestContext, clientDisconnected } from '../core/request-context.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { ProviderRouter } from '../routing/router.js'
import { TaskRecorder } from './record-task.js'
import type { Task } from './task.js'
import type { Reschedule } from './task.repository.js'
import { nextTransition, type PollResult, TransitionSettings, type TaskTransition } from './transitions.js'

/**
 * The result of work that should end by its timeout and with its caller; rejects then in any case, so that work which
 * hangs is not waited for.
 */
async function withTimeout<Result>(work: Promise<Result>, call: RequestContext, limitMs: number): Promise<Result> {
  let removeListener: () => void = () => undefined
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new GatewayError('upstream_timeout', 'The upstream did not answer in time.'))
    }, limitMs)
    removeListener = call.disconnect.onAbort(() => {
      reject(clientDisconnected())
    })
  })
  try {
    return await Promise.race([work, end])
  } finally {
    clearTimeout(timer)
    removeListener()
  }
}

/** Timeout of one poll, all of it; shorter than the lease. */
export const READ_TIMEOUT_MS = 20_000

/** Result of a poll: the task afterwards, and what is left to write when it has not changed. */
export interface Refreshed {
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
      const read = route.attempt(call, { repeatableOnceSent: true }, (provider, context) => {
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

  /**
   * Writes the transition that follows from a poll, if there is one. Rejects with `overloaded` while the store is away.
   */
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
