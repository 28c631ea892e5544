import type { LineReader } from './sse.js'

/** As vendors' own rules of thumb have it. */
const ASCII_PER_TOKEN = 4

const FIRST_BEYOND_ASCII = 0x80

/** Of a character that takes two units. */
const isSecondHalf = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

/** Roughly the tokens of a text: four ASCII characters, or one character of any other script, to a token. */
export function tokensOf(text: string): number {
  let ascii = 0
  let others = 0
  // By index, as texts of megabytes are counted while others wait.
  for (let position = 0; position < text.length; position++) {
    const unit = text.charCodeAt(position)
    if (unit < FIRST_BEYOND_ASCII) ascii++
    else if (!isSecondHalf(unit)) others++
  }
  return Math.ceil(ascii / ASCII_PER_TOKEN) + others
}

const KEY = Buffer.from('"delta":')
const LOWER_A = 0x61
const LOWER_C = 0x63
const LOWER_D = 0x64
const QUOTE = 0x22
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Members of a delta that say something about the answer and nothing of it. */
const LABELS: ReadonlySet<string> = new Set(['role', 'type', 'signature', 'stop_reason', 'stop_sequence'])

/**
 * Counts the frames of an event stream whose `delta` holds a piece of the answer: text, thinking, a refusal, part of a
 * tool call. Upstreams send about one token in each. Every frame of a stream begins alike, so that the place of the
 * delta is learned once and then only looked at: this runs for every frame that is relayed.
 */
export class DeltaCounter implements LineReader {
  count = 0
  /** From the beginning of a line to the value; 0 = not learned. */
  private valueOffset = 0

  line(bytes: Buffer, start: number, end: number): void {
    if (bytes[start] !== LOWER_D) return
    const value = this.valueStart(bytes, start, end)
    if (value !== -1 && (isUsualText(bytes, value) || hasText(bytes, value, end))) this.count++
  }

  private valueStart(bytes: Buffer, start: number, end: number): number {
    const learned = start + this.valueOffset
    if (this.valueOffset > 0 && learned < end && standsAfterKey(bytes, learned)) return learned
    // Within the line: a search beyond it would look at the same bytes again for the next.
    const found = bytes.subarray(start, end).indexOf(KEY)
    if (found === -1) return -1
    this.valueOffset = found + KEY.length
    return start + this.valueOffset
  }
}

/** No other name of five letters begins and ends like it; comparing all of the bytes costs more than the rest. */
const standsAfterKey = (bytes: Buffer, position: number): boolean =>
  bytes[position - 1] === COLON &&
  bytes[position - 2] === QUOTE &&
  bytes[position - 3] === LOWER_A &&
  bytes[position - 7] === LOWER_D &&
  bytes[position - 8] === QUOTE

/** `{"content":"` and a first character, as in nearly every frame. */
const isUsualText = (bytes: Buffer, value: number): boolean =>
  bytes[value + 2] === LOWER_C &&
  bytes[value + 9] === QUOTE &&
  bytes[value + 10] === COLON &&
  bytes[value + 11] === QUOTE &&
  bytes[value + 12] !== QUOTE

/** Whether a text has characters, or an object has a member with some, or with an object or a list in it. */
function hasText(bytes: Buffer, start: number, end: number): boolean {
  let position = blanksEnd(bytes, start, end)
  if (bytes[position] === QUOTE) return bytes[position + 1] !== QUOTE
  if (bytes[position] !== OPEN_BRACE) return false
  position++
  while (position < end) {
    position = blanksEnd(bytes, position, end)
    if (bytes[position] !== QUOTE) return false
    const name = position + 1
    const nameEnd = quoteAfter(bytes, name, end)
    position = blanksEnd(bytes, nameEnd + 1, end)
    const first = bytes[position]
    const second = bytes[position + 1]
    if (first === QUOTE && second !== QUOTE) {
      if (!isLabel(bytes, name, nameEnd)) return true
      position = quoteAfter(bytes, position + 1, end) + 1
    } else if (first === QUOTE || isEmptyContainer(first, second)) position += 2
    else if (first === OPEN_BRACE || first === OPEN_BRACKET) return true
    else position = wordEnd(bytes, position, end)
  }
  return false
}

/** Blanks, and what stands between members and between a name and its value. */
function blanksEnd(bytes: Buffer, start: number, end: number): number {
  let position = start
  while (position < end) {
    const byte = bytes[position]
    if (byte !== 0x20 && byte !== 0x09 && byte !== COMMA && byte !== COLON) break
    position++
  }
  return position
}

/** Names and labels hold no escapes. */
function quoteAfter(bytes: Buffer, start: number, end: number): number {
  let position = start
  while (position < end && bytes[position] !== QUOTE) position++
  return position
}

/** Past a number, `null`, `true` or `false`. */
function wordEnd(bytes: Buffer, start: number, end: number): number {
  let position = start
  while (position < end && bytes[position] !== COMMA && bytes[position] !== CLOSE_BRACE) position++
  return position
}

const isEmptyContainer = (first: number | undefined, second: number | undefined): boolean =>
  (first === OPEN_BRACE && second === CLOSE_BRACE) || (first === OPEN_BRACKET && second === CLOSE_BRACKET)

/** The first letter decides about nearly every name; reading a word out of the bytes costs ten times as much. */
function isLabel(bytes: Buffer, start: number, end: number): boolean {
  const first = bytes[start]
  const isLike = first === 0x72 || first === 0x73 || (first === 0x74 && bytes[start + 1] === 0x79)
  return isLike && LABELS.has(bytes.toString('latin1', start, end))
}
