/** Byte positions of one member: the key and the value `[start, end)`, a key with its quotes. */
export interface MemberSpan {
  readonly keyStart: number
  readonly keyEnd: number
  readonly valueStart: number
  readonly valueEnd: number
}

export interface Span {
  readonly start: number
  readonly end: number
}

/** No event has so many members on one level; a frame made of members alone shall not become a list of them. */
export const MAXIMUM_MEMBERS = 1024

const NEARBY_BYTES = 32
const BROKEN = -1

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/**
 * The members of the JSON object that these bytes are, in order, repeated keys included. Values are stepped over, not
 * judged: well-formed JSON is split exactly, other bytes give `undefined` or spans a parser would refuse. More than
 * 1,024 members give `undefined`.
 */
export function memberSpans(bytes: Buffer): MemberSpan[] | undefined {
  const members: MemberSpan[] = []
  let position = afterSpace(bytes, 0)
  if (bytes[position] !== OPEN_BRACE) return undefined
  position = afterSpace(bytes, position + 1)
  if (bytes[position] === CLOSE_BRACE) return endsAt(bytes, position) ? members : undefined
  while (members.length < MAXIMUM_MEMBERS) {
    const keyStart = position
    if (bytes[keyStart] !== QUOTE) return undefined
    const keyEnd = stringEnd(bytes, keyStart)
    const colon = afterSpace(bytes, keyEnd)
    if (bytes[colon] !== COLON) return undefined
    const valueStart = afterSpace(bytes, colon + 1)
    const valueEnd = afterValue(bytes, valueStart)
    if (valueEnd === BROKEN) return undefined
    members.push({ keyStart, keyEnd, valueStart, valueEnd })
    position = afterSpace(bytes, valueEnd)
    if (bytes[position] === CLOSE_BRACE) return endsAt(bytes, position) ? members : undefined
    if (bytes[position] !== COMMA) return undefined
    position = afterSpace(bytes, position + 1)
  }
  return undefined
}

/** The elements of the JSON array that these bytes are; `undefined` as above. */
export function elementSpans(bytes: Buffer): Span[] | undefined {
  const elements: Span[] = []
  let position = afterSpace(bytes, 0)
  if (bytes[position] !== OPEN_BRACKET) return undefined
  position = afterSpace(bytes, position + 1)
  if (bytes[position] === CLOSE_BRACKET) return endsAt(bytes, position) ? elements : undefined
  while (elements.length < MAXIMUM_MEMBERS) {
    const end = afterValue(bytes, position)
    if (end === BROKEN) return undefined
    elements.push({ start: position, end })
    position = afterSpace(bytes, end)
    if (bytes[position] === CLOSE_BRACKET) return endsAt(bytes, position) ? elements : undefined
    if (bytes[position] !== COMMA) return undefined
    position = afterSpace(bytes, position + 1)
  }
  return undefined
}

/** Whether the JSON holds more than so many values, those within others included; looks no further than that. */
export function hasMoreValuesThan(bytes: Buffer, maximum: number): boolean {
  let values = 1
  let position = 0
  while (position < bytes.length) {
    const byte = bytes[position]
    if (byte === QUOTE) {
      position = stringEnd(bytes, position)
      continue
    }
    if ((byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) && ++values > maximum) return true
    position++
  }
  return false
}

/** Whether the bytes `[start, end)` are exactly this ASCII text. */
export function isAt(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false
  for (let index = 0; index < text.length; index++) if (bytes[start + index] !== text.charCodeAt(index)) return false
  return true
}

/** The text of a JSON string given with its quotes; `undefined` when the bytes are no JSON string. */
export function stringAt(bytes: Buffer, start: number, end: number): string | undefined {
  if (bytes[start] !== QUOTE || end - start < 2) return undefined
  const isPlain = !hasEscape(bytes, start, end)
  if (isPlain) return bytes.toString('utf8', start + 1, end - 1)
  try {
    return JSON.parse(bytes.toString('utf8', start, end)) as string
  } catch {
    return undefined
  }
}

/** Whether a JSON string holds an escape. */
function hasEscape(bytes: Buffer, start: number, end: number): boolean {
  for (let position = start + 1; position < end; position++) if (bytes[position] === BACKSLASH) return true
  return false
}

function afterValue(bytes: Buffer, start: number): number {
  const first = bytes[start]
  if (first === QUOTE) return isClosed(bytes, start, stringEnd(bytes, start))
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return afterNested(bytes, start)
  let position = start
  while (position < bytes.length && !endsScalar(bytes[position])) position++
  return position === start ? BROKEN : position
}

/** Steps over an object or array by counting brackets of either kind outside strings. */
function afterNested(bytes: Buffer, start: number): number {
  let depth = 0
  let position = start
  while (position < bytes.length) {
    const byte = bytes[position]
    if (byte === QUOTE) {
      position = stringEnd(bytes, position)
      continue
    }
    position++
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return position
  }
  return BROKEN
}

