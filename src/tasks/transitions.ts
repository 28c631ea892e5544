import { successEnvelope } from '../dialects/task-answer.js'
import type { UpstreamVideoTask } from '../providers/video.contract.js'
import { newWebhookId, withCallersId } from './external-ids.js'
import { failedObject } from './task-object.js'
import { nextPollAtMs, type Pace } from './task-schedule.js'
import { isUnconfirmed } from './task-states.js'
import { isTerminal, type Task } from './task.js'
import type { TaskChange } from './task.repository.js'

/** What a change is made under: the time, the settings in force, and who learns of it. */
export interface Terms extends Pace {
  /** How long a create whose answer was lost is looked for. */
  readonly reconcileMs: number
  readonly maxAgeMs: number
  /** Delay of the first attempt at a callback. */
  readonly firstCallbackMs: number
  /** Of the call that learns of the change; stands in the stored answer of a create. */
  readonly requestId: string
}

const ANSWERED = 200

/**
 * The change to the state its upstream shows. A task whose create is still open gets the answer of that create with it,
 * for repeats under the same idempotency key.
 */
export function seenChange(
  task: Task,
  upstream: UpstreamVideoTask,
  terms: Terms,
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
    ...answerFor(task, object, terms),
  }
}

/** The end that the gateway itself puts to a task; its upstream says nothing better. */
export function failure(task: Task, reason: string, terms: Terms): TaskChange {
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
    ...answerFor(task, object, terms),
  }
}

/** A create whose outcome nobody knows: from now on it is looked for. */
export const outcomeUnknown = (nextPollAtMs: number, terms: Terms): TaskChange => ({
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

function eventFor(task: Task, body: string, { nowMs, firstCallbackMs }: Terms): Pick<TaskChange, 'event'> {
  if (task.callbackUrl === undefined) return {}
  return { event: { webhookId: newWebhookId(), body, nextAttemptAtMs: nowMs + firstCallbackMs } }
}

function answerFor(task: Task, object: string, { requestId }: Terms): Pick<TaskChange, 'answer'> {
  if (!isUnconfirmed(task.state)) return {}
  return { answer: { status: ANSWERED, body: successEnvelope(requestId, object) } }
}
