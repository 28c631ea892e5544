import { fieldOf, isObject, type JsonObject, listOf as itemsOf, parseJsonObject } from '../server/json-value.js'
import type { SocketMessage } from '../server/websocket-session.js'
import { decodeBase64 } from './audio-format.js'
import { itemFromBeta, type RealtimeDialect } from './realtime-dialect.js'
import {
  anything,
  byType,
  type Check,
  integer,
  listOf,
  nullable,
  objectOf,
  oneOf,
  RealtimeRejection,
  text,
} from './validation.js'

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

const LONGEST_ID = 32
const id = text(LONGEST_ID)

const audio: Check = (value, path) => {
  const encoded = text()(value, path) as string
  if (decodeBase64(encoded) === undefined) {
    throw new RealtimeRejection('invalid_value', `Invalid '${path}'. Expected base64-encoded audio bytes.`, path)
  }
  return encoded
}

const inputText = objectOf({ type: anything, text: text() }, ['text'])
const inputAudio = objectOf({ type: anything, audio, transcript: nullable(text()) }, ['audio'])
const inputImage = objectOf({ type: anything, image_url: text(), detail: oneOf('auto', 'low', 'high') }, ['image_url'])
const spokenText = objectOf({ type: anything, text: text() }, ['text'])
const spokenAudio = objectOf({ type: anything, audio, transcript: nullable(text()) })

const PARTS: Readonly<Record<RealtimeDialect, Readonly<Record<string, Check>>>> = {
  ga: {
    system: byType({ input_text: inputText }),
    user: byType({ input_text: inputText, input_audio: inputAudio, input_image: inputImage }),
    assistant: byType({ output_text: spokenText, output_audio: spokenAudio }),
  },
  beta: {
    system: byType({ input_text: inputText }),
    user: byType({ input_text: inputText, input_audio: inputAudio }),
    assistant: byType({ text: spokenText, audio: spokenAudio }),
  },
}

const commonItemFields = {
  id,
  object: oneOf('realtime.item'),
  type: anything,
  status: oneOf('completed', 'incomplete', 'in_progress'),
}

const functionCall = objectOf({ ...commonItemFields, call_id: id, name: text(64), arguments: text() }, [
  'name',
  'arguments',
])
const functionCallOutput = objectOf({ ...commonItemFields, call_id: id, output: text() }, ['call_id', 'output'])
const itemReference = objectOf({ ...commonItemFields, id }, ['id'])

/**
 * Judges an item of `conversation.item.create`, or with `withReferences` one of `response.create`, and gives it back in
 * GA form. Throws RealtimeRejection.
 */
export function checkItem(dialect: RealtimeDialect, item: unknown, path: string, withReferences = false): JsonObject {
  const message: Check = (value, at) => checkMessage(dialect, value, at)
  const checks = { message, function_call: functionCall, function_call_output: functionCallOutput }
  const allowed = withReferences ? { ...checks, item_reference: itemReference } : checks
  const checked = byType(allowed)(item, path) as JsonObject
  return dialect === 'beta' ? itemFromBeta(checked) : checked
}

function checkMessage(dialect: RealtimeDialect, value: unknown, path: string): unknown {
  const roles = PARTS[dialect]
  const role = oneOf(...Object.keys(roles))
  const fields = { ...commonItemFields, role, content: listOf(anything) }
  const message = objectOf(fields, ['role', 'content'])(value, path)
  if (!isObject(message)) return message
  const part = roles[String(message['role'])] ?? anything
  return {
    ...message,
    content: itemsOf(message['content']).map((one, index) => part(one, `${path}.content[${index}]`)),
  }
}
