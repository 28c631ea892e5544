import { isNativeError } from 'node:util/types'

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
  // The upstream said so (503, 529): its capacity, not a fault of its own.
  upstream_overloaded: row(
    [500, 'upstream_error', 'upstream_overloaded', 503],
    [529, 'overloaded_error'],
    [503, 5001],
    null,
  ),
  upstream_timeout: row([500, 'upstream_error', 'upstream_timeout', 504], [504, 'api_error'], [504, 5002]),
  // Written to the log only: the caller has left.
  caller_left: row([499, INVALID, 'client_closed_request'], [499, INVALID], [499, 1200]),
  internal: row([500, 'api_error', 'internal_error'], [500, 'api_error'], [500, 5000]),
} as const satisfies Record<string, ErrorRow>

export type ErrorKind = keyof typeof ERROR_KINDS

/** Failures of an upstream, before its answer began or after. */
export const UPSTREAM_FAILURES: ReadonlySet<ErrorKind> = new Set<ErrorKind>([
  'upstream_failed',
  'upstream_overloaded',
  'upstream_timeout',
])

/**
 * How far a failed upstream attempt went: `unsent` = not a byte was written, `sent` = written but unanswered (the
 * upstream may have done the work), `answered` = the upstream refused. `channelError` = the channel, not the call.
 */
export interface FailedAttempt {
  readonly phase: 'unsent' | 'sent' | 'answered'
  readonly channelError?: boolean
}

export interface GatewayErrorDetails {
  /** The precise word of the specification, or a stable snake-case word of ours; absent = the kind's own code. */
  readonly code?: string
  /** The field at fault, as the caller wrote its path. */
  readonly param?: string
  /** For the log only, after scrubbing; never rendered. */
  readonly cause?: unknown
  /** Seconds, 1 to 60; rendered as `Retry-After`. */
  readonly retryAfterSeconds?: number
  /** False where a retry cannot help or may be billed twice; absent = the kind's own rule. */
  readonly retryable?: boolean
  /** Rendered as `Allow`; only with kind `method_not_allowed`. */
  readonly allow?: readonly string[]
  /** Rendered as they are; only with kind `upgrade_required`, where they say what to upgrade to. */
  readonly headers?: Readonly<Record<string, string>>
  /** Set on upstream failures: how far the attempt went, which decides whether another channel may be tried. */
  readonly attempt?: FailedAttempt
  /** An upstream's own error answer already in the caller's dialect, relayed instead of a rendered one. */
  readonly relayed?: { readonly status: number; readonly body: string }
  /** An upstream's own error frame, shown after the first byte instead of a rendered one. */
  readonly frame?: string
}

/** The one error of the house. What a status, type and body it becomes is decided by `error-kinds` and the envelopes. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'

  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly details: GatewayErrorDetails = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
  }
}

/** No route, or none for this caller: the exception filter says what is near, the same wherever it is thrown. */
export class UnknownPath extends GatewayError {
  constructor() {
    super('not_found', 'There is nothing at this path.')
  }
}

const MAXIMUM_MESSAGE_CHARACTERS = 512

/** Hosts, addresses, keys, organisation and project ids that an upstream's text may carry. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:https?|wss?):\/\/[^\s"'<>)\\]+/gi, '[address]'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b/g, '[address]'],
  // A match begins at a whole name only: one that may begin at each label takes quadratic time on a long text.
  [
    /(?<![a-z0-9-]|[a-z0-9-]\.)(?:[a-z0-9-]+\.)+(?:com|net|org|io|ai|dev|cloud|internal|local|cn)(?::\d{1,5})?\b/gi,
    '[host]',
  ],
  // How Node and undici name the address they could not reach, whatever its domain.
  [/\b((?:getaddrinfo|connect) [A-Z_]{3,} |attempted address(?:es)?: )[^\s,)]+/g, '$1[host]'],
  // Before accounts: the key of a project names it.
  [/\b(?:sk|pk|rk|whsec)[-_][A-Za-z0-9*_-]{4,}|\bkey[-_][A-Za-z0-9*_-]{12,}/gi, '[key]'],
  [/\b(?:org|proj)[-_][A-Za-z0-9_-]{3,}/g, '[account]'],
  [/\bBearer\s+[^\s"\\]+/gi, 'Bearer [key]'],
]

/** An upstream's words without its hosts, account ids and keys. */
export function scrubMessage(text: string): string {
  let scrubbed = text
  for (const [pattern, replacement] of SECRETS) scrubbed = scrubbed.replace(pattern, replacement)
  return scrubbed
}

/** JSON text of an upstream's value, all its words scrubbed and no message too long; identifiers stay as they are. */
export function scrubbedJson(value: unknown): string {
  return JSON.stringify(value, (name, member: unknown) => {
    if (typeof member !== 'string' || IDENTIFIERS.has(name)) return member
    const scrubbed = scrubMessage(member)
    return name === 'message' && scrubbed.length > MAXIMUM_MESSAGE_CHARACTERS ? clipped(scrubbed) : scrubbed
  })
}

const IDENTIFIERS: ReadonlySet<string> = new Set(['code', 'type', 'param', 'request_id'])

/** At most 512 characters, without control characters, safe to show in a terminal or a log line. */
export function presentableMessage(text: string): string {
  const clean = text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
  return clean.length <= MAXIMUM_MESSAGE_CHARACTERS ? clean : clipped(clean)
}

function clipped(text: string): string {
  const cut = text.slice(0, MAXIMUM_MESSAGE_CHARACTERS - 1)
  // A cut through a surrogate pair would leave half a character.
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}

/** A caller's value as it may appear in a message: quoted, escaped, short. */
export function quoted(value: string): string {
  const short = value.length <= 64 ? value : `${value.slice(0, 63)}…`
  return `'${presentableMessage(short).replace(/[<>&']/g, '')}'`
}

/** Whether the system, or Node, said so: `ENOENT`, `EAGAIN` … */
export const hasCode = (error: unknown, code: string): boolean =>
  isNativeError(error) && 'code' in error && error.code === code

/** The transport's own word for a failure, wherever in it that stands; '' when there is none. */
export function codeOf(error: Error): string {
  if ('code' in error && typeof error.code === 'string') return error.code
  // Dual-stack dialling reports all its attempts in one error.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return codeOf(error.errors[0])
  return error.cause instanceof Error ? codeOf(error.cause) : ''
}

/** What is wrong with a value: `path` names the field as the caller wrote it (`messages[2].role`). */
export interface FieldError {
  readonly path: string
  readonly code: string
  readonly message: string
}
