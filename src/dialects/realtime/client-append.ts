import type { FrameScan } from '../../core/frame-scan.js'
import { isAt, type MemberSpan } from '../../core/json-spans.js'
import { badAudio, MAXIMUM_EVENT_ID_CHARACTERS } from './client-event-rules.js'
import { type EventRefusal, refusal } from './event-refusal.js'
import { decodedLength, isStrictBase64 } from './strict-base64.js'

export const APPEND = 'input_audio_buffer.append'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const FIRST_PRINTABLE = 0x20
const LAST_ASCII = 0x7e

export type AppendVerdict = 'sound' | 'unusual' | EventRefusal

/**
 * Judges an `input_audio_buffer.append` as common clients lay it out: `type` and `audio` in any order, perhaps an
 * `event_id`, nothing else and nothing escaped. Then the bytes are known to be JSON without a parser having seen them.
 * Any other layout is `unusual`: not wrong, but for the parser to judge.
 */
export function judgeAppend(frame: Buffer, scan: FrameScan, maximumAudioBytes: number): AppendVerdict {
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

export const tooMuchAudio = (maximumAudioBytes: number, eventId: string | null): EventRefusal =>
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
