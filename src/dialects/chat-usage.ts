import { afterSpace, beforeSpace, JSON_BYTES } from '../core/json-spans.js'
import type { Usage } from '../core/request-context.js'
import { firstFrameEnd, framesOf, jsonOf, lastFrameEnd } from '../core/sse.js'
import { reportedUsage } from '../core/usage.js'
import { isRecord } from '../core/validation-rules.js'
import type { StreamTail } from '../core/sse.js'
import type { FramesFilter } from '../upstream/sse-relay.js'

const { COLON, COMMA, OPEN_BRACE } = JSON_BYTES

const KEY_TEXT = '"usage"'
const KEY = Buffer.from(KEY_TEXT)
/** OpenAI's spelling in every chunk. */
const NULL_USAGE = /,"usage":null/g
const USAGE_WINDOW_BYTES = 8192
const USAGE_OBJECTS = [Buffer.from('"usage":{'), Buffer.from('"usage": {')]
const NULL = Buffer.from('null')

/** Where in a stream a usage stands. */
interface UsagePlace {
  /** The last frames so far. */
  readonly tail: StreamTail
  /** Those at the end of them that have come behind the usage. */
  readonly behind: Buffer
}

/**
 * Reads the usage in a chat stream. The gateway requests usage itself; for a caller who did not, the filter removes the
 * `"usage":null` of each chunk and the extra chunk at the end. Only bytes around the key are inspected; the one frame with
 * usage is parsed. Text of a model cannot be mistaken for the key: its quotes are escaped.
 */
export class ChatUsageFilter {
  constructor(
    private readonly clientRequestedUsage: boolean,
    private readonly onUsage: (usage: Usage, place: UsagePlace) => void,
  ) {}

  readonly filter: FramesFilter = (frames, tail) => {
    if (this.clientRequestedUsage) {
      const key = firstUsageObject(frames)
      return key === -1 ? frames : this.readUsage(frames, key, tail)
    }
    if (!frames.includes(KEY)) return frames
    // As latin1 text, byte for byte: a global pattern without alternatives is removed in one native pass. What is left
    // is written back into the same buffer, which has no other reader: an allocation per stream costs more than this.
    const plain = frames.toString('latin1').replace(NULL_USAGE, '')
    const bytes = frames.subarray(0, frames.write(plain, 'latin1'))
    const key = plain.indexOf(KEY_TEXT)
    return key === -1 ? bytes : this.filterOtherSpellings(bytes, key, tail)
  }

  /** Cases that the usual spelling does not cover: usage itself, spaces, the key as the first member. */
  private filterOtherSpellings(frames: Buffer, firstKey: number, tail: StreamTail): Buffer {
    const pieces: Buffer[] = []
    let position = 0
    let hasUsage = false
    for (let key = firstKey; key !== -1; key = frames.indexOf(KEY, key + KEY.length)) {
      const value = valueStart(frames, key + KEY.length)
      if (frames[value] === OPEN_BRACE) hasUsage = true
      if (!isNull(frames, value)) continue
      const cut = cutWithComma(frames, key, value + NULL.length)
      pieces.push(frames.subarray(position, cut.start))
      position = cut.end
    }
    const rest = withOnly([...pieces, frames.subarray(position)], frames)
    return hasUsage ? this.readUsage(rest, position === 0 ? firstKey : 0, tail) : rest
  }

  private readUsage(frames: Buffer, from: number, tail: StreamTail): Buffer {
    const kept: Buffer[] = []
    let position = 0
    for (
      let key = frames.indexOf(KEY, from);
      key !== -1;
      key = frames.indexOf(KEY, Math.max(position, key + KEY.length))
    ) {
      const start = lastFrameEnd(frames.subarray(0, key))
      const end = firstFrameEnd(frames, key)
      const chunk = jsonOf(frames.subarray(start, end))
      const usage = reportedUsage(chunk?.['usage'])
      if (usage === undefined) continue
      this.onUsage(usage, { tail, behind: frames.subarray(end) })
      const isExtra = Array.isArray(chunk?.['choices']) && chunk['choices'].length === 0
      if (!isExtra || this.clientRequestedUsage) continue
      kept.push(frames.subarray(position, start))
      position = end
    }
    return withOnly([...kept, frames.subarray(position)], frames)
  }
}

/** Usage comes with the last frames, behind many that say `null`, which are not looked at; the bytes are relayed whether it is found or not. */
function firstUsageObject(frames: Buffer): number {
  const start = Math.max(0, frames.length - USAGE_WINDOW_BYTES)
  const found = USAGE_OBJECTS.map((mark) => frames.indexOf(mark, start)).filter((key) => key !== -1)
  return found.length === 0 ? -1 : Math.min(...found)
}

const FINISH_MARKS = ['"finish_reason":"', '"finish_reason": "']

const hasFinishMark = (frames: Buffer): boolean => FINISH_MARKS.some((mark) => frames.includes(mark))

/**
 * Whether every choice of a stream has its finish reason. Of the one choice of nearly all streams the last frames show it, which
 * are looked at when that is asked; of several each frame is looked at while it passes.
 */
export class ChoiceEnds {
  private readonly finished = new Set<unknown>()
  private readonly choices: number

  constructor(requested: unknown) {
    this.choices = typeof requested === 'number' ? requested : 1
  }

  readonly areAllSeen = (tail: Buffer): boolean =>
    this.choices > 1 ? this.finished.size >= this.choices : hasFinishMark(tail)

  /** Whether a usage there is that of the whole answer. */
  areBefore({ tail, behind }: UsagePlace): boolean {
    return !hasFinishMark(behind) && this.areAllSeen(tail.bytes)
  }

  /** The filter, behind a look at what passes where that is needed. */
  watching(filter: FramesFilter): FramesFilter {
    if (this.choices <= 1) return filter
    return (frames, tail) => {
      if (hasFinishMark(frames)) this.note(frames)
      return filter(frames, tail)
    }
  }

  private note(frames: Buffer): void {
    for (const frame of framesOf(frames)) {
      const choices = hasFinishMark(frame) ? jsonOf(frame)?.['choices'] : undefined
      if (!Array.isArray(choices)) continue
      for (const choice of choices as unknown[]) {
        if (isRecord(choice) && typeof choice['finish_reason'] === 'string') this.finished.add(choice['index'])
      }
    }
  }
}

/** Joins the pieces inside the buffer they are parts of: an allocation per stream costs more than moving them. */
function withOnly(pieces: readonly Buffer[], frames: Buffer): Buffer {
  let length = 0
  for (const piece of pieces) {
    const start = piece.byteOffset - frames.byteOffset
    frames.copyWithin(length, start, start + piece.length)
    length += piece.length
  }
  return frames.subarray(0, length)
}

function valueStart(frames: Buffer, afterKey: number): number {
  const colon = afterSpace(frames, afterKey)
  return frames[colon] === COLON ? afterSpace(frames, colon + 1) : colon
}

const isNull = (frames: Buffer, start: number): boolean => frames.subarray(start, start + NULL.length).equals(NULL)

/** Cuts a member with the comma before it, or with the one after it if it is the first. */
function cutWithComma(frames: Buffer, keyStart: number, valueEnd: number): { start: number; end: number } {
  const before = beforeSpace(frames, keyStart) - 1
  if (frames[before] === COMMA) return { start: before, end: valueEnd }
  const after = afterSpace(frames, valueEnd)
  return { start: keyStart, end: frames[after] === COMMA ? after + 1 : valueEnd }
}
