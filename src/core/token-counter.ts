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

/** Images and audio come as Base64, which is not tokenized as text. */
export const TOKENS_PER_MEDIUM = 1000
export const SHORTEST_MEDIUM_CHARACTERS = 1024
const JUDGED_CHARACTERS = 256
const BASE64 = /^[\w+/-]+={0,2}$/
const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w.+=-]+)*;base64,/
const WEB_URL = /^https?:/i

/** Fields that may hold Base64; all others are counted as text. */
const MEDIUM_FIELDS: ReadonlySet<string> = new Set(['url', 'image_url', 'data', 'file_data'])

type Fields = Readonly<Record<string, unknown>>

/** Counts images and audio in a request. */
export class Media {
  count = 0
  characters = 0
  /** Images that the upstream fetches itself. */
  links = 0

  find(value: unknown): void {
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value as Fields)) {
      if (typeof member !== 'string') this.find(member)
      else if (!MEDIUM_FIELDS.has(name)) continue
      else if (isMedium(member, name, value as Fields)) {
        this.count++
        this.characters += member.length
      } else if (WEB_URL.test(member)) this.links++
    }
  }
}

/** Data URLs, and `data` in Base64 unless its type is text. */
function isMedium(text: string, name: string, { type }: Fields): boolean {
  if (text.length < SHORTEST_MEDIUM_CHARACTERS) return false
  const start = text.slice(0, JUDGED_CHARACTERS)
  return DATA_URL.test(start) || (name === 'data' && type !== 'text' && BASE64.test(start))
}

/** Of images and audio in the messages of a request, whose cost cannot be seen in their bytes. */
export function mediaTokensIn(messages: unknown): number {
  const media = new Media()
  media.find(messages)
  return (media.count + media.links) * TOKENS_PER_MEDIUM
}

const KEY = Buffer.from('"delta":')
/** As an upstream writes it that puts blanks before colons. */
const NAME = KEY.subarray(0, -1)
const LOWER_A = 0x61
const LOWER_C = 0x63
const LOWER_D = 0x64
const UPPER_D = 0x44
const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c
const LOWER_U = 0x75
const ZERO = 0x30
const EIGHT = 0x38
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** Members of a delta that say something about the answer and nothing of it. */
const LABELS: ReadonlySet<string> = new Set(['role', 'type', 'id', 'signature', 'stop_reason', 'stop_sequence'])

/** As vendors' rules of thumb have it, for text in UTF-8 and for JSON. */
export const BYTES_PER_TOKEN = 4

/** Tokens of any language are shorter on average: frames with more than this hold several. */
const BYTES_OF_ONE_TOKEN = 8

/** Sound is streamed as pcm16 at 24 kHz, in Base64: 50 ms of it are a token. */
const BASE64_PER_AUDIO_TOKEN = 3_200

/**
 * Counts the tokens of an event stream. An upstream that sends one in each frame has told their number itself: the frames are
 * counted whose `delta` holds a piece of the answer (text, thinking, a refusal, part of a tool call). Of one whose frames
 * hold more the bytes of these texts are. Every frame of a stream begins alike, so that the place of the delta is learned
 * once and then only looked at: this runs for every frame that is relayed.
 */
export class DeltaCounter implements LineReader {
  /** Frames with a piece of the answer. */
  pieces = 0
  private textBytes = 0
  private piecesBefore = 0
  private textBytesBefore = 0
  /** What the text holds that was walked through last. */
  private walkedBytes = 0
  /** From the beginning of a line to the value; 0 = not learned. */
  private valueOffset = 0

  get count(): number {
    const { pieces, textBytes } = this
    return textBytes > pieces * BYTES_OF_ONE_TOKEN ? Math.ceil(textBytes / BYTES_PER_TOKEN) : pieces
  }

  checkpoint(): void {
    this.piecesBefore = this.pieces
    this.textBytesBefore = this.textBytes
  }

  rollBack(): void {
    this.pieces = this.piecesBefore
    this.textBytes = this.textBytesBefore
  }

  line(bytes: Buffer, start: number, end: number): void {
    if (bytes[start] !== LOWER_D) return
    const value = this.valueStart(bytes, start, end)
    if (value === -1) return
    if (isUsualText(bytes, value)) {
      this.pieces++
      const textEnd = this.walkText(bytes, value + 12, end)
      this.textBytes += this.walkedBytes
      if (bytes[textEnd + 1] !== CLOSE_BRACE) this.countMembers(bytes, textEnd + 1, end)
    } else if (this.countValue(bytes, blanksEnd(bytes, value, end), end)) this.pieces++
  }

  private valueStart(bytes: Buffer, start: number, end: number): number {
    const learned = start + this.valueOffset
    if (this.valueOffset > 0 && learned < end && standsAfterKey(bytes, learned)) return learned
    // Within the line: a search beyond it would look at the same bytes again for the next.
    const found = bytes.subarray(start, end).indexOf(KEY)
    if (found === -1) return spacedValueStart(bytes, start, end)
    this.valueOffset = found + KEY.length
    return start + this.valueOffset
  }

