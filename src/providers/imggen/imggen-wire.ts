import { JsonBody } from '../../core/json-body.js'
import type { UpstreamResponse } from '../../upstream/upstream-exchange.js'
import { IMAGE_STATUSES } from '../image.contract.js'

/** Of a submit result, whose `result` is what was asked for. */
const SUCCESS_CODE = 1

/** What is no longer is surely something: blanks and `null` are short. */
const BEGINNING_BYTES = 64

/** An answer as far as it could be read. */
export interface ImggenAnswer {
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
export function readImggenAnswer(
  { status, headers }: Pick<UpstreamResponse, 'status' | 'headers'>,
  bytes: Buffer,
): ImggenAnswer {
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

export const isSuccessful = ({ httpStatus }: ImggenAnswer): boolean => httpStatus >= 200 && httpStatus < 300

/** The task object in a successful answer; undefined when it holds none. */
export function taskIn(answer: ImggenAnswer): JsonBody | undefined {
  const { body, code } = answer
  if (!isSuccessful(answer) || body === undefined) return undefined
  const { id, status } = body.fields
  // A relay's row that nobody has worked on yet has no status; a framework's error has a number there.
  if (status !== undefined && status !== null && typeof status !== 'string') return undefined
  const hasId = (typeof id === 'string' && id !== '') || typeof id === 'number'
  return STATUSES.has(status) || (hasId && code === undefined) ? body : undefined
}

const STATUSES: ReadonlySet<unknown> = new Set(IMAGE_STATUSES)

/** The seed in a successful submit result; undefined when it is none. */
export function seedIn(answer: ImggenAnswer): string | undefined {
  const { body, code } = answer
  if (!isSuccessful(answer) || body === undefined || code !== SUCCESS_CODE) return undefined
  const { result } = body.fields
  const seed = typeof result === 'number' ? body.textOf('result') : result
  return typeof seed === 'string' && seed !== '' ? seed : undefined
}

function objectIn(bytes: Buffer): JsonBody | undefined {
  try {
    return JsonBody.parse(bytes)
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
