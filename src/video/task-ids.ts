import { GatewayError } from '../core/gateway-error.js'

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
