import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { RequestContext } from '../core/request-context.js'
import { successEnvelope } from '../dialects/task-response.js'
import type { UpstreamVideoTask } from '../providers/contract.js'
import { failedObject, isTerminal, isUnconfirmed, newWebhookId, nextState, type Task, withCallersId } from './task.js'
import type { Reschedule, TaskChange } from './task.repository.js'
import { Clock } from './wake-timer.js'

/** A task is most likely to change while it is young (the upstream's own advice: 5 s, later 15 s). */
const FIRST_MINUTE_MS = 60_000
const LATER_FACTOR = 3

/** A lost create is looked for sooner than a known one is asked about: its caller has nothing yet. */
const FIRST_SEARCH_MS = 1000
const LONGEST_PAUSE_MS = 60_000
const MAXIMUM_DOUBLINGS = 6

/** Share of a delay by which it may be longer or shorter, so that tasks made together are not polled together. */
const JITTER = 0.2

interface Pace {
  readonly nowMs: number
  readonly pollIntervalMs: number
  /** Drawn from [0, 1). */
  readonly chance: number
}

type Scheduled = Pick<Task, 'state' | 'createdAtMs' | 'polls'>

/** The next poll of a task whose last one went well; `polls` counts those since its last change. Unix milliseconds. */
export function nextPollAtMs(task: Scheduled, pace: Pace): number {
  return (
    pace.nowMs + jittered(isUnconfirmed(task.state) ? searchDelayMs(task.polls, pace) : usualDelayMs(task, pace), pace)
  )
}

/**
 * The next poll after an upstream that did not answer, for the `failures`-th time in a row on its channel; not before the
 * time it asked for itself.
 */
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

/** The next look for a channel that the configuration does not have at present. */
export const pollWithoutChannelAtMs = (pace: Pace): number => pace.nowMs + jittered(LONGEST_PAUSE_MS, pace)

function usualDelayMs(task: Scheduled, { nowMs, pollIntervalMs }: Pace): number {
  return nowMs - task.createdAtMs < FIRST_MINUTE_MS ? pollIntervalMs : pollIntervalMs * LATER_FACTOR
}

const searchDelayMs = (polls: number, { pollIntervalMs }: Pace): number =>
  Math.min(Math.min(FIRST_SEARCH_MS, pollIntervalMs) * doubled(polls), LONGEST_PAUSE_MS)

const doubled = (times: number): number => 2 ** Math.min(times, MAXIMUM_DOUBLINGS)

const jittered = (delayMs: number, { chance }: Pace): number => Math.round(delayMs * (1 - JITTER + 2 * JITTER * chance))

/** What a change is made under: the time, the settings in force, and who learns of it. */
export interface ChangeSettings extends Pace {
  /** How long a create whose answer was lost is looked for. */
  readonly reconcileMs: number
  readonly maxAgeMs: number
  /** Delay of the first attempt at a callback. */
  readonly firstCallbackMs: number
  /** Of the call that learns of the change; stands in the stored answer of a create. */
  readonly requestId: string
}

const RESPONDED = 200

/**
 * The change to the state its upstream shows. A task whose create is still open gets the answer of that create with it,
 * for repeats under the same idempotency key.
 */
export function seenChange(
  task: Task,
  upstream: UpstreamVideoTask,
  terms: ChangeSettings,
  { announced }: { readonly announced: boolean },
): TaskChange {
  const { nowMs } = terms
  const object = withCallersId(upstream.object, task.upstreamExternalId, task.externalTaskId)
  const deadlineAtMs = isUnconfirmed(task.state) ? task.createdAtMs + terms.maxAgeMs : task.deadlineAtMs
  const nextMs = nextPollAtMs({ ...task, state: upstream.status, polls: 0 }, terms)
  return {
    ...FRESH,
    from: [task.state],
    state: upstream.status,
    upstreamTaskId: upstream.id,
    object,
    nextPollAtMs: isTerminal(upstream.status) ? nowMs : Math.min(nextMs, deadlineAtMs),
    updatedAtMs: nowMs,
    deadlineAtMs,
    ...(announced ? eventFor(task, object, terms) : {}),
    ...responseFor(task, object, terms),
  }
}

/** The end that the gateway itself puts to a task; its upstream says nothing better. */
function failure(task: Task, reason: string, terms: ChangeSettings): TaskChange {
  const object = failedObject(task, reason, terms.nowMs)
  return {
    ...FRESH,
    from: [task.state],
    state: 'failed',
    // The id in the object must be one that can be asked for.
    upstreamTaskId: task.upstreamTaskId ?? task.id,
    object,
    nextPollAtMs: terms.nowMs,
    updatedAtMs: terms.nowMs,
    deadlineAtMs: task.deadlineAtMs,
    ...eventFor(task, object, terms),
    ...responseFor(task, object, terms),
  }
}

