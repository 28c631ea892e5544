import type { Generated, Selectable } from 'kysely'

/** Rows as `migrations/*.sql` makes them. Columns that end in `_ms` are Unix milliseconds. */
export interface DatabaseSchema {
  task: TaskTable
  callback_delivery: CallbackDeliveryTable
  idempotency_key: IdempotencyKeyTable
  api_key: ApiKeyTable
  admin_audit: AdminAuditTable
  usage_record: UsageRecordTable
  usage_hour: UsageHourTable
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

/** Numeric columns are read as text: nothing that is charged for passes through a float. */
export interface UsageRecordTable {
  id: string
  /** null for ended tasks. */
  request_id: string | null
  at_ms: number
  key_id: string
  owner_id: string
  kind: string
  route: string
  model: string | null
  channel_id: string | null
  outcome: string
  duration_ms: number | null
  prompt_tokens: string | null
  cached_tokens: string | null
  cached_audio_tokens: string | null
  cache_write_tokens: string | null
  cache_write_hour_tokens: string | null
  audio_input_tokens: string | null
  completion_tokens: string | null
  audio_output_tokens: string | null
  reasoning_tokens: string | null
  characters: string | null
  audio_seconds: string | null
  videos: string | null
  images: string | null
  documents: string | null
  pages: string | null
  reported: string | null
  estimated: string | null
  pricing: string
  cost: string | null
}

/** Made by the store itself, and read by sums alone. */
export interface UsageHourTable {
  hour_ms: number
}

export interface ApiKeyTable {
  id: string
  key_sha256: string
  hint: string
  models: string | null
  limits: string | null
  note: string | null
  created_at_ms: number
  expires_at_ms: number | null
  revoked_at_ms: number | null
  updated_at_ms: number
}

export interface AdminAuditTable {
  sequence: Generated<number>
  at_ms: number
  actor: string
  action: string
  target: string | null
  outcome: 'begun' | 'done' | 'refused' | 'failed'
  details: string
  request_id: string
}

export type TaskRow = Selectable<TaskTable>
export type CallbackDeliveryRow = Selectable<CallbackDeliveryTable>
export type ApiKeyRow = Selectable<ApiKeyTable>
export type AdminAuditRow = Selectable<AdminAuditTable>
