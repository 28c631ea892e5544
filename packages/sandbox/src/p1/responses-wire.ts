import { randomBytes } from 'node:crypto'
import type { JsonObject } from '../server/json-value.js'

export interface ResponseEvent extends JsonObject {
  readonly type: string
  readonly sequence_number: number
}

/** Ids of responses and of their items. */
export const newId = (prefix: 'resp' | 'msg' | 'rs' | 'fc' | 'ctc'): string =>
  `${prefix}_${randomBytes(25).toString('hex')}`

/** Whether the event is the last of its response, and holds all of it. */
export const isLast = (event: ResponseEvent): boolean =>
  ['response.completed', 'response.incomplete', 'response.failed'].includes(event.type)

/** Events that a stream with an error frame has before it. */
export const EVENTS_BEFORE_FAILURE = 2

/** An event as the stream writes it. */
export const eventFrame = (event: ResponseEvent): string => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
