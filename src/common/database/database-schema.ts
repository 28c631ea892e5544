import type { Generated, Selectable } from 'kysely'

/** Rows as `migrations/*.sql` makes them. Columns that end in `_ms` are Unix milliseconds. */
export interface DatabaseSchema {
  task: TaskTable
  callback_delivery: CallbackDeliveryTable
  idempotency_key: IdempotencyKeyTable
}

export interface TaskTable {
  id: string
  kind: string
  owner_id: string
  channel_id: string
  model: string
  state: string
  upstream_task_id: string | null
  external_task_id: string | null
  upstream_external_id: string
  object: string | null
  callback_url: string | null
  callback_token: string
  next_poll_at_ms: number
  locked_until_ms: number
  hastened: Generated<boolean>
  polls: Generated<number>
  misses: Generated<number>
  created_at_ms: number
  updated_at_ms: number
  deadline_at_ms: number
}

export interface CallbackDeliveryTable {
  sequence: Generated<number>
  webhook_id: string
  task_id: string
  owner_id: string
  url: string
  host: string
  body: string
  attempts: Generated<number>
  created_at_ms: number
  next_attempt_at_ms: number | null
  locked_until_ms: Generated<number>
  delivered_at_ms: number | null
  exhausted_at_ms: number | null
  last_error: string | null
}

export interface IdempotencyKeyTable {
  owner_id: string
  route: string
  key: string
  fingerprint: string
  task_id: string
  /** With `body`, of the stored answer; null while the create is running. */
  status: number | null
  body: string | null
  expires_at_ms: number
}

export type TaskRow = Selectable<TaskTable>
export type CallbackDeliveryRow = Selectable<CallbackDeliveryTable>
