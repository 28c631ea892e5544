import { type ErrorKind, GatewayError, scrubMessage } from '../../core/errors.js'
import { JsonBody } from '../../core/json-body.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { type AccountError, accountError } from '../../upstream/upstream-error.js'
import type { UpstreamVideoTask, VideoTaskStatus } from '../contract.js'

/** An answer as far as it could be read. */
export interface VidgenResponse {
  readonly httpStatus: number
  /** One well-formed JSON object. */
  readonly isReadable: boolean
  /** 0 = success, whatever the HTTP status says. */
  readonly code: number | undefined
  readonly message: string
  readonly requestId: string | undefined
  /** JSON text of `data` as the upstream spelled it. */
  readonly data: string | undefined
  /** 1 to 60. */
  readonly retryAfterSeconds: number | undefined
}

type ResponseHead = Pick<UpstreamResponse, 'status' | 'headers'>

/** Reads what there is; never throws. */
export function readVidgenResponse({ status, headers }: ResponseHead, bytes: Buffer): VidgenResponse {
  const envelope = objectIn(bytes)
  const { code, message, request_id: requestId } = envelope?.fields ?? {}
  return {
    httpStatus: status,
    isReadable: envelope !== undefined,
    code: wholeNumber(code),
    message: typeof message === 'string' ? message : '',
    requestId: typeof requestId === 'string' && requestId !== '' ? requestId : undefined,
    data: envelope?.textOf('data'),
    retryAfterSeconds: retryAfterSeconds(headers['retry-after']),
  }
}

/**
 * The task in a successful answer; undefined when its task or its state is not given. `askedId`
 * stands in for an id that is missing.
 */
export function taskIn({ data = '', message }: VidgenResponse, askedId?: string): UpstreamVideoTask | undefined {
  const task = objectIn(Buffer.from(data))
  if (task === undefined) return undefined
  const id = idOf(task) ?? askedId
  const status = task.fields['task_status']
  if (id === undefined || !isStatus(status)) return undefined
  const updatedAtMs = wholeNumber(task.fields['updated_at'])
  return { id, status, object: data, message, ...(updatedAtMs === undefined ? {} : { updatedAtMs }) }
}

function objectIn(bytes: Buffer): JsonBody | undefined {
  try {
    return JsonBody.parse(bytes, { source: 'upstream' })
  } catch {
    return undefined
  }
}

/** An id may be a number too large for JavaScript: its digits are taken as they stand. */
function idOf(task: JsonBody): string | undefined {
  const value = task.fields['task_id']
  const id = typeof value === 'number' ? task.textOf('task_id') : value
  const isUsable = typeof id === 'string' && (typeof value === 'number' ? DIGITS : USABLE_ID).test(id)
  return isUsable ? id : undefined
}

const DIGITS = /^\d+$/
/** One that could not be asked for again is as good as none. */
const USABLE_ID = /^[\x21-\x7e]{1,256}$/

const isStatus = (value: unknown): value is VideoTaskStatus => STATUSES.has(value)

const STATUSES: ReadonlySet<unknown> = new Set<VideoTaskStatus>(['submitted', 'processing', 'succeed', 'failed'])

function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && DIGITS.test(value) ? Number(value) : value
  return Number.isSafeInteger(number) ? (number as number) : undefined
}

function retryAfterSeconds(header: string | string[] | undefined): number | undefined {
  const seconds = wholeNumber(header)
  return seconds === undefined ? undefined : Math.min(60, Math.max(1, seconds))
}

/**
 * Whose fault an answer is. `caller` = it would be refused on every channel; `closed` = the upstream takes nothing on
 * for a while; `upstream` = it broke down, and may have done the work before; the others = the account behind the key.
 */
type CodeRow =
  | { readonly fault: 'caller'; readonly kind: ErrorKind; readonly word?: string }
  | { readonly fault: 'closed'; readonly retryAfterSeconds: number }
  | { readonly fault: 'upstream'; readonly kind: ErrorKind }
  | {
      readonly fault: AccountError
      readonly word?: string
      readonly retryAfterSeconds?: number
      /** Another token may be accepted. */
      readonly staleToken?: true
    }

const KEY: CodeRow = { fault: 'key' }
const STALE: CodeRow = { fault: 'key', staleToken: true }
const QUOTA: CodeRow = { fault: 'quota' }
const ACCESS: CodeRow = { fault: 'access' }
const INVALID: CodeRow = { fault: 'caller', kind: 'invalid_request' }
const MISSING: CodeRow = { fault: 'caller', kind: 'not_found' }
const POLICY: CodeRow = { fault: 'caller', kind: 'invalid_request', word: 'content_policy_violation' }
const BUSY: CodeRow = { fault: 'busy' }

const FAILED: CodeRow = { fault: 'upstream', kind: 'upstream_failed' }

const UNKNOWN_TASK = 1203

