import { isUtf8 } from 'node:buffer'
import { decodedLength, isStrictBase64, TextSpan } from '../../core/base64.js'
import { GatewayError, quoted } from '../../core/errors.js'
import { MAXIMUM_JSON_VALUES, scanJsonObject } from '../../core/json-body.js'
import { MemberNames } from '../../core/member-names.js'
import { FrameScan, isAt, type MemberSpan } from '../../core/json-spans.js'
import {
  fieldError,
  type FieldRule,
  integer,
  isRecord,
  list,
  optional,
  record,
  required,
  text,
} from '../../core/validation-rules.js'
import { dialectShownBy, type RealtimeDialect, type SessionKind } from './dialect.js'
import {
  betaResponse,
  betaSession,
  betaTranscriptionSession,
  type EventRefusal,
  gaResponse,
  gaSession,
  checkModel,
  type ModelHolder,
  refusal,
} from './session-rules.js'
import { forbiddenInTranscription, forbiddenTranscription, namesNoModel } from './transcription-session.js'

const MAXIMUM_EVENT_ID_CHARACTERS = 512

type EventRules = Readonly<Record<string, FieldRule>>

interface EventTable {
  readonly rules: EventRules
  readonly names: MemberNames
}

const mustBeText = text()

/** Base64 with padding, as upstream reads it. */
const base64Audio: FieldRule = (value, path) => {
  const found = mustBeText(value, path)
  if (found !== undefined) return found
  return isStrictBase64(String(value)) ? undefined : badAudio(path)
}

const badAudio = (path: string): ReturnType<typeof fieldError> =>
  fieldError(path, 'invalid_value', `Invalid '${path}'. Expected base64-encoded audio bytes, but got an invalid value.`)

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

const EVENTS: Readonly<Record<RealtimeDialect, ReadonlyMap<string, EventTable>>> = {
  beta: tableOf({
    ...COMMON,
    'session.update': { session: betaSession },
    'response.create': { response: betaResponse },
    'transcription_session.update': { session: betaTranscriptionSession },
  }),
  ga: tableOf({ ...COMMON, 'session.update': { session: gaSession }, 'response.create': { response: gaResponse } }),
}

/** The rules for the fields of a client event; `undefined` for a type that clients of this dialect do not send. */
export const rulesOf = (dialect: RealtimeDialect, type: string): EventRules | undefined =>
  EVENTS[dialect].get(type)?.rules

export const clientEventTypes = (dialect: RealtimeDialect): string[] => [...EVENTS[dialect].keys()]

function tableOf(events: Readonly<Record<string, EventRules>>): ReadonlyMap<string, EventTable> {
  return new Map(
    Object.entries(events).map(([type, fields]) => {
      const rules = { event_id: eventId, ...fields }
      return [type, { rules, names: new MemberNames(['type', ...Object.keys(rules)]) }]
    }),
  )
}

export const APPEND = 'input_audio_buffer.append'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const FIRST_PRINTABLE = 0x20
const LAST_ASCII = 0x7e

type AppendCheck = 'valid' | 'unusual' | EventRefusal

/**
 * Checks an `input_audio_buffer.append` in the layout of common clients: `type` and `audio` in any order, optionally an
 * `event_id`, nothing else and nothing escaped. Such a frame is valid JSON without being parsed. Any other layout is
 * `unusual`: not wrong, but left to the parser.
 */
function checkAppend(frame: Buffer, scan: FrameScan, maximumAudioBytes: number): AppendCheck {
  const type = scan.member('type')
  const audio = scan.member('audio')
  const id = scan.member('event_id')
  if (type === undefined || audio === undefined || scan.size !== (id === undefined ? 2 : 3)) return 'unusual'
  if (!isAt(frame, type.valueStart, type.valueEnd, `"${APPEND}"`) || !isText(frame, audio)) return 'unusual'
  if (id !== undefined && !isPlainId(frame, id)) return 'unusual'
  const base64 = new TextSpan(frame, audio.valueStart + 1, audio.valueEnd - 1)
  const eventId = id === undefined ? null : frame.toString('latin1', id.valueStart + 1, id.valueEnd - 1)
  if (decodedLength(base64) > maximumAudioBytes) return tooMuchAudio(maximumAudioBytes, eventId)
  if (isStrictBase64(base64)) return 'valid'
  // An escaped slash is base64 too; only a parser resolves escapes.
  if (frame.subarray(audio.valueStart, audio.valueEnd).includes(BACKSLASH)) return 'unusual'
  const { code, message, path } = badAudio('audio')
  return refusal(code, message, { param: path, eventId })
}

