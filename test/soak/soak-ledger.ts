import { createHash } from 'node:crypto'
import type { CreateAttempt, ReceivedCallback, Sighting, TaskStatus } from './soak-records.js'

/** A task object as it is on the wire. */
export interface TaskObject {
  readonly task_id: string
  readonly task_status: TaskStatus
  readonly task_info?: { readonly external_task_id?: string }
  readonly updated_at: number
}

/** What workers and receivers note while a run goes on. */
export class SoakLedger {
  readonly attempts: CreateAttempt[] = []
  readonly sightings: Sighting[] = []
  readonly trespasses: string[] = []
  readonly callbacks: ReceivedCallback[] = []
  reads = 0
  lists = 0

  /** Notes that a task was shown. */
  sight(task: TaskObject, startedAtMs: number, endedAtMs: number): void {
    const { task_id: taskId, task_status: status } = task
    this.sightings.push({ taskId, status, startedAtMs, endedAtMs, digest: digestOf(task) })
  }
}

/** Of an object, whatever wraps it. */
export const digestOf = (object: unknown): string =>
  createHash('sha256').update(JSON.stringify(object)).digest('base64url')
