import { JsonBody } from '../../core/json-body.js'
import type { UpstreamResponse } from '../../upstream/upstream-exchange.js'
import type { UpstreamVideoTask, VideoTaskStatus } from '../video.contract.js'

/** An answer as far as it could be read. */
export interface VidgenAnswer {
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

type AnswerHead = Pick<UpstreamResponse, 'status' | 'headers'>

/** Reads what there is; never throws. */
export function readVidgenAnswer({ status, headers }: AnswerHead, bytes: Buffer): VidgenAnswer {
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
 * The task in a successful answer; undefined when it cannot be told which task it is, or where it stands. `askedId`
 * stands in for an id that is missing.
 */
export function taskIn({ data = '', message }: VidgenAnswer, askedId?: string): UpstreamVideoTask | undefined {
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
    return JsonBody.parse(bytes)
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