const isClosed = (bytes: Buffer, start: number, end: number): number =>
  end - start >= 2 && bytes[end - 1] === QUOTE ? end : BROKEN

/** The position behind the closing quote of the string that opens at `start`; the end of the bytes when unclosed. */
function stringEnd(bytes: Buffer, start: number): number {
  // Most strings are short: a search in native code costs more to call than these few steps.
  const nearby = Math.min(bytes.length, start + 1 + NEARBY_BYTES)
  let position = start + 1
  while (position < nearby) {
    const byte = bytes[position]
    if (byte === QUOTE) return position + 1
    position += byte === BACKSLASH ? 2 : 1
  }
  return distantStringEnd(bytes, start, position)
}

function distantStringEnd(bytes: Buffer, start: number, from: number): number {
  let quote = bytes.indexOf(QUOTE, from)
  while (quote !== -1) {
    let before = quote - 1
    while (before > start && bytes[before] === BACKSLASH) before--
    if ((quote - 1 - before) % 2 === 0) return quote + 1
    quote = bytes.indexOf(QUOTE, quote + 1)
  }
  return bytes.length
}

const endsAt = (bytes: Buffer, last: number): boolean => afterSpace(bytes, last + 1) === bytes.length

function afterSpace(bytes: Buffer, from: number): number {
  let position = from
  while (isSpace(bytes[position])) position++
  return position
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const endsScalar = (byte: number | undefined): boolean =>
  byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isSpace(byte)

/** The type of an event and where its value stands, quotes included. */
export interface EventType {
  readonly type: string
  readonly start: number
  readonly end: number
}

/** What a frame loses or gets instead: the bytes `[start, end)` become `text`. */
export interface Cut {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The top-level members of one frame, found in one pass that steps over every value; never throws. */
export class FrameScan {
  private constructor(
    private readonly frame: Buffer,
    private readonly members: readonly MemberSpan[],
  ) {}

  /** `undefined` for bytes that are not one JSON object. */
  static of(frame: Buffer): FrameScan | undefined {
    const members = memberSpans(frame)
    return members === undefined ? undefined : new FrameScan(frame, members)
  }

  get size(): number {
    return this.members.length
  }

  /** The last member of that (ASCII) name: of repeated keys the last one counts, as for a parser. */
  member(name: string): MemberSpan | undefined {
    for (let index = this.members.length - 1; index >= 0; index--) {
      const member = this.members[index]
      if (member !== undefined && this.isNamed(member, name)) return member
    }
    return undefined
  }

  /** The text of a member whose value is a string. */
  text(name: string): string | undefined {
    const member = this.member(name)
    return member === undefined ? undefined : stringAt(this.frame, member.valueStart, member.valueEnd)
  }

  type(): EventType | undefined {
    const member = this.member('type')
    if (member === undefined) return undefined
    const type = stringAt(this.frame, member.valueStart, member.valueEnd)
    return type === undefined ? undefined : { type, start: member.valueStart, end: member.valueEnd }
  }

  /** The bytes that every member of that name takes with it: one comma each, so that the rest stays JSON. */
  removal(name: string): Cut[] {
    const cuts: Cut[] = []
    let hasKept = false
    for (let index = 0; index < this.members.length; index++) {
      const member = this.members[index]
      if (member === undefined || !this.isNamed(member, name)) {
        hasKept = true
        continue
      }
      const previous = this.members[index - 1]
      const next = this.members[index + 1]
      if (hasKept && previous !== undefined) cuts.push({ start: previous.valueEnd, end: member.valueEnd, text: '' })
      else cuts.push({ start: member.keyStart, end: next?.keyStart ?? member.valueEnd, text: '' })
    }
    return cuts
  }

  private isNamed({ keyStart, keyEnd }: MemberSpan, name: string): boolean {
    if (isAt(this.frame, keyStart + 1, keyEnd - 1, name)) return true
    return hasEscape(this.frame, keyStart, keyEnd) && stringAt(this.frame, keyStart, keyEnd) === name
  }
}

/** The type of an event without a look into its payload: about a search for one byte over the frame. */
export const eventTypeOf = (frame: Buffer): EventType | undefined => FrameScan.of(frame)?.type()

/** The frame with these bytes changed, in one copy; cuts do not overlap. The very same frame without any. */
export function splice(frame: Buffer, cuts: Cut[]): Buffer {
  if (cuts.length === 0) return frame
  cuts.sort(byStart)
  let length = frame.length
  for (const { start, end, text } of cuts) length += Buffer.byteLength(text) - (end - start)
  const spliced = Buffer.allocUnsafe(length)
  let written = 0
  let position = 0
  for (const { start, end, text } of cuts) {
    written += frame.copy(spliced, written, position, start)
    if (text !== '') written += spliced.write(text, written)
    position = end
  }
  frame.copy(spliced, written, position)
  return spliced
}

const byStart = (one: Cut, other: Cut): number => one.start - other.start
