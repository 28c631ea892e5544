import { isUtf8 } from 'node:buffer'
import { GatewayError, quoted } from '../../core/errors.js'
import { scanJsonObject } from '../../core/json-body.js'
import { FrameScan, hasMoreValuesThan, isAt, type MemberSpan } from '../../core/json-spans.js'
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
import { dialectShownBy, type RealtimeDialect } from './dialect.js'
import {
  betaResponse,
  betaSession,
  betaTranscriptionSession,
  type EventRefusal,
  gaResponse,
  gaSession,
  checkSessionModel,
  refusal,
} from './session-rules.js'

export const BASE64_BYTES_PER_CHARACTER = 3 / 4

/** Characters decoded at once, a multiple of four; the decoder's output stays in the processor's cache. */
const CHUNK_CHARACTERS = 65_536

const PADDING = 0x3d

/** Overwritten by every check and never read: only how much is written matters. */
const scratch = Buffer.alloc((CHUNK_CHARACTERS / 4) * 3)

/** The bytes that the base64 text `[start, end)` stands for. */
export function decodedLength(bytes: Buffer, start: number, end: number): number {
  const padding = bytes[end - 1] !== PADDING || end === start ? 0 : bytes[end - 2] === PADDING ? 2 : 1
  return Math.floor((end - start) / 4) * 3 - padding
}

/**
 * Whether the bytes `[start, end)` are base64 of RFC 4648 section 4: its alphabet, padded to whole groups, nothing
 * else. The platform's decoder looks at many characters per step but forgives what it does not know; a forgiven
 * character leaves fewer bytes than the length promises, and the URL alphabet, which it takes as well, is searched for.
 */
export function isStrictBase64(bytes: Buffer, start: number, end: number): boolean {
  if ((end - start) % 4 !== 0) return false
  for (let position = start; position < end; position += CHUNK_CHARACTERS) {
    const until = Math.min(end, position + CHUNK_CHARACTERS)
    const chunk = bytes.toString('latin1', position, until)
    const isLast = until === end
    const promised = isLast ? decodedLength(bytes, position, until) : scratch.length
    if (scratch.write(chunk, 'base64') !== promised) return false
    if (chunk.includes('-') || chunk.includes('_')) return false
  }
  return true
}

const MAXIMUM_EVENT_ID_CHARACTERS = 512

export type EventRules = Readonly<Record<string, FieldRule>>

const mustBeText = text()

