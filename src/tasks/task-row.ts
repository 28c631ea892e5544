import type { VideoKind } from '../providers/video.contract.js'
import type { TaskRow } from '../storage/database-schema.js'
import type { Task, TaskState } from './task.js'

/** A row as the store holds it, as a task. `kind` and `state` are written by this house alone. */
export function taskOf(row: TaskRow): Task {
  return {
    id: row.id,
    kind: row.kind as VideoKind,
    ownerId: row.owner_id,
    channelId: row.channel_id,
    model: row.model,
    state: row.state as TaskState,
    ...(row.upstream_task_id === null ? {} : { upstreamTaskId: row.upstream_task_id }),
    ...(row.external_task_id === null ? {} : { externalTaskId: row.external_task_id }),
    upstreamExternalId: row.upstream_external_id,
    ...(row.object === null ? {} : { object: row.object }),
    ...(row.callback_url === null ? {} : { callbackUrl: row.callback_url }),
    callbackToken: row.callback_token,
    nextPollAtMs: row.next_poll_at_ms,
    polls: row.polls,
    misses: row.misses,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    deadlineAtMs: row.deadline_at_ms,
  }
}
