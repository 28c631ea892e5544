/**
 * The one table of failures: kind → what each dialect makes of it (design: errors).
 * A dialect's renderer reads its own columns and nothing else decides a status.
 */
interface AudioColumns {
  readonly status: number
  /** Chat, realtime and everything else that renders the audio body without being `/v1/audio/*`. */
  readonly chatStatus: number
  readonly type: string
  readonly code: string | null
}

interface MessagesColumns {
  readonly status: number
  readonly type: string
}

interface TaskColumns {
  readonly status: number
  readonly code: number
}

interface ErrorRow {
  readonly audio: AudioColumns
  readonly messages: MessagesColumns
  readonly task: TaskColumns
  /** Whether a client may send the same request again by itself; null = no header, the SDK's own rule decides. */
  readonly shouldRetry: boolean | null
}

const row = (
  [status, type, code, chatStatus = status]: [number, string, string | null, number?],
  [messagesStatus, messagesType]: [number, string],
  [taskStatus, taskCode]: [number, number],
  shouldRetry: boolean | null = false,
): ErrorRow => ({
  audio: { status, chatStatus, type, code },
  messages: { status: messagesStatus, type: messagesType },
  task: { status: taskStatus, code: taskCode },
  shouldRetry,
})

const INVALID = 'invalid_request_error'

export const ERROR_KINDS = {
  invalid_request: row([400, INVALID, null], [400, INVALID], [400, 1201]),
  unauthorized: row([401, 'authentication_error', 'invalid_api_key'], [401, 'authentication_error'], [401, 1000]),
  key_missing: row([401, 'authentication_error', 'invalid_api_key'], [401, 'authentication_error'], [401, 1001]),
  key_malformed: row([401, 'authentication_error', 'invalid_api_key'], [401, 'authentication_error'], [401, 1002]),
  forbidden_model: row([403, 'permission_error', 'model_not_allowed'], [403, 'permission_error'], [403, 1103]),
  forbidden_origin: row([403, 'permission_error', 'origin_not_allowed'], [403, 'permission_error'], [403, 1103]),
  unknown_model: row([400, INVALID, 'model_not_found', 404], [404, 'not_found_error'], [400, 1201]),
  not_found: row([404, INVALID, 'not_found'], [404, 'not_found_error'], [404, 1203]),
  method_not_allowed: row([405, INVALID, 'method_not_allowed'], [405, INVALID], [405, 1202]),
  upgrade_required: row([426, INVALID, 'upgrade_required'], [426, INVALID], [426, 1200]),
  unsupported_media_type: row([415, INVALID, 'unsupported_media_type'], [415, INVALID], [415, 1200]),
  request_timeout: row([408, INVALID, 'request_timeout'], [408, INVALID], [408, 1200], null),
  header_fields_too_large: row([431, INVALID, 'header_fields_too_large'], [431, INVALID], [431, 1200]),
  conflict: row([409, INVALID, 'conflict'], [409, 'conflict_error'], [400, 1201]),
  idempotency_running: row([409, INVALID, 'idempotency_running'], [409, 'conflict_error'], [409, 1303], null),
  unprocessable: row([422, INVALID, 'unprocessable'], [422, INVALID], [422, 1201]),
  payload_too_large: row([413, INVALID, 'payload_too_large'], [413, 'request_too_large'], [413, 1200]),
  rate_limited: row([429, 'rate_limit_error', 'rate_limit_exceeded'], [429, 'rate_limit_error'], [429, 1302], null),
  overloaded: row([503, 'overloaded_error', 'overloaded'], [529, 'overloaded_error'], [503, 5001], null),
  upstream_failed: row([500, 'upstream_error', 'upstream_failed', 502], [502, 'api_error'], [502, 5000], null),
  upstream_timeout: row([500, 'upstream_error', 'upstream_timeout', 504], [504, 'api_error'], [504, 5002]),
  // Written to the log only: nobody is left to read it.
  caller_left: row([499, INVALID, 'client_closed_request'], [499, INVALID], [499, 1200]),
  internal: row([500, 'api_error', 'internal_error'], [500, 'api_error'], [500, 5000]),
} as const satisfies Record<string, ErrorRow>

export type ErrorKind = keyof typeof ERROR_KINDS
