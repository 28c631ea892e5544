import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { RequestContext } from '../core/request-context.js'
import { successEnvelope } from '../dialects/task-response.js'
import type { UpstreamVideoTask } from '../providers/contract.js'
import {
  failedObject,
  isTerminal,
  isUnconfirmed,
  newWebhookId,
  type Task,
  type TaskState,
  withCallersId,
} from './task.js'
import type { Reschedule, TaskChange } from './task.repository.js'
import { Clock } from './background-work.js'

/** Allowed transitions by state. All others are ignored: late regressions and second ends. */
export const TRANSITIONS = {
  creating: ['unknown', 'submitted', 'processing', 'succeed', 'failed'],
  unknown: ['submitted', 'processing', 'succeed', 'failed'],
  submitted: ['processing', 'succeed', 'failed'],
  processing: ['succeed', 'failed'],
  succeed: [],
  failed: [],
} as const satisfies Readonly<Record<TaskState, readonly TaskState[]>>

/** The next state of a task in `from` that is seen in `seen`; undefined when nothing changes. */
export function nextState(from: TaskState, seen: TaskState): TaskState | undefined {
  const allowed: readonly TaskState[] = TRANSITIONS[from]
  return allowed.includes(seen) ? seen : undefined
}

/** A task is most likely to change early (the upstream's own advice: 5 s, later 15 s). */
const FIRST_MINUTE_MS = 60_000
const LATER_FACTOR = 3

/** A lost create is polled sooner than a known task: its caller has no response yet. */
const FIRST_SEARCH_MS = 1000
const LONGEST_PAUSE_MS = 60_000
const MAXIMUM_DOUBLINGS = 6

/** Jitter as a share of the delay, so that tasks created together are not polled together. */
const JITTER = 0.2

interface Pace {
  readonly nowMs: number
  readonly pollIntervalMs: number
  /** Random number from [0, 1). */
  readonly chance: number
}

type Scheduled = Pick<Task, 'state' | 'createdAtMs' | 'polls'>

/** The next poll of a task after a successful one; `polls` counts those since its last change. Unix milliseconds. */
export function nextPollAtMs(task: Scheduled, pace: Pace): number {
  return (
    pace.nowMs + jittered(isUnconfirmed(task.state) ? searchDelayMs(task.polls, pace) : usualDelayMs(task, pace), pace)
  )
}

/** The next poll after a failed one, the `failures`-th in a row on its channel; not before the upstream's own retry time. */
export function pollAfterFailureAtMs(
  task: Scheduled,
  failures: number,
  retryAfterSeconds: number | undefined,
  pace: Pace,
): number {
  const longest = Math.max(LONGEST_PAUSE_MS, pace.pollIntervalMs * LATER_FACTOR)
  const delayMs = Math.min(usualDelayMs(task, pace) * doubled(failures), longest)
  return pace.nowMs + Math.max(jittered(delayMs, pace), (retryAfterSeconds ?? 0) * 1000)
}

/** No poll is planned later than this; an upstream's own retry time is a minute at most. */
export const longestPollDelayMs = (pollIntervalMs: number): number =>
  Math.ceil(Math.max(LONGEST_PAUSE_MS, pollIntervalMs * LATER_FACTOR) * (1 + JITTER))

/** The next poll of a task whose channel is not configured at present. */
export const pollWithoutChannelAtMs = (pace: Pace): number => pace.nowMs + jittered(LONGEST_PAUSE_MS, pace)

function usualDelayMs(task: Scheduled, { nowMs, pollIntervalMs }: Pace): number {
  return nowMs - task.createdAtMs < FIRST_MINUTE_MS ? pollIntervalMs : pollIntervalMs * LATER_FACTOR
}

const searchDelayMs = (polls: number, { pollIntervalMs }: Pace): number =>
  Math.min(Math.min(FIRST_SEARCH_MS, pollIntervalMs) * doubled(polls), LONGEST_PAUSE_MS)

const doubled = (times: number): number => 2 ** Math.min(times, MAXIMUM_DOUBLINGS)

const jittered = (delayMs: number, { chance }: Pace): number => Math.round(delayMs * (1 - JITTER + 2 * JITTER * chance))

/** What a transition depends on: the time, the settings in force, and the request. */
export interface ChangeSettings extends Pace {
  /** How long a create whose response was lost is searched for. */
  readonly reconcileMs: number
  readonly maxAgeMs: number
  /** Delay of the first attempt at a callback. */
  readonly firstCallbackMs: number
  /** Id of the request that causes the transition; part of the stored response of a create. */
  readonly requestId: string
}

