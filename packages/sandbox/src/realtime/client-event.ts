import { fieldOf, isObject, type JsonObject, parseJsonObject } from '../server/json-value.js'
import type { SocketMessage } from '../server/websocket-session.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { RealtimeRejection } from './realtime-rejection.js'
import { anything, type Check, integer, nullable, objectOf, oneOf, text } from './validation.js'

const LONGEST_EVENT_ID = 512
const LONGEST_AUDIO_MS = 24 * 3_600_000
const commonEventFields = { type: anything, event_id: text(LONGEST_EVENT_ID) }
const itemId = text()

const RULES = {
  'session.update': objectOf({ ...commonEventFields, session: anything }, ['session']),
  'input_audio_buffer.append': objectOf({ ...commonEventFields, audio: anything }, ['audio']),
  'input_audio_buffer.commit': objectOf(commonEventFields),
  'input_audio_buffer.clear': objectOf(commonEventFields),
  'conversation.item.create': objectOf({ ...commonEventFields, item: anything, previous_item_id: nullable(text()) }, [
    'item',
  ]),
  'conversation.item.retrieve': objectOf({ ...commonEventFields, item_id: itemId }, ['item_id']),
  'conversation.item.truncate': objectOf(
    {
      ...commonEventFields,
      item_id: itemId,
      content_index: integer(0, 1000),
      audio_end_ms: integer(0, LONGEST_AUDIO_MS),
    },
    ['item_id', 'content_index', 'audio_end_ms'],
  ),
  'conversation.item.delete': objectOf({ ...commonEventFields, item_id: itemId }, ['item_id']),
  'response.create': objectOf({ ...commonEventFields, response: anything }),
  'response.cancel': objectOf({ ...commonEventFields, response_id: text() }),
  'output_audio_buffer.clear': objectOf(commonEventFields),
  'transcription_session.update': objectOf({ ...commonEventFields, session: anything }, ['session']),
} as const satisfies Readonly<Record<string, Check>>

export type ClientEventType = keyof typeof RULES

const TYPES = Object.keys(RULES) as ClientEventType[]

export interface ClientEvent {
  readonly type: ClientEventType
  readonly fields: JsonObject
}

/** Parses a frame. Throws RealtimeRejection for what is no JSON object in a text frame. */
export function parseEvent(message: SocketMessage): JsonObject {
  const event = message.isBinary ? undefined : parseJsonObject(message.data)
  if (event !== undefined) return event
  const found = message.isBinary ? 'a binary frame' : 'something else'
  throw new RealtimeRejection('invalid_json', `Expected one JSON object in a text frame, but got ${found}.`)
}

/** Judges an event by its type, as far as its top level goes. Throws RealtimeRejection. */
export function checkEvent(event: JsonObject, dialect: RealtimeDialect): ClientEvent {
  const type = event['type']
  if (type === undefined) throw new RealtimeRejection('invalid_event', "The 'type' field is missing.", 'type')
  const known = TYPES.filter((name) => dialect === 'beta' || name !== 'transcription_session.update')
  oneOf(...known)(type, 'type')
  const fields = RULES[type as ClientEventType](event, '')
  return { type: type as ClientEventType, fields: isObject(fields) ? fields : {} }
}

export function eventIdOf(event: JsonObject | undefined): string | null {
  const eventId = fieldOf(event, 'event_id')
  return typeof eventId === 'string' ? eventId : null
}
