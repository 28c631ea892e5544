import { hash, randomBytes } from 'node:crypto'
import { JsonBody } from '../core/json-body.js'
import type { VideoKind, VideoTaskStatus } from '../providers/contract.js'

const OWNER_DIGITS = 12

export const newTaskId = (): string => randomBytes(16).toString('hex')

/** Secret part of the upstream callback URL; the intake has no other protection. */
export const newCallbackToken = (): string => randomBytes(24).toString('base64url')

export const isCallbackToken = (text: string): boolean => /^[\w-]{32}$/.test(text)

export const newWebhookId = (): string => `msg_${randomBytes(16).toString('hex')}`

/**
 * The external id for the upstream. It is always set, so that a create whose response was lost can be found again, and
 * begins with the owner, as the upstream's ids are unique per account and the gateway's callers share one.
 */
export const upstreamExternalId = (ownerId: string, externalTaskId: string | undefined, taskId: string): string =>
  `${hash('sha256', ownerId, 'hex').slice(0, OWNER_DIGITS)}.${externalTaskId ?? taskId}`

/** A task object with the caller's own external id, or an empty one, instead of the gateway's; all other text stays. */
export const withCallersId = (object: string, ours: string, externalTaskId: string | undefined): string =>
  object.replaceAll(JSON.stringify(ours), JSON.stringify(externalTaskId ?? ''))

/**
 * State of a task. `creating`: the create is being sent, or was when the process died. `unknown`: its response was
 * lost. The others are the specification's.
 */
export type TaskState = 'creating' | 'unknown' | VideoTaskStatus

/** A task as the store holds it. Times are Unix milliseconds. */
export interface Task {
  /** The gateway's id, never shown where the upstream has an id of its own. */
  readonly id: string
  readonly kind: VideoKind
  /** Its owner: `ownerOf(caller)`. */
  readonly ownerId: string
  readonly channelId: string
  /** As the caller named it. */
  readonly model: string
  readonly state: TaskState
  /** The id that callers use; absent until the upstream has responded. */
  readonly upstreamTaskId?: string
  /** As the caller chose it. */
  readonly externalTaskId?: string
  /** The external id sent to the upstream: always set, unique for this gateway, so that a lost create can be found again. */
  readonly upstreamExternalId: string
  /** The task object as JSON text with the caller's external id in it; absent until the upstream has responded. */
  readonly object?: string
  readonly callbackUrl?: string
  /** Secret part of the upstream callback URL. */
  readonly callbackToken: string
  readonly nextPollAtMs: number
  /** Polls since the last change, for the back-off. */
  readonly polls: number
  /** Polls in a row in which the upstream did not have the task. */
  readonly misses: number
  readonly createdAtMs: number
  readonly updatedAtMs: number
  /** Latest end of the present state. */
  readonly deadlineAtMs: number
}

export const isTerminal = (state: TaskState): boolean => state === 'succeed' || state === 'failed'

/** The upstream may or may not have the task. */
export const isUnconfirmed = (state: TaskState): boolean => state === 'creating' || state === 'unknown'

/**
 * Whether an id has the form of an `upstreamExternalId`, of any gateway: requested or shown, it would reveal another
 * owner's task.
 */
export const isUpstreamExternalId = (id: string): boolean => /^[0-9a-f]{12}\./.test(id)

/** The object of a task that the gateway itself ends: its last one with the failure in it, or a new one if it has none. */
export function failedObject(task: Task, reason: string, nowMs: number): string {
  const failure = { task_status: '"failed"', task_status_msg: JSON.stringify(reason), updated_at: String(nowMs) }
  if (task.object === undefined) return newObject(task, failure)
  try {
    return JsonBody.parse(Buffer.from(task.object), { source: 'upstream' }).edited(failure).toString()
  } catch {
    // An object that cannot be edited must not keep the task from ending.
    return newObject(task, failure)
  }
}

function newObject(task: Task, failure: Readonly<Record<string, string>>): string {
  const members = {
    task_id: JSON.stringify(task.upstreamTaskId ?? task.id),
    task_status: failure['task_status'],
    task_status_msg: failure['task_status_msg'],
    task_info: JSON.stringify({ external_task_id: task.externalTaskId ?? '' }),
    created_at: String(task.createdAtMs),
    updated_at: failure['updated_at'],
  }
  return `{${Object.entries(members)
    .map(([name, text]) => `"${name}":${text}`)
    .join(',')}}`
}