/** Every documented code but 0, which is success. The same HTTP status stands for different faults: codes come first. */
export const VIDGEN_CODES: Readonly<Record<number, CodeRow>> = {
  1000: KEY,
  1001: KEY,
  1002: KEY,
  // The clocks differ, or the token has grown old on its way.
  1003: STALE,
  1004: STALE,
  1100: ACCESS,
  1101: QUOTA,
  1102: QUOTA,
  1103: ACCESS,
  1200: INVALID,
  1201: INVALID,
  1202: MISSING,
  [UNKNOWN_TASK]: MISSING,
  1300: POLICY,
  1301: POLICY,
  1302: BUSY,
  // A place is free when one of the account's tasks ends, which takes a while.
  1303: { fault: 'busy', word: 'concurrency_limit_exceeded', retryAfterSeconds: 5 },
  // The gateway's address is not on the account's list.
  1304: ACCESS,
  5000: FAILED,
  5001: { fault: 'closed', retryAfterSeconds: 30 },
  5002: { fault: 'upstream', kind: 'upstream_timeout' },
}

/** Refusals without a code that is known here. With any other status the upstream may have done the work. */
const VIDGEN_STATUSES: Readonly<Record<number, CodeRow>> = {
  400: INVALID,
  401: KEY,
  402: QUOTA,
  403: ACCESS,
  404: MISSING,
  413: { fault: 'caller', kind: 'payload_too_large' },
  422: INVALID,
  429: BUSY,
}

/** What was asked, and with what. */
export interface VidgenRequest {
  /** A create that broke down may have made a task; a read has changed nothing. */
  readonly operation: 'create' | 'read'
  readonly callersKey: boolean
  readonly secrets: readonly string[]
}

/** Success by the upstream's word, or where it says none, by the status of an answer that can be read. */
export const isSuccess = ({ code, httpStatus, isReadable }: VidgenResponse): boolean =>
  code === 0 || (code === undefined && isReadable && httpStatus >= 200 && httpStatus < 300)

/** A page of some proxy is no word about the task, whatever its status. */
export const saysUnknownTask = ({ code, httpStatus, isReadable }: VidgenResponse): boolean =>
  code === UNKNOWN_TASK || (httpStatus === 404 && isReadable && knownRow(code) === undefined)

/** Whether the same request may be accepted with a newly signed token. */
export function saysStaleToken({ code }: VidgenResponse): boolean {
  const row = knownRow(code)
  return row !== undefined && 'staleToken' in row
}

/** The failure that an answer without success is. The upstream's words are shown only where the fault is the caller's. */
export function vidgenFailure(answer: VidgenResponse, request: VidgenRequest): GatewayError {
  const row = rowOf(answer)
  const reported = answer.code === undefined ? `status ${answer.httpStatus}` : `code ${answer.code}`
  const words = wordsOf(answer, request)
  const cause = words === '' ? reported : `${reported}: ${words}`
  switch (row.fault) {
    case 'caller': {
      const message = words === '' ? `The upstream refused the request (${reported}).` : words
      return new GatewayError(row.kind, message, { cause, attempt: { phase: 'answered' }, ...codeOf(row) })
    }
    case 'closed':
      return new GatewayError('upstream_failed', 'The upstream is closed for maintenance. Please try again later.', {
        cause,
        attempt: { phase: 'answered', channelError: true },
        retryAfterSeconds: answer.retryAfterSeconds ?? row.retryAfterSeconds,
      })
    case 'upstream':
      return brokenDown(row.kind, `The upstream failed with ${reported}.`, request, cause)
    case 'key':
    case 'access':
    case 'quota':
    case 'busy': {
      const retryAfterSeconds = answer.retryAfterSeconds ?? row.retryAfterSeconds ?? 1
      const { kind, message, details } = accountError(row.fault, request.callersKey, { cause, retryAfterSeconds })
      return new GatewayError(kind, message, { ...details, ...codeOf(row) })
    }
  }
}

/** An answer that cannot be read, or holds no task that can be. */
export const unreadableResponse = (request: Pick<VidgenRequest, 'operation'>, cause?: string): GatewayError =>
  brokenDown('upstream_failed', 'The upstream answered with something that cannot be read.', request, cause)

function brokenDown(
  kind: GatewayError['kind'],
  message: string,
  { operation }: Pick<VidgenRequest, 'operation'>,
  cause?: string,
): GatewayError {
  const isCreate = operation === 'create'
  return new GatewayError(kind, isCreate ? `${message} It may have made the task all the same.` : message, {
    ...(cause === undefined ? {} : { cause }),
    attempt: { phase: isCreate ? 'sent' : 'answered', channelError: true },
    ...(isCreate ? { retryable: false } : {}),
  })
}

const knownRow = (code: number | undefined): CodeRow | undefined =>
  code === undefined ? undefined : VIDGEN_CODES[code]

function rowOf({ code, httpStatus, isReadable }: VidgenResponse): CodeRow {
  const known = knownRow(code)
  if (known !== undefined) return known
  // A proxy refuses a body that is too large before the upstream sees it; other pages of proxies say nothing certain.
  const isDefinite = isReadable || httpStatus === 413
  return (isDefinite ? VIDGEN_STATUSES[httpStatus] : undefined) ?? FAILED
}

function wordsOf({ message }: VidgenResponse, { secrets }: VidgenRequest): string {
  let words = message
  for (const secret of secrets) words = words.replaceAll(secret, '[key]')
  return scrubMessage(words)
}

const codeOf = ({ word }: { readonly word?: string }): { readonly code?: string } =>
  word === undefined ? {} : { code: word }
