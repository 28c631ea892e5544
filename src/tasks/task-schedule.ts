import { isUnconfirmed } from './task-states.js'
import type { Task } from './task.js'

/** A task is most likely to change while it is young (the upstream's own advice: 5 s, later 15 s). */
const FIRST_MINUTE_MS = 60_000
const LATER_FACTOR = 3

/** A lost create is looked for sooner than a known one is asked about: its caller has nothing yet. */
const FIRST_SEARCH_MS = 1000
const LONGEST_PAUSE_MS = 60_000
const MAXIMUM_DOUBLINGS = 6

/** Share of a delay by which it may be longer or shorter, so that tasks made together are not polled together. */
const JITTER = 0.2

export interface Pace {
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
