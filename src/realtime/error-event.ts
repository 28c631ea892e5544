import { randomBytes } from 'node:crypto'

/** What an `error` event says; absent members are null on the wire, as upstream. */
export interface RealtimeError {
  readonly type: 'invalid_request_error' | 'rate_limit_error' | 'server_error'
  readonly code: string
  readonly message: string
  readonly param?: string | null | undefined
  /** Of the client event at fault. */
  readonly eventId?: string | null | undefined
}

/** Random per process and counted within it. */
const PREFIX = `event_gw${randomBytes(8).toString('hex')}`
let count = 0

/** The frame of an `error` event, which reads the same in both dialects. */
export function errorEvent({ type, code, message, param = null, eventId = null }: RealtimeError): Buffer {
  const error = { type, code, message, param, event_id: eventId }
  return Buffer.from(JSON.stringify({ type: 'error', event_id: `${PREFIX}${(++count).toString(16)}`, error }))
}