const tooMuchAudio = (maximumAudioBytes: number, eventId: string | null): EventRefusal =>
  refusal(
    'string_above_max_length',
    `Invalid 'audio': too long. One event may carry at most ${maximumAudioBytes} bytes of audio.`,
    { param: 'audio', eventId },
  )

/** An id in printable ASCII without an escape. */
function isPlainId(frame: Buffer, { valueStart, valueEnd }: MemberSpan): boolean {
  if (valueEnd - valueStart > MAXIMUM_EVENT_ID_CHARACTERS + 2 || frame[valueStart] !== QUOTE) return false
  for (let position = valueStart; position < valueEnd; position++) {
    const byte = frame[position] ?? 0
    if (byte < FIRST_PRINTABLE || byte > LAST_ASCII || byte === BACKSLASH) return false
  }
  return true
}

const isText = (frame: Buffer, { valueStart }: MemberSpan): boolean => frame[valueStart] === QUOTE

/** A client event that may be sent upstream. */
export interface ClientEvent {
  readonly type: string
  /** The bytes as the client sent them (without a `session.model` that only repeats the session's own). */
  readonly frame: Buffer
  /** The dialect, when only one of them has such an event. */
  readonly shows?: RealtimeDialect
}

export interface ClientEventLimits {
  /** In decoded bytes; absent = 15 MiB. */
  readonly maximumAudioBytes?: number
  /** What the session was opened for; absent = a conversation. */
  readonly kind?: SessionKind
  /** The model that the session was opened with; no update may name another. */
  readonly model?: string | undefined
  /** The dialect of a client that has not shown its own; absent = beta. */
  readonly assumedDialect?: RealtimeDialect
  /** Whether the client's key has access to a model; absent = to every model. */
  readonly mayUse?: (model: string) => boolean
}

/** Events with a member that may name a model; GA has one event for both kinds of session. */
const MODEL_HOLDERS: ReadonlyMap<string, ModelHolder> = new Map([
  ['session.update', 'session'],
  ['transcription_session.update', 'session'],
  ['response.create', 'response'],
])

type Fields = Readonly<Record<string, unknown>>

const MAXIMUM_AUDIO_BYTES = 15 * 1024 * 1024

/** Messages for JSON that is refused although a parser accepts it. */
const UNREADABLE: Readonly<Record<string, string>> = {
  duplicate_key: 'A key stands twice in the event.',
  forbidden_key: 'The event holds a key that is not allowed.',
  json_too_deep: 'The event is nested deeper than 64 levels.',
  json_too_many_values: `The event holds more than ${MAXIMUM_JSON_VALUES} values.`,
}

export const isEventRefusal = (checked: ClientEvent | EventRefusal): checked is EventRefusal => !('frame' in checked)

/**
 * Checks one text frame of a client: the specification's fields and types, and those of the other client events. With
 * an `undefined` dialect it is checked by the dialect that it shows, or by the assumed one. Never throws. An audio append in a
 * common layout is not parsed.
 */
export function checkClientEvent(
  frame: Buffer,
  dialect: RealtimeDialect | undefined,
  limits: ClientEventLimits = {},
): ClientEvent | EventRefusal {
  const { maximumAudioBytes = MAXIMUM_AUDIO_BYTES } = limits
  const scan = FrameScan.of(frame)
  const type = scan?.member('type')
  if (scan !== undefined && type !== undefined && isAt(frame, type.valueStart, type.valueEnd, `"${APPEND}"`)) {
    const check = checkAppend(frame, scan, maximumAudioBytes)
    if (check !== 'unusual') return check === 'valid' ? { type: APPEND, frame } : check
  }
  try {
    return checkParsed(frame, fieldsOf(frame), dialect, { ...limits, maximumAudioBytes })
  } catch (error) {
    return unreadable(error, scan)
  }
}