const STATUS_OK = 200

/**
 * The transition to the state that the upstream shows. An open create gets its response with it, for repeats under the
 * same idempotency key.
 */
export function seenChange(
  task: Task,
  upstream: UpstreamVideoTask,
  settings: ChangeSettings,
  { hasEvent }: { readonly hasEvent: boolean },
): TaskChange {
  const { nowMs } = settings
  const object = withCallersId(upstream.object, task.upstreamExternalId, task.externalTaskId)
  const deadlineAtMs = isUnconfirmed(task.state) ? task.createdAtMs + settings.maxAgeMs : task.deadlineAtMs
  const nextMs = nextPollAtMs({ ...task, state: upstream.status, polls: 0 }, settings)
  return {
    ...FRESH,
    from: [task.state],
    state: upstream.status,
    upstreamTaskId: upstream.id,
    object,
    nextPollAtMs: isTerminal(upstream.status) ? nowMs : withinDeadline(nextMs, deadlineAtMs, nowMs),
    updatedAtMs: nowMs,
    deadlineAtMs,
    ...(hasEvent ? eventFor(task, object, settings) : {}),
    ...responseFor(task, object, settings),
  }
}

/** The transition to `failed` by the gateway itself, when the upstream has no final state. */
function failure(task: Task, reason: string, settings: ChangeSettings): TaskChange {
  const object = failedObject(task, reason, settings.nowMs)
  return {
    ...FRESH,
    from: [task.state],
    state: 'failed',
    // The id in the object must be one that callers can request.
    upstreamTaskId: task.upstreamTaskId ?? task.id,
    object,
    nextPollAtMs: settings.nowMs,
    updatedAtMs: settings.nowMs,
    deadlineAtMs: task.deadlineAtMs,
    ...eventFor(task, object, settings),
    ...responseFor(task, object, settings),
  }
}

/** The transition of a create whose outcome is unknown: from now on the task is searched for. */
export const outcomeUnknown = (nextPollAtMs: number, settings: ChangeSettings): TaskChange => ({
  ...FRESH,
  from: ['creating'],
  state: 'unknown',
  nextPollAtMs,
  updatedAtMs: settings.nowMs,
  deadlineAtMs: settings.nowMs + settings.reconcileMs,
})

/** The task after a change. */
export function changed(task: Task, change: TaskChange): Task {
  const { state, upstreamTaskId, object, nextPollAtMs, polls, misses, updatedAtMs, deadlineAtMs } = change
  return {
    ...task,
    ...{ state, nextPollAtMs, polls, misses, updatedAtMs, deadlineAtMs },
    ...(upstreamTaskId === undefined ? {} : { upstreamTaskId }),
    ...(object === undefined ? {} : { object }),
  }
}

const FRESH = { polls: 0, misses: 0 } as const

function eventFor(task: Task, body: string, { nowMs, firstCallbackMs }: ChangeSettings): Pick<TaskChange, 'event'> {
  if (task.callbackUrl === undefined) return {}
  return { event: { webhookId: newWebhookId(), body, nextAttemptAtMs: nowMs + firstCallbackMs } }
}

function responseFor(task: Task, object: string, { requestId }: ChangeSettings): Pick<TaskChange, 'answer'> {
  if (!isUnconfirmed(task.state)) return {}
  return { answer: { status: STATUS_OK, body: successEnvelope(requestId, object) } }
}

@Injectable()
export class TransitionSettings {
  constructor(
    private readonly store: ConfigStore,
    private readonly clock: Clock,
  ) {}

  for(call: RequestContext): ChangeSettings {
    const { tasks, callbacks } = this.store.current
    return {
      nowMs: this.clock.nowMs(),
      chance: Math.random(),
      pollIntervalMs: tasks.pollIntervalMs,
      reconcileMs: tasks.reconcileMs,
      maxAgeMs: tasks.maxAgeMs,
      firstCallbackMs: callbacks.scheduleMs[0] ?? 0,
      requestId: call.requestId,
    }
  }
}

/** Result of polling a task's upstream. */
export type PollResult =
  | { readonly kind: 'seen'; readonly upstream: UpstreamVideoTask }
  /** The upstream does not have the task. */
  | { readonly kind: 'absent' }
  /** `failures`: in a row, on the task's channel. */
  | { readonly kind: 'failed'; readonly failures: number; readonly retryAfterSeconds?: number }
  /** No channel of that name, or none that works without the caller's key. */
  | { readonly kind: 'unreachable' }