  /** Whether it is a text with characters, or an object with a part of the answer in it. */
  private countValue(bytes: Buffer, position: number, end: number): boolean {
    if (bytes[position] === OPEN_BRACE) return this.countMembers(bytes, position + 1, end)
    if (bytes[position] !== QUOTE || bytes[position + 1] === QUOTE) return false
    this.walkText(bytes, position + 1, end)
    this.textBytes += this.walkedBytes
    return true
  }

  /** From within a delta to its end. Groups and lists in it are walked through like itself, and are a part unless empty. */
  private countMembers(bytes: Buffer, start: number, end: number): boolean {
    let isPart = false
    let depth = 1
    let name = 0
    let nameEnd = 0
    for (let position = start; position < end; position++) {
      const byte = bytes[position]
      if (byte === QUOTE) {
        const textEnd = this.walkText(bytes, position + 1, end)
        if (isName(bytes, textEnd, end)) {
          name = position + 1
          nameEnd = textEnd
        } else if (this.walkedBytes > 0 && !isLabel(bytes, name, nameEnd)) {
          isPart = true
          this.textBytes += isSound(bytes, name, nameEnd) ? tokenBytesOfSound(this.walkedBytes) : this.walkedBytes
        }
        position = textEnd
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        depth++
        if (!isEmptyContainer(byte, bytes[position + 1])) isPart = true
      } else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) break
    }
    return isPart
  }

  /** From behind an opening quote to the closing one, where `walkedBytes` is what stands between them in UTF-8. */
  private walkText(bytes: Buffer, start: number, end: number): number {
    let position = start
    let escaping = 0
    let near = start + NEAR_BYTES
    while (position < end) {
      const byte = bytes[position]
      if (byte === QUOTE) break
      if (byte === BACKSLASH) {
        const isUnicode = bytes[position + 1] === LOWER_U
        escaping += isUnicode ? escapingBytes(bytes, position + 2) : 1
        position += isUnicode ? UNICODE_ESCAPE : 2
        near = position + NEAR_BYTES
      } else position = ++position < near ? position : nextSpecial(bytes, position, end)
    }
    this.walkedBytes = Math.max(0, position - start - escaping)
    return position
  }
}

/** Up to here a text is walked through byte by byte; a search costs more for a word, and a tenth for a page. */
const NEAR_BYTES = 32

/** Where the text ends or something in it is escaped. */
function nextSpecial(bytes: Buffer, start: number, end: number): number {
  const quote = bytes.indexOf(QUOTE, start)
  const textEnd = quote === -1 || quote > end ? end : quote
  const backslash = bytes.subarray(start, textEnd).indexOf(BACKSLASH)
  return backslash === -1 ? textEnd : start + backslash
}

/** The length of an escape such as `\u00e9`. */
const UNICODE_ESCAPE = 6

/** By how much an escape is longer than the character, or the half of one, that has its digits. */
function escapingBytes(bytes: Buffer, digits: number): number {
  const first = bytes[digits]
  const second = bytes[digits + 1] ?? ZERO
  if (first === ZERO && second === ZERO && (bytes[digits + 2] ?? ZERO) < EIGHT) return UNICODE_ESCAPE - 1
  const isHalf = (first === LOWER_D || first === UPPER_D) && second >= EIGHT
  return UNICODE_ESCAPE - (isHalf || (first === ZERO && second < EIGHT) ? 2 : 3)
}

const tokenBytesOfSound = (base64: number): number => (base64 / BASE64_PER_AUDIO_TOKEN) * BYTES_PER_TOKEN

/** Whether a text that ends here is the name of a member, and no value. */
const isName = (bytes: Buffer, textEnd: number, end: number): boolean =>
  bytes[blanksEnd(bytes, textEnd + 1, end)] === COLON

/** `data`, of audio. */
const isSound = (bytes: Buffer, start: number, end: number): boolean =>
  end - start === 4 && bytes[start] === LOWER_D && bytes[start + 1] === LOWER_A && bytes[start + 3] === LOWER_A

function spacedValueStart(bytes: Buffer, start: number, end: number): number {
  const name = bytes.subarray(start, end).indexOf(NAME)
  const colon = name === -1 ? end : blanksEnd(bytes, start + name + NAME.length, end)
  return colon < end && bytes[colon] === COLON ? colon + 1 : -1
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

function blanksEnd(bytes: Buffer, start: number, end: number): number {
  let position = start
  while (position < end && (bytes[position] === 0x20 || bytes[position] === 0x09)) position++
  return position
}

const isEmptyContainer = (first: number | undefined, second: number | undefined): boolean =>
  (first === OPEN_BRACE && second === CLOSE_BRACE) || (first === OPEN_BRACKET && second === CLOSE_BRACKET)

/** The first letter decides about nearly every name; reading a word out of the bytes costs ten times as much. */
function isLabel(bytes: Buffer, start: number, end: number): boolean {
  const first = bytes[start]
  const second = bytes[start + 1]
  const isLike =
    first === 0x72 || first === 0x73 || (first === 0x74 && second === 0x79) || (first === 0x69 && second === LOWER_D)
  return isLike && LABELS.has(bytes.toString('latin1', start, end))
}