/** Throws for anything but one UTF-8 JSON object within the gateway's JSON rules. */
function fieldsOf(frame: Buffer): Fields {
  if (!isUtf8(frame)) throw new SyntaxError('The frame is not UTF-8.')
  scanJsonObject(frame)
  const value: unknown = JSON.parse(frame.toString())
  if (!isRecord(value)) throw new SyntaxError('The frame is not an object.')
  return value
}

function unreadable(error: unknown, scan: FrameScan | undefined): EventRefusal {
  const code = error instanceof GatewayError ? (error.details.code ?? 'invalid_json') : 'invalid_json'
  const message = UNREADABLE[code] ?? 'The event must be one JSON object in UTF-8.'
  const param = error instanceof GatewayError ? (error.details.param ?? null) : null
  return refusal(code, message, { param, eventId: eventIdOf(scan?.text('event_id')) })
}

function checkParsed(
  frame: Buffer,
  fields: Fields,
  dialect: RealtimeDialect | undefined,
  limits: ClientEventLimits & { readonly maximumAudioBytes: number },
): ClientEvent | EventRefusal {
  const eventId = eventIdOf(fields['event_id'])
  const type = fields['type']
  if (typeof type !== 'string') return noType(type, eventId)
  const shows = dialectShownBy(type, fields)
  const effectiveDialect = dialect ?? shows ?? limits.assumedDialect ?? 'beta'
  const event = EVENTS[effectiveDialect].get(type)
  if (event === undefined) return unknownType(type, effectiveDialect, eventId)
  const { rules, names } = event
  const ambiguity = names.ambiguity(fields, '')
  if (ambiguity !== undefined) return refusal(ambiguity.code, ambiguity.message, { param: ambiguity.path, eventId })
  for (const name in rules) {
    const found = rules[name]?.(fields[name], name)
    if (found !== undefined) return refusal(found.code, found.message, { param: found.path, eventId })
  }
  const audio = fields['audio']
  if (type === APPEND && typeof audio === 'string') {
    const { maximumAudioBytes } = limits
    if (decodedLength(audio) > maximumAudioBytes) return tooMuchAudio(maximumAudioBytes, eventId)
  }
  const checked = checkModels(frame, type, fields, limits, eventId)
  if (!Buffer.isBuffer(checked)) return checked
  return shows === undefined ? { type, frame: checked } : { type, frame: checked, shows }
}

/** The frame without a repeated model; a refusal for models, and responses, that the session was not opened for. */
function checkModels(
  frame: Buffer,
  type: string,
  fields: Fields,
  { kind, mayUse, model }: ClientEventLimits,
  eventId: string | null,
): Buffer | EventRefusal {
  const holder = MODEL_HOLDERS.get(type)
  if (holder === undefined) return frame
  const isTranscription = kind === 'transcription'
  const forbidden =
    (isTranscription ? forbiddenInTranscription(type, fields, eventId) : undefined) ??
    forbiddenTranscription(holder, fields[holder], mayUse, eventId) ??
    (isTranscription && model === undefined ? namesNoModel(fields[holder], eventId) : undefined)
  return forbidden ?? checkModel(frame, holder, fields[holder], model, eventId)
}

const noType = (type: unknown, eventId: string | null): EventRefusal =>
  type === undefined
    ? refusal('invalid_event', "The 'type' field is missing.", { param: 'type', eventId })
    : refusal('invalid_type', "Invalid type for 'type': expected a string.", { param: 'type', eventId })

function unknownType(type: string, dialect: RealtimeDialect, eventId: string | null): EventRefusal {
  const supported = clientEventTypes(dialect)
    .map((name) => `'${name}'`)
    .join(', ')
  const message = `Invalid value: ${quoted(type)}. Supported values are: ${supported}.`
  return refusal('invalid_value', message, { param: 'type', eventId })
}

/** An echoed id is never longer than an event id may be. */
const eventIdOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length <= MAXIMUM_EVENT_ID_CHARACTERS ? value : null
