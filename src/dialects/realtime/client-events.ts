import { isUtf8 } from 'node:buffer'
import { FrameScan } from '../../core/frame-scan.js'
import { GatewayError } from '../../core/gateway-error.js'
import { scanJsonObject } from '../../core/json-scan.js'
import { hasMoreValuesThan, isAt } from '../../core/json-spans.js'
import { quoted } from '../../core/message-text.js'
import { isRecord } from '../../core/validation-rules.js'
import { APPEND, judgeAppend, tooMuchAudio } from './client-append.js'
import { dialectShownBy } from './client-dialect.js'
import { clientEventTypes, MAXIMUM_EVENT_ID_CHARACTERS, rulesOf } from './client-event-rules.js'
import type { RealtimeDialect } from './dialect.js'
import { type EventRefusal, refusal } from './event-refusal.js'
import { judgeSessionModel } from './session-model.js'
import { decodedLength } from './strict-base64.js'

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
    const verdict = judgeAppend(frame, scan, maximumAudioBytes)
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
  const judged = MODEL_BEARERS.has(type) ? judgeSessionModel(frame, fields['session'], limits.model, eventId) : frame
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