/** Base64 with padding, as upstream reads it. */
export const base64Audio: FieldRule = (value, path) => {
  const found = mustBeText(value, path)
  if (found !== undefined) return found
  const bytes = Buffer.from(String(value))
  return isStrictBase64(bytes, 0, bytes.length) ? undefined : badAudio(path)
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

export const APPEND = 'input_audio_buffer.append'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const FIRST_PRINTABLE = 0x20
const LAST_ASCII = 0x7e

export type AppendCheck = 'sound' | 'unusual' | EventRefusal

/**
 * Judges an `input_audio_buffer.append` as common clients lay it out: `type` and `audio` in any order, perhaps an
 * `event_id`, nothing else and nothing escaped. Then the bytes are known to be JSON without a parser having seen them.
 * Any other layout is `unusual`: not wrong, but for the parser to judge.
 */
function checkAppend(frame: Buffer, scan: FrameScan, maximumAudioBytes: number): AppendCheck {
  const type = scan.member('type')
  const audio = scan.member('audio')
  const id = scan.member('event_id')
  if (type === undefined || audio === undefined || scan.size !== (id === undefined ? 2 : 3)) return 'unusual'
  if (!isAt(frame, type.valueStart, type.valueEnd, `"${APPEND}"`) || !isText(frame, audio)) return 'unusual'
  if (id !== undefined && !isPlainId(frame, id)) return 'unusual'
  const start = audio.valueStart + 1
  const end = audio.valueEnd - 1
  const eventId = id === undefined ? null : frame.toString('latin1', id.valueStart + 1, id.valueEnd - 1)
  if (decodedLength(frame, start, end) > maximumAudioBytes) return tooMuchAudio(maximumAudioBytes, eventId)
  if (isStrictBase64(frame, start, end)) return 'sound'
  // An escaped slash is base64 too; only a parser may say what an escape stands for.
  if (frame.subarray(start, end).includes(BACKSLASH)) return 'unusual'
  const { code, message, path } = badAudio('audio')
  return refusal(code, message, { param: path, eventId })
}

const tooMuchAudio = (maximumAudioBytes: number, eventId: string | null): EventRefusal =>
  refusal(
    'string_above_max_length',
    `Invalid 'audio': too long. One event may carry at most ${maximumAudioBytes} bytes of audio.`,
    { param: 'audio', eventId },
  )

function isPlainId(frame: Buffer, { valueStart, valueEnd }: MemberSpan): boolean {
  if (valueEnd - valueStart > MAXIMUM_EVENT_ID_CHARACTERS + 2 || frame[valueStart] !== QUOTE) return false
  return isPlain(frame, valueStart, valueEnd)
}

/** Printable ASCII without an escape. */
function isPlain(frame: Buffer, start: number, end: number): boolean {
  for (let position = start; position < end; position++) {
    const byte = frame[position] ?? 0
    if (byte < FIRST_PRINTABLE || byte > LAST_ASCII || byte === BACKSLASH) return false
  }
  return true
}

const isText = (frame: Buffer, { valueStart }: MemberSpan): boolean => frame[valueStart] === QUOTE

/** A client's event that may go upstream. */
export interface ClientEvent {
  readonly type: string
  /** The bytes as the client sent them (without a `session.model` that only repeats the session's own). */
  readonly frame: Buffer
  /** The dialect that only such an event shows. */
  readonly shows?: RealtimeDialect
}

export interface ClientEventLimits {
  /** In decoded bytes; absent = 15 MiB. */
  readonly maximumAudioBytes?: number
  /** The model the caller opened the session with; no update may name another. */
  readonly model?: string
}

/** In GA the two are one event. */
const MODEL_BEARERS: ReadonlySet<string> = new Set(['session.update', 'transcription_session.update'])

type Fields = Readonly<Record<string, unknown>>

const MAXIMUM_AUDIO_BYTES = 15 * 1024 * 1024

/** A parser takes seconds and half a gigabyte for the millions of them that fit into one message. */
const MAXIMUM_VALUES = 65_536

/** The house's words for what a parser would quietly accept, said of an event. */
const UNREADABLE: Readonly<Record<string, string>> = {
  duplicate_key: 'A key stands twice in the event.',
  forbidden_key: 'The event holds a key that is not allowed.',
  invalid_event: `The event holds more than ${MAXIMUM_VALUES} values.`,
  json_too_deep: 'The event is nested deeper than 64 levels.',
}

export const isEventRefusal = (judged: ClientEvent | EventRefusal): judged is EventRefusal => !('frame' in judged)

/**
 * Judges one text frame of a client: the specification's fields and types, and those of the other client events. With
 * an `undefined` dialect the event is judged by the dialect it shows, or as beta. Never throws. An audio append in a
 * common layout is judged without being parsed.
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
    const verdict = checkAppend(frame, scan, maximumAudioBytes)
    if (verdict !== 'unusual') return verdict === 'sound' ? { type: APPEND, frame } : verdict
  }
  try {
    return checkParsed(frame, fieldsOf(frame), dialect, { ...limits, maximumAudioBytes })
  } catch (error) {
    return unreadable(error, scan)
  }
}

/** Throws for anything but one UTF-8 JSON object within the house's JSON rules. */
function fieldsOf(frame: Buffer): Fields {
  if (!isUtf8(frame)) throw new SyntaxError('The frame is not UTF-8.')
  if (hasMoreValuesThan(frame, MAXIMUM_VALUES)) {
    throw new GatewayError('invalid_request', 'The frame holds too many values.', { code: 'invalid_event' })
  }
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
  const spoken = dialect ?? shows ?? 'beta'
  const rules = rulesOf(spoken, type)
  if (rules === undefined) return unknownType(type, spoken, eventId)
  for (const name in rules) {
    const found = rules[name]?.(fields[name], name)
    if (found !== undefined) return refusal(found.code, found.message, { param: found.path, eventId })
  }
  const audio = fields['audio']
  if (type === APPEND && typeof audio === 'string') {
    const bytes = Buffer.from(audio)
    const { maximumAudioBytes } = limits
    if (decodedLength(bytes, 0, bytes.length) > maximumAudioBytes) return tooMuchAudio(maximumAudioBytes, eventId)
  }
  const judged = MODEL_BEARERS.has(type) ? checkSessionModel(frame, fields['session'], limits.model, eventId) : frame
  if (!Buffer.isBuffer(judged)) return judged
  return shows === undefined ? { type, frame: judged } : { type, frame: judged, shows }
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

/** What is echoed is never longer than an event id may be. */
const eventIdOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length <= MAXIMUM_EVENT_ID_CHARACTERS ? value : null
