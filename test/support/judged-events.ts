import { checkClientEvent, type ClientEventLimits, isEventRefusal } from '../../src/dialects/realtime/client-events.js'
import type { RealtimeDialect } from '../../src/dialects/realtime/dialect.js'
import type { EventRefusal } from '../../src/dialects/realtime/event-refusal.js'

/** The frame that is sent on. Throws when the event is refused. */
export function accepted(
  text: string | Buffer,
  dialect: RealtimeDialect = 'beta',
  limits: ClientEventLimits = {},
): Buffer {
  const judged = checkClientEvent(Buffer.from(text), dialect, limits)
  if (isEventRefusal(judged)) throw new Error(`${judged.code}: ${judged.message}`)
  return judged.frame
}

/** The refusal. Throws when the event is accepted. */
export function refused(
  text: string | Buffer,
  dialect: RealtimeDialect = 'beta',
  limits: ClientEventLimits = {},
): EventRefusal {
  const judged = checkClientEvent(Buffer.from(text), dialect, limits)
  if (!isEventRefusal(judged)) throw new Error(`accepted: ${judged.type}`)
  return judged
}

export const update = (session: string): string => `{"type":"session.update","event_id":"ev_1","session":${session}}`
export const create = (response: string): string =>
  `{"type":"response.create","event_id":"ev_1","response":${response}}`
export const createdItem = (value: string): string =>
  `{"type":"conversation.item.create","event_id":"ev_1","item":${value}}`
