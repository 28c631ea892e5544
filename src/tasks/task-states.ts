import type { TaskState } from './task.js'

/** From each state, where a task may go. What is not listed never happens: late regressions and second endings are ignored. */
export const TRANSITIONS = {
  creating: ['unknown', 'submitted', 'processing', 'succeed', 'failed'],
  unknown: ['submitted', 'processing', 'succeed', 'failed'],
  submitted: ['processing', 'succeed', 'failed'],
  processing: ['succeed', 'failed'],
  succeed: [],
  failed: [],
} as const satisfies Readonly<Record<TaskState, readonly TaskState[]>>

/** The state a task in `from` goes to when it is seen in `seen`; undefined when nothing changes. */
export function nextState(from: TaskState, seen: TaskState): TaskState | undefined {
  const allowed: readonly TaskState[] = TRANSITIONS[from]
  return allowed.includes(seen) ? seen : undefined
}

/** Whether nobody knows yet if the upstream has the task. */
export const isUnconfirmed = (state: TaskState): boolean => state === 'creating' || state === 'unknown'
