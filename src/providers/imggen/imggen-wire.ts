import { type ErrorKind, GatewayError, scrubMessage } from '../../core/errors.js'
import { JsonBody } from '../../core/json-body.js'
import type { UpstreamResponse } from '../../upstream/exchange.js'
import { type AccountError, accountError } from '../../upstream/upstream-error.js'
import { IMAGE_STATUSES, type UpstreamImageTask } from '../contract.js'

/**
 * Whose fault an answer is: `caller` = the task or the question, `upstream` = it broke down, the others = the account
 * behind the secret.
 */
type ErrorRow =
  | { readonly fault: 'caller'; readonly kind: ErrorKind; readonly word?: string }
  | { readonly fault: 'upstream' }
  | { readonly fault: AccountError }

const INVALID: ErrorRow = { fault: 'caller', kind: 'invalid_request' }
const BUSY: ErrorRow = { fault: 'busy' }
const FAILED: ErrorRow = { fault: 'upstream' }

/** Also said where the upstream has no drawing account left. */
const NOT_FOUND_CODE = 3

/** Codes of submit results but 1, which is success. */
const IMGGEN_CODES: Readonly<Record<number, ErrorRow>> = {
  [NOT_FOUND_CODE]: FAILED,
  4: INVALID,
  9: FAILED,
  // The task waits for a window to be confirmed, or is there already: nothing that another question would change.
  21: INVALID,
  22: BUSY,
  23: BUSY,
  24: { fault: 'caller', kind: 'invalid_request', word: 'content_policy_violation' },
  30: { fault: 'quota' },
}

/** Statuses that say more than any code beside them: a relay writes code 4 beside each of its own. */
const ACCOUNT_STATUSES: Readonly<Record<number, ErrorRow>> = {
  401: { fault: 'key' },
  402: { fault: 'quota' },
  403: { fault: 'access' },
}

/** Refusals without a code that is known here. */
const OTHER_STATUSES: Readonly<Record<number, ErrorRow>> = { 400: INVALID, 422: INVALID }

const TOO_MANY_REQUESTS = 429

/** How the members of the family say that they know no such task, where they use words; the first spelling is theirs. */
export const UNKNOWN_TASK =
  /task[\s_-]*(?:(?:is|was|does)[\s_-]*)?(?:no|not|n't)[\s_-]*(?:found|exist)|no such task|unknown task|任务(?:不存在|未找到|没有找到)|(?:未找到|找不到)\S{0,60}任务/i

/** The messages under the same code that mean: no worker is available. */
const NO_ACCOUNT = /account|账号|实例/i

/** Of a submit result, whose `result` is what was asked for. */
const SUCCESS_CODE = 1

/** What is no longer is surely something: blanks and `null` are short. */
const BEGINNING_BYTES = 64

/** An answer as far as it could be read. */
export interface ImggenResponse {
  readonly httpStatus: number
  /** No body at all, or `null`. */
  readonly isEmpty: boolean
  /** HTML of some proxy, which knows nothing of tasks. */
  readonly isPage: boolean
  /** One well-formed JSON object. */
  readonly body: JsonBody | undefined
  /** Of a submit result or a refusal. */
  readonly code: number | undefined
  /** What the upstream says about it; may be empty. */
  readonly words: string
  /** 1 to 60. */
  readonly retryAfterSeconds: number | undefined
}

/** Reads what there is; never throws. The family's content types mean nothing, but for those of pages. */
export function readImggenResponse(
  { status, headers }: Pick<UpstreamResponse, 'status' | 'headers'>,
  bytes: Buffer,
): ImggenResponse {
  const beginning = bytes.subarray(0, BEGINNING_BYTES).toString('latin1').trim()
  const body = objectIn(bytes)
  const code = body?.fields['code']
  return {
    httpStatus: status,
    isEmpty: bytes.length <= BEGINNING_BYTES && (beginning === '' || beginning === 'null'),
    isPage: /^text\/html/i.test(String(headers['content-type'])) || beginning.startsWith('<'),
    body,
    code: Number.isSafeInteger(code) ? (code as number) : undefined,
    words: body === undefined ? '' : wordsIn(body.fields),
    retryAfterSeconds: retryAfterSeconds(headers['retry-after']),
  }
}

const isSuccessful = ({ httpStatus }: ImggenResponse): boolean => httpStatus >= 200 && httpStatus < 300

/** The task object in a successful answer; undefined when it holds none. */
export function taskIn(answer: ImggenResponse): JsonBody | undefined {
  const { body, code } = answer
  if (!isSuccessful(answer) || body === undefined) return undefined
  const { id, status } = body.fields
  // A relay's row that has not been started has no status; a framework's error has a number there.
  if (status !== undefined && status !== null && typeof status !== 'string') return undefined
  const hasId = (typeof id === 'string' && id !== '') || typeof id === 'number'
  return STATUSES.has(status) || (hasId && code === undefined) ? body : undefined
}

const STATUSES: ReadonlySet<unknown> = new Set(IMAGE_STATUSES)

/** The seed in a successful submit result; undefined when it is none. */
export function seedIn(answer: ImggenResponse): string | undefined {
  const { body, code } = answer
  if (!isSuccessful(answer) || body === undefined || code !== SUCCESS_CODE) return undefined
  const { result } = body.fields
  const seed = typeof result === 'number' ? body.textOf('result') : result
  return typeof seed === 'string' && seed !== '' ? seed : undefined
}

function objectIn(bytes: Buffer): JsonBody | undefined {
  try {
    return JsonBody.parse(bytes, { source: 'upstream' })
  } catch {
    return undefined
  }
}

/** Where the members of the family, and frameworks under them, put their words. */
const WORDS = ['description', 'message', 'error', 'detail', 'title'] as const

function wordsIn(fields: Readonly<Record<string, unknown>>): string {
  for (const name of WORDS) {
    const value = fields[name]
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string') {
      return value.message
    }
  }
  return ''
}

