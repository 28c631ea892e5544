import type { UpstreamVideoTask } from '../providers/video.contract.js'
import { withCallersId } from './external-ids.js'
import { nextPollAtMs, pollAfterFailureAtMs, pollWithoutChannelAtMs } from './task-schedule.js'
import { isUnconfirmed, nextState } from './task-states.js'
import type { Task } from './task.js'
import type { Reschedule, TaskChange } from './task.repository.js'
import { failure, outcomeUnknown, seenChange, type Terms } from './transitions.js'

/** What asking the upstream about a task brought. */
export type Observation =
  | { readonly kind: 'seen'; readonly upstream: UpstreamVideoTask }
  /** The upstream answered that it has no such task. */
  | { readonly kind: 'absent' }
  /** `failures`: in a row, on the task's channel. */
  | { readonly kind: 'failed'; readonly failures: number; readonly retryAfterSeconds?: number }
  /** No channel of the task's name, or none that may be asked without its caller. */
  | { readonly kind: 'unreachable' }

export type Verdict = { readonly change: TaskChange } | { readonly reschedule: Reschedule }

/** One answer may come from a replica of the upstream that lags behind. */
const MISSES_UNTIL_GONE = 2

export const NO_RECORD = 'The upstream has no record of this task.'
export const GONE = 'The upstream does not know this task any more.'
export const TOO_LATE = 'The task did not finish in time.'

/** What becomes of a task after one look at its upstream. Pure but for the random ids of events. */
export function judge(task: Task, observation: Observation, terms: Terms): Verdict {
  switch (observation.kind) {
    case 'seen':
      return judgeSeen(task, observation.upstream, terms)
    case 'absent':
      return judgeAbsent(task, terms)
    case 'failed': {
      const { failures, retryAfterSeconds } = observation
      return postponed(task, pollAfterFailureAtMs(task, failures, retryAfterSeconds, terms), terms)
    }
    case 'unreachable':
      return postponed(task, pollWithoutChannelAtMs(terms), terms)
  }
}

function judgeSeen(task: Task, upstream: UpstreamVideoTask, terms: Terms): Verdict {
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

function judgeAbsent(task: Task, terms: Terms): Verdict {
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
function postponed(task: Task, nextMs: number, terms: Terms): Verdict {
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