export type TaskTransition = { readonly change: TaskChange } | { readonly reschedule: Reschedule }

/** One `absent` may come from a replica of the upstream that lags behind. */
export const MISSES_UNTIL_GONE = 2

export const NO_RECORD = 'The upstream has no record of this task.'
export const GONE = 'The upstream does not know this task any more.'
export const TOO_LATE = 'The task did not finish in time.'

/** The transition that follows from one poll. Pure but for the random ids of events. */
export function nextTransition(task: Task, result: PollResult, settings: ChangeSettings): TaskTransition {
  switch (result.kind) {
    case 'seen':
      return transitionOfSeen(task, result.upstream, settings)
    case 'absent':
      return transitionOfAbsent(task, settings)
    case 'failed': {
      const { failures, retryAfterSeconds } = result
      return postponed(task, pollAfterFailureAtMs(task, failures, retryAfterSeconds, settings), settings)
    }
    case 'unreachable':
      return postponed(task, pollWithoutChannelAtMs(settings), settings)
  }
}

function transitionOfSeen(task: Task, upstream: UpstreamVideoTask, settings: ChangeSettings): TaskTransition {
  if (nextState(task.state, upstream.status) !== undefined) {
    // The response of the create already reports `submitted`.
    return { change: seenChange(task, upstream, settings, { hasEvent: upstream.status !== 'submitted' }) }
  }
  if (isFinal(task, task.deadlineAtMs, settings)) return { change: failure(task, TOO_LATE, settings) }
  const next = rescheduled(task, nextPollAtMs(task, settings), 0, settings)
  const object = withCallersId(upstream.object, task.upstreamExternalId, task.externalTaskId)
  if (upstream.status !== task.state || object === task.object) return { reschedule: { id: task.id, ...next } }
  // Compared and set like a change of state: it must never replace the object of a later state.
  const { state, deadlineAtMs } = task
  return { change: { ...next, from: [state], state, object, updatedAtMs: settings.nowMs, deadlineAtMs } }
}

function transitionOfAbsent(task: Task, settings: ChangeSettings): TaskTransition {
  const nextMs = nextPollAtMs(task, settings)
  if (task.state === 'creating') return { change: outcomeUnknown(nextMs, settings) }
  const isOverdue = isFinal(task, task.deadlineAtMs, settings)
  if (task.state === 'unknown') {
    return isOverdue
      ? { change: failure(task, NO_RECORD, settings) }
      : { reschedule: { id: task.id, ...rescheduled(task, nextMs, task.misses + 1, settings) } }
  }
  const misses = task.misses + 1
  if (misses >= MISSES_UNTIL_GONE) return { change: failure(task, GONE, settings) }
  if (isOverdue) return { change: failure(task, TOO_LATE, settings) }
  return { reschedule: { id: task.id, ...rescheduled(task, nextMs, misses, settings) } }
}

/** Postpones the next poll after one without a result, unless the deadline has passed. */
function postponed(task: Task, nextMs: number, settings: ChangeSettings): TaskTransition {
  // An upstream that is merely down must not decide whether a lost create was made.
  const endsAtMs = isUnconfirmed(task.state)
    ? Math.max(task.deadlineAtMs, task.createdAtMs + settings.maxAgeMs)
    : task.deadlineAtMs
  if (isFinal(task, endsAtMs, settings)) return { change: failure(task, TOO_LATE, settings) }
  if (task.state === 'creating') return { change: outcomeUnknown(nextMs, settings) }
  return {
    reschedule: { id: task.id, ...rescheduled({ ...task, deadlineAtMs: endsAtMs }, nextMs, task.misses, settings) },
  }
}

/** The poll planned for the deadline is the last: a task overdue before it, by a clock set forward, is asked once more. */
const isFinal = ({ nextPollAtMs }: Task, endsAtMs: number, { nowMs }: ChangeSettings): boolean =>
  nowMs >= endsAtMs && nextPollAtMs >= endsAtMs

/** The next poll is at the deadline, at the latest, as long as that lies ahead. */
const withinDeadline = (nextMs: number, deadlineAtMs: number, nowMs: number): number =>
  nowMs < deadlineAtMs ? Math.min(nextMs, deadlineAtMs) : nextMs

const rescheduled = (
  { polls, deadlineAtMs }: Pick<Task, 'polls' | 'deadlineAtMs'>,
  nextMs: number,
  misses: number,
  { nowMs }: ChangeSettings,
) => ({
  nextPollAtMs: withinDeadline(nextMs, deadlineAtMs, nowMs),
  polls: polls + 1,
  misses,
})
