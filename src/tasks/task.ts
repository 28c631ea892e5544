import type { VideoKind, VideoTaskStatus } from '../providers/video.contract.js'

/**
 * Where a task stands. `creating`: the upstream is being asked, or was when the process died. `unknown`: it was asked and
 * its answer was lost. The others are the specification's.
 */
export type TaskState = 'creating' | 'unknown' | VideoTaskStatus

/** A task as the store holds it. Times are Unix milliseconds. */
export interface Task {
  /** Ours, never shown where the upstream has an id of its own. */
  readonly id: string
  readonly kind: VideoKind
  /** Who may see it: `ownerOf(caller)`. */
  readonly ownerId: string
  readonly channelId: string
  /** As the caller named it. */
  readonly model: string
  readonly state: TaskState
  /** The id callers know; absent until the upstream has answered. */
  readonly upstreamTaskId?: string
  /** As the caller chose it. */
  readonly externalTaskId?: string
  /** What the upstream was given instead: always set, unique for this gateway, so that a lost create can be found again. */
  readonly upstreamExternalId: string
  /** The task object as JSON text with the caller's external id in it; absent until the upstream has answered. */
  readonly object?: string
  readonly callbackUrl?: string
  /** The unguessable part of the address the upstream calls back. */
  readonly callbackToken: string
  readonly nextPollAtMs: number
  /** Polls since the last change, for the back-off. */
  readonly polls: number
  /** Times in a row that the upstream did not know the task. */
  readonly misses: number
  readonly createdAtMs: number
  readonly updatedAtMs: number
  /** When the present state must have ended. */
  readonly deadlineAtMs: number
}

export const isTerminal = (state: TaskState): boolean => state === 'succeed' || state === 'failed'

/**
 * Whether an id looks like an `upstreamExternalId`, of whatever gateway: asked for, or shown, it would let one owner see
 * the task of another.
 */
export const isUpstreamExternalId = (id: string): boolean => /^[0-9a-f]{12}\./.test(id)
