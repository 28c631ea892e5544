import { GatewayError } from '../core/errors.js'

/** Ids of tasks made elsewhere may be of any kind, but they become a part of the upstream's path. */
const TASK_ID = /^[^\p{Cc}/\\]{1,256}$/u
const DOT_SEGMENTS: ReadonlySet<string> = new Set(['.', '..'])

export const unknownTask = (): GatewayError => new GatewayError('not_found', 'There is no such task.')

/** Throws `not_found` for what can be no task's id, without asking anyone. */
export function assertTaskId(id: string): void {
  if (!TASK_ID.test(id) || DOT_SEGMENTS.has(id)) throw unknownTask()
}

/** 1 to 255 printable ASCII characters. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/

/** The `Idempotency-Key` of a create; undefined without one. Throws `invalid_request`. */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined || IDEMPOTENCY_KEY.test(header)) return header
  throw new GatewayError(
    'invalid_request',
    "Invalid 'Idempotency-Key': expected 1 to 255 printable ASCII characters.",
    {
      param: 'Idempotency-Key',
      code: 'invalid_value',
    },
  )
}

/** Part of the caller's tasks, newest first. */
export interface TaskPage {
  /** From 0. */
  readonly offset: number
  readonly limit: number
}

/** The upstream's bounds; the defaults are the design's where the specification shows none. */
const PAGE_NUMBER = { name: 'pageNum', maximum: 1_000, fallback: 1 } as const
const PAGE_SIZE = { name: 'pageSize', maximum: 500, fallback: 30 } as const

interface PageParameter {
  readonly name: string
  readonly maximum: number
  readonly fallback: number
}

/** Which tasks a list shows. Throws `invalid_request` naming the parameter. */
export function readPage(query: Readonly<Record<string, unknown>>): TaskPage {
  const limit = read(query, PAGE_SIZE)
  return { offset: (read(query, PAGE_NUMBER) - 1) * limit, limit }
}

function read(query: Readonly<Record<string, unknown>>, { name, maximum, fallback }: PageParameter): number {
  const value = query[name]
  if (value === undefined) return fallback
  const number = typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : 0
  if (number >= 1 && number <= maximum) return number
  throw new GatewayError('invalid_request', `Invalid '${name}': expected a whole number from 1 to ${maximum}.`, {
    param: name,
    code: 'invalid_value',
  })
}
