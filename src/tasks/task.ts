import { hash, randomBytes } from 'node:crypto'
import { JsonBody } from '../core/json-body.js'
import type { VideoKind, VideoTaskStatus } from '../providers/contract.js'

const OWNER_DIGITS = 12

export const newTaskId = (): string => randomBytes(16).toString('hex')

/** What an upstream must know to call back; nothing else protects the intake. */
export const newCallbackToken = (): string => randomBytes(24).toString('base64url')

export const isCallbackToken = (text: string): boolean => /^[\w-]{32}$/.test(text)

export const newWebhookId = (): string => `msg_${randomBytes(16).toString('hex')}`

/**
 * What the upstream is given as external id. It is always set, so that a create whose answer was lost can be found again,
 * and begins with the owner, as the upstream's ids are unique per account and our callers share one.
 */
export const upstreamExternalId = (ownerId: string, externalTaskId: string | undefined, taskId: string): string =>
  `${hash('sha256', ownerId, 'hex').slice(0, OWNER_DIGITS)}.${externalTaskId ?? taskId}`

/** A task object with the caller's own external id, or an empty one, in the place of ours; all other text stays. */
export const withCallersId = (object: string, ours: string, externalTaskId: string | undefined): string =>
  object.replaceAll(JSON.stringify(ours), JSON.stringify(externalTaskId ?? ''))

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

/** The object of a task that the gateway itself ends: its last one with the ending in it, or a new one if it has none. */
export function failedObject(task: Task, reason: string, nowMs: number): string {
  const ending = { task_status: '"failed"', task_status_msg: JSON.stringify(reason), updated_at: String(nowMs) }
  if (task.object === undefined) return newObject(task, ending)
  try {
    return JsonBody.parse(Buffer.from(task.object)).edited(ending).toString()
  } catch {
    // An object that cannot be edited must not keep the task from ending.
    return newObject(task, ending)
  }
}

function newObject(task: Task, ending: Readonly<Record<string, string>>): string {
  const members = {
    task_id: JSON.stringify(task.upstreamTaskId ?? task.id),
    task_status: ending['task_status'],
    task_status_msg: ending['task_status_msg'],
    task_info: JSON.stringify({ external_task_id: task.externalTaskId ?? '' }),
    created_at: String(task.createdAtMs),
    updated_at: ending['updated_at'],
  }
  return `{${Object.entries(members)
    .map(([name, text]) => `"${name}":${text}`)
    .join(',')}}`
}

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