/** A create whose outcome nobody knows: from now on it is looked for. */
export const outcomeUnknown = (nextPollAtMs: number, terms: ChangeSettings): TaskChange => ({
  ...FRESH,
  from: ['creating'],
  state: 'unknown',
  nextPollAtMs,
  updatedAtMs: terms.nowMs,
  deadlineAtMs: terms.nowMs + terms.reconcileMs,
})

/** The task as it stands once a change has been applied to it. */
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
  return { answer: { status: RESPONDED, body: successEnvelope(requestId, object) } }
}

/** What changes of tasks are made under at this moment. */
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

/** What asking the upstream about a task brought. */
export type PollResult =
  | { readonly kind: 'seen'; readonly upstream: UpstreamVideoTask }
  /** The upstream answered that it has no such task. */
  | { readonly kind: 'absent' }
  /** `failures`: in a row, on the task's channel. */
  | { readonly kind: 'failed'; readonly failures: number; readonly retryAfterSeconds?: number }
  /** No channel of the task's name, or none that may be asked without its caller. */
  | { readonly kind: 'unreachable' }

export type TaskTransition = { readonly change: TaskChange } | { readonly reschedule: Reschedule }

/** One answer may come from a replica of the upstream that lags behind. */
const MISSES_UNTIL_GONE = 2

export const NO_RECORD = 'The upstream has no record of this task.'
export const GONE = 'The upstream does not know this task any more.'
export const TOO_LATE = 'The task did not finish in time.'

/** What becomes of a task after one look at its upstream. Pure but for the random ids of events. */
export function nextTransition(task: Task, observation: PollResult, terms: ChangeSettings): TaskTransition {
  switch (observation.kind) {
    case 'seen':
      return transitionOfSeen(task, observation.upstream, terms)
    case 'absent':
      return transitionOfAbsent(task, terms)
    case 'failed': {
      const { failures, retryAfterSeconds } = observation
      return postponed(task, pollAfterFailureAtMs(task, failures, retryAfterSeconds, terms), terms)
    }
    case 'unreachable':
      return postponed(task, pollWithoutChannelAtMs(terms), terms)
  }
}

function transitionOfSeen(task: Task, upstream: UpstreamVideoTask, terms: ChangeSettings): TaskTransition {
  if (nextState(task.state, upstream.status) !== undefined) {
    // That it was accepted is what the create itself answers.
    return { change: seenChange(task, upstream, terms, { announced: upstream.status !== 'submitted' }) }
  }
  if (terms.nowMs >= task.deadlineAtMs) return { change: failure(task, TOO_LATE, terms) }
  const next = later(task, nextPollAtMs(task, terms), 0)
  const object = withCallersId(upstream.object, task.upstreamExternalId, task.externalTaskId)
  if (upstream.status !== task.state || object === task.object) return { reschedule: { id: task.id, ...next } }
  // Compared and set like a change of state: it must never replace the object of a later state.
  const { state, deadlineAtMs } = task
  return { change: { ...next, from: [state], state, object, updatedAtMs: terms.nowMs, deadlineAtMs } }
}

function transitionOfAbsent(task: Task, terms: ChangeSettings): TaskTransition {
  const nextMs = nextPollAtMs(task, terms)
  if (task.state === 'creating') return { change: outcomeUnknown(nextMs, terms) }
  const isLate = terms.nowMs >= task.deadlineAtMs
  if (task.state === 'unknown') {
    return isLate
      ? { change: failure(task, NO_RECORD, terms) }
      : { reschedule: { id: task.id, ...later(task, nextMs, task.misses + 1) } }
  }
  const misses = task.misses + 1
  if (misses >= MISSES_UNTIL_GONE) return { change: failure(task, GONE, terms) }
  if (isLate) return { change: failure(task, TOO_LATE, terms) }
  return { reschedule: { id: task.id, ...later(task, nextMs, misses) } }
}

/** Nothing was learnt: the task waits, unless it has waited too long. */
function postponed(task: Task, nextMs: number, terms: ChangeSettings): TaskTransition {
  // Whether a lost create was made must not be decided by an upstream that is merely down.
  const endsAtMs = isUnconfirmed(task.state)
    ? Math.max(task.deadlineAtMs, task.createdAtMs + terms.maxAgeMs)
    : task.deadlineAtMs
  if (terms.nowMs >= endsAtMs) return { change: failure(task, TOO_LATE, terms) }
  if (task.state === 'creating') return { change: outcomeUnknown(nextMs, terms) }
  return { reschedule: { id: task.id, ...later({ ...task, deadlineAtMs: endsAtMs }, nextMs, task.misses) } }
}

/** A task is looked at once more when its time is up. */
const later = ({ polls, deadlineAtMs }: Pick<Task, 'polls' | 'deadlineAtMs'>, nextMs: number, misses: number) => ({
  nextPollAtMs: Math.min(nextMs, deadlineAtMs),
  polls: polls + 1,
  misses,
})