function retryAfterSeconds(header: string | string[] | undefined): number | undefined {
  const seconds = typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : undefined
  return seconds === undefined ? undefined : Math.min(60, Math.max(1, seconds))
}

interface ImggenCredentials {
  readonly secret: string
  readonly callersKey: boolean
}

/** Each member of the family has a way of its own to say that it knows no such task; a page of some proxy is none. */
export function saysUnknownTask(answer: ImggenResponse): boolean {
  const { httpStatus, isPage, words, code } = answer
  if (isPage || NO_ACCOUNT.test(words)) return false
  if (httpStatus === 404) return true
  if (isSuccessful(answer) && answer.isEmpty) return true
  if (!isSuccessful(answer) && httpStatus !== 400) return false
  return code === NOT_FOUND_CODE || UNKNOWN_TASK.test(words)
}

/** The failure that an answer without a task is. The upstream's words are shown only where the fault is the caller's. */
export function imggenFailure(answer: ImggenResponse, { secret, callersKey }: ImggenCredentials): GatewayError {
  const reported = `status ${answer.httpStatus}${answer.code === undefined ? '' : `, code ${answer.code}`}`
  const words = scrubMessage(answer.words.replaceAll(secret, '[key]'))
  const cause = words === '' ? reported : `${reported}: ${words}`
  const row = rowOf(answer)
  switch (row.fault) {
    case 'caller': {
      const message = words === '' ? `The upstream refused the request (${reported}).` : words
      const code = row.word === undefined ? {} : { code: row.word }
      return new GatewayError(row.kind, message, { cause, attempt: { phase: 'answered' }, ...code })
    }
    case 'upstream':
      return isSuccessful(answer) && answer.code === undefined
        ? unreadableResponse(cause)
        : brokenDown('The upstream failed.', cause)
    case 'key':
    case 'access':
    case 'quota':
    case 'busy':
      return accountError(row.fault, callersKey, { cause, retryAfterSeconds: answer.retryAfterSeconds ?? 1 })
  }
}

export const unreadableResponse = (cause: string): GatewayError =>
  brokenDown('The upstream answered with something that cannot be read.', cause)

