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
 * The outcome of work that was told to end in time and with its caller, or a rejection then, should it not: nobody waits
 * for ever for one that hangs.
 */
async function inTime<Result>(work: Promise<Result>, call: RequestContext, limitMs: number): Promise<Result> {
  let forgetCaller: () => void = () => undefined
  let timer: NodeJS.Timeout | undefined
  const end = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new GatewayError('upstream_timeout', 'The upstream did not answer in time.'))
    }, limitMs)
    forgetCaller = call.disconnect.onAbort(() => {
      reject(clientDisconnected())
    })
  })
  try {
    return await Promise.race([work, end])
  } finally {
    clearTimeout(timer)
    forgetCaller()
  }
}

/** For one look at one task, all of it; shorter than the lease of a poll. */
export const READ_TIMEOUT_MS = 20_000

/** What a look came to: the task afterwards, and what is left to write when it has not changed. */
export interface Refreshed {
  /** Undefined when somebody else changed it meanwhile. */
  readonly task: Task | undefined
  readonly reschedule?: Reschedule
}

/** Asks a task's upstream how it stands, and makes of the answer what the rules say. */
@Injectable()
export class TaskRefresher {
  /** Looks in a row that brought no answer, by channel: what fails there is seldom the fault of one task. */
  private readonly failures = new Map<string, number>()

  constructor(
    private readonly router: ProviderRouter,
    private readonly recorder: TaskRecorder,
    private readonly transitionSettings: TransitionSettings,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** One look; never rejects. */
  async poll(task: Task, call: RequestContext): Promise<PollResult> {
    const id = task.upstreamTaskId ?? task.upstreamExternalId
    try {
      const route = this.router.videoChannels(call.caller).find(({ channelId }) => channelId === task.channelId)
      if (route === undefined) return { kind: 'unreachable' }
      const read = route.attempt(call, { repeatableOnceSent: true }, (provider, context) => {
        const deadlineAtMs = Math.min(context.deadlineAtMs, performance.now() + READ_TIMEOUT_MS)
        return provider.read(task.kind, id, { ...context, deadlineAtMs })
      })
      const upstream = await inTime(read, call, READ_TIMEOUT_MS)
      this.failures.delete(task.channelId)
      return upstream === undefined ? { kind: 'absent' } : { kind: 'seen', upstream }
    } catch (error) {
      return this.failed(task, error, call)
    }
  }

  /** Writes what follows from a look, if it changes the task. Rejects with `overloaded` while there is no store. */
  async settle(task: Task, observation: PollResult, call: RequestContext): Promise<Refreshed> {
    const verdict: TaskTransition = nextTransition(task, observation, this.transitionSettings.for(call))
    if ('reschedule' in verdict) return { task, reschedule: verdict.reschedule }
    return { task: await this.recorder.record(task, verdict.change) }
  }

  /** The same for a task that could not be settled: it waits like one whose upstream fails. */
  failed({ id, channelId }: Task, error: unknown, call: RequestContext): PollResult {
    if (!(error instanceof GatewayError)) this.logger.warn({ task: id, channel: channelId, err: error }, 'poll failed')
    const before = this.failures.get(channelId) ?? 0
    // Who leaves says nothing about the upstream.
    if (!call.disconnect.aborted) this.failures.set(channelId, before + 1)
    const retryAfterSeconds = error instanceof GatewayError ? error.details.retryAfterSeconds : undefined
    return { kind: 'failed', failures: before, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) }
  }
}
