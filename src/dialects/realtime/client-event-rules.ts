import { fault, type FieldRule, integer, list, optional, record, required, text } from '../../core/validation-rules.js'
import type { RealtimeDialect } from './dialect.js'
import { betaResponse, betaSession, betaTranscriptionSession, gaResponse, gaSession } from './session-rules.js'
import { isStrictBase64 } from './strict-base64.js'

export const MAXIMUM_EVENT_ID_CHARACTERS = 512

export type EventRules = Readonly<Record<string, FieldRule>>

const mustBeText = text()

/** Base64 with padding, as upstream reads it. */
export const base64Audio: FieldRule = (value, path) => {
  const found = mustBeText(value, path)
  if (found !== undefined) return found
  const bytes = Buffer.from(String(value))
  return isStrictBase64(bytes, 0, bytes.length) ? undefined : badAudio(path)
}

export const badAudio = (path: string): ReturnType<typeof fault> =>
  fault(path, 'invalid_value', `Invalid '${path}'. Expected base64-encoded audio bytes, but got an invalid value.`)

const eventId = optional(text({ maximumCharacters: MAXIMUM_EVENT_ID_CHARACTERS }))
const itemId = required(text({ allowBlank: false }))
const content = optional(
  list(
    record({
      type: required(text()),
      text: optional(text()),
      audio: optional(base64Audio),
      transcript: optional(text()),
    }),
  ),
)
const item = required(
  record({
    type: required(text()),
    id: optional(text()),
    role: optional(text()),
    content,
    call_id: optional(text()),
    name: optional(text()),
    arguments: optional(text()),
    output: optional(text()),
  }),
)

const COMMON: Readonly<Record<string, EventRules>> = {
  'input_audio_buffer.append': { audio: required(base64Audio) },
  'input_audio_buffer.commit': {},
  'input_audio_buffer.clear': {},
  'conversation.item.create': { item, previous_item_id: optional(text()) },
  'conversation.item.retrieve': { item_id: itemId },
  'conversation.item.truncate': {
    item_id: itemId,
    content_index: required(integer()),
    audio_end_ms: required(integer()),
  },
  'conversation.item.delete': { item_id: itemId },
  'response.cancel': { response_id: optional(text()) },
  'output_audio_buffer.clear': {},
}

const RULES: Readonly<Record<RealtimeDialect, ReadonlyMap<string, EventRules>>> = {
  beta: tableOf({
    ...COMMON,
    'session.update': { session: betaSession },
    'response.create': { response: betaResponse },
    'transcription_session.update': { session: betaTranscriptionSession },
  }),
  ga: tableOf({ ...COMMON, 'session.update': { session: gaSession }, 'response.create': { response: gaResponse } }),
}

/** What the fields of a client event must be; `undefined` for a type that clients of this dialect do not send. */
export const rulesOf = (dialect: RealtimeDialect, type: string): EventRules | undefined => RULES[dialect].get(type)

export const clientEventTypes = (dialect: RealtimeDialect): string[] => [...RULES[dialect].keys()]

function tableOf(rules: Readonly<Record<string, EventRules>>): ReadonlyMap<string, EventRules> {
  return new Map(Object.entries(rules).map(([type, fields]) => [type, { event_id: eventId, ...fields }]))
}