const brokenDown = (message: string, cause: string): GatewayError =>
  new GatewayError('upstream_failed', message, { cause, attempt: { phase: 'answered', channelError: true } })

function rowOf({ httpStatus, isPage, code }: ImggenResponse): ErrorRow {
  const byCode = isPage || code === undefined ? undefined : IMGGEN_CODES[code]
  // An empty account is more specific than 429; every other code is not.
  if (httpStatus === TOO_MANY_REQUESTS) return byCode?.fault === 'quota' ? byCode : BUSY
  if (isPage) return FAILED
  return (
    ACCOUNT_STATUSES[httpStatus] ??
    (httpStatus >= 500 ? FAILED : undefined) ??
    byCode ??
    OTHER_STATUSES[httpStatus] ??
    FAILED
  )
}

type FieldType = 'string' | 'integer' | 'array' | 'object'

/** Specification: Image task, fields, in its order. */
export const IMAGE_TASK_FIELDS = {
  id: 'string',
  action: 'string',
  customId: 'string',
  botType: 'string',
  prompt: 'string',
  promptEn: 'string',
  description: 'string',
  state: 'string',
  submitTime: 'integer',
  startTime: 'integer',
  finishTime: 'integer',
  imageUrl: 'string',
  status: 'string',
  progress: 'string',
  failReason: 'string',
  buttons: 'array',
  maskBase64: 'string',
  properties: 'object',
} as const satisfies Record<string, FieldType>

/** JSON text of a field that says nothing. */
const EMPTY: Readonly<Record<FieldType, string>> = { string: '""', integer: '0', array: '[]', object: '{}' }

const TERMINAL: ReadonlySet<string> = new Set(['SUCCESS', 'FAILURE', 'CANCEL'])

/** No leading zeros: those are no JSON number. */
const DIGITS = /^(?:0|[1-9]\d*)$/

/**
 * The task object with every field of the specification: what is missing or null is filled in, numbers and texts that
 * stand for each other are exchanged, everything else keeps the upstream's bytes. A `seed` goes into `properties.seed`.
 */
export function imageTaskOf(task: JsonBody, askedId: string, seed?: string): UpstreamImageTask {
  const edits: Record<string, string> = {}
  for (const [name, type] of Object.entries(IMAGE_TASK_FIELDS)) {
    const text = mended(task.fields[name], task.textOf(name) ?? '', type)
    if (text !== undefined) edits[name] = text
  }
  if (edits['id'] === EMPTY.string) edits['id'] = JSON.stringify(askedId)
  if (seed !== undefined) edits['properties'] = propertiesWith(seed, task)
  const status = textIn(task, 'status')
  return {
    status,
    progress: textIn(task, 'progress'),
    imageUrl: textIn(task, 'imageUrl'),
    isTerminal: TERMINAL.has(status),
    object: task.edited(edits).toString().trim(),
  }
}

/** What has to stand there instead; undefined = it may stay. */
function mended(value: unknown, text: string, type: FieldType): string | undefined {
  if (value === undefined || value === null) return EMPTY[type]
  if (type === 'string') return typeof value === 'number' ? JSON.stringify(text) : undefined
  // Some relays keep everything as text, and nothing as an empty one.
  if (value === '') return EMPTY[type]
  return type === 'integer' && typeof value === 'string' && DIGITS.test(value) ? value : undefined
}

function propertiesWith(seed: string, task: JsonBody): string {
  const properties = task.fields['properties']
  const isObject = typeof properties === 'object' && properties !== null && !Array.isArray(properties)
  const text = isObject ? (task.textOf('properties') ?? EMPTY.object) : EMPTY.object
  return JsonBody.parse(Buffer.from(text), { source: 'upstream' })
    .edited({ seed: JSON.stringify(seed) })
    .toString()
}

function textIn(task: JsonBody, name: string): string {
  const value = task.fields[name]
  if (typeof value === 'string') return value
  return typeof value === 'number' ? (task.textOf(name) ?? '') : ''
}
