import type { Readable } from 'node:stream'
import type { Generated, Kysely, Selectable } from 'kysely'
import { GatewayError } from '../core/errors.js'

/** Rows as `migrations/*.sql` makes them. Columns that end in `_ms` are Unix milliseconds. */
export interface DatabaseSchema {
  task: TaskTable
  callback_delivery: CallbackDeliveryTable
  idempotency_key: IdempotencyKeyTable
  response_pin: ResponsePinTable
  background_response: BackgroundResponseTable
  kept_response: KeptResponseTable
  kept_item: KeptItemTable
  api_key: ApiKeyTable
  admin_audit: AdminAuditTable
  usage_record: UsageRecordTable
  usage_hour: UsageHourTable
}

interface TaskTable {
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

interface CallbackDeliveryTable {
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

interface IdempotencyKeyTable {
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

interface ResponsePinTable {
  owner_id: string
  id: string
  response_id: string
  channel_id: string
  created_at_ms: number
}

export interface BackgroundResponseTable {
  owner_id: string
  id: string
  channel_id: string
  model: string
  route: string
  created_at_ms: number
  next_poll_at_ms: number
  locked_until_ms: Generated<number>
  polls: Generated<number>
  misses: Generated<number>
}

interface KeptResponseTable {
  owner_id: string
  id: string
  previous: string | null
  response: string
  item_bytes: number
  created_at_ms: number
}

interface KeptItemTable {
  owner_id: string
  response_id: string
  place: number
  id: string
  is_output: boolean
  is_made: boolean
  item: string
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
  reason: string | null
  requests: Generated<number>
  translation: string | null
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
interface UsageHourTable {
  hour_ms: number
}

interface ApiKeyTable {
  id: string
  key_sha256: string
  hint: string
  models: string | null
  limits: string | null
  translation: string | null
  note: string | null
  created_at_ms: number
  expires_at_ms: number | null
  revoked_at_ms: number | null
  updated_at_ms: number
}

interface AdminAuditTable {
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

/** One way to have a PostgreSQL: inside the process, or by address. */
export interface StoreEngine {
  /** True when only this process can bring the store back: then the next use opens it instead of waiting. */
  readonly isLocal: boolean
  /**
   * Opens and migrates. Rejects with `StoreUnusable` where the operator must act, otherwise with the error of the
   * connection. May be called again once what it gave is lost or closed.
   */
  open(): Promise<OpenStore>
}

export interface OpenStore {
  readonly queries: Kysely<DatabaseSchema>
  /** Resolves with the cause when the store is found lost while it is idle; never rejects. */
  readonly lost: Promise<unknown>
  /** Whether the store still answers after one of its connections has failed with this error; never rejects. */
  survives(error: unknown): Promise<boolean>
  /** The files of an embedded store, as a tar, while it is used; one at a time. */
  snapshot?(): Readable
  /** Ends the connections, after the queries under way; safe on a store that is lost. */
  close(): Promise<void>
}

/** A store as it is found, for a command: nothing of it is migrated, and nothing works in it by itself. */
export interface BareStore {
  readonly queries: Kysely<DatabaseSchema>
  close(): Promise<void>
}

/** The store cannot be used as it is set up, and waiting will not help. The message tells the operator what to do. */
export class StoreUnusable extends Error {
  override readonly name = 'StoreUnusable'
}

/** The store, embedded or PostgreSQL, behind one query layer; also the injection token. Repositories alone use it. */
export abstract class Database {
  /**
   * Runs queries once the store is open (it is opened, and migrated, by the first one who asks). Rejects with
   * `GatewayError('overloaded')` when the store cannot be opened or the connection is lost; other database errors pass as
   * they are, with PostgreSQL's `code`.
   */
  abstract run<Result>(work: (queries: Kysely<DatabaseSchema>) => Promise<Result>): Promise<Result>
  /** The same inside one transaction, which is run again when another one stood in its way: `work` does nothing but queries. */
  abstract transaction<Result>(work: (queries: Kysely<DatabaseSchema>) => Promise<Result>): Promise<Result>
  /**
   * Opens and migrates now. Rejects with `StoreUnusable`, whose message tells the operator what to do, or with
   * `GatewayError('overloaded')` while PostgreSQL cannot be reached: it is looked for in the background from then on.
   */
  abstract open(): Promise<void>
  /**
   * Calls back once, when the store is open for the first time; at once when it is. For loops that work on rows: they start
   * here and stop in `beforeApplicationShutdown`, because the store closes in `onApplicationShutdown`.
   */
  abstract whenOpen(listener: () => void): void

  /**
   * The files of the embedded store as a tar, for a backup while it is used. Rejects with `GatewayError`: `invalid_request` where
   * there is none, `conflict` while another one is made.
   */
  snapshot(): Promise<Readable> {
    return Promise.reject(
      new GatewayError('invalid_request', 'This gateway has no embedded store: back up its PostgreSQL itself.'),
    )
  }
}
