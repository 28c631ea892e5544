import { JsonBody } from '../core/json-body.js'
import type { Task } from './task.js'

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
