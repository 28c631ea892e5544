/** The bytes of JSON's tokens. A loop binds them in its own module: V8 folds no constant of another one. */
export const JSON_BYTES = {
  QUOTE: 0x22,
  BACKSLASH: 0x5c,
  COLON: 0x3a,
  COMMA: 0x2c,
  OPEN_BRACE: 0x7b,
  CLOSE_BRACE: 0x7d,
  OPEN_BRACKET: 0x5b,
  CLOSE_BRACKET: 0x5d,
} as const
const { QUOTE, BACKSLASH, COLON, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES

const NEARBY_BYTES = 32

/**
 * The position of the quote that closes a JSON string, of which `from` is the first byte or any later one that no
 * escape precedes. Where the quote is not among these bytes, the position at which a search goes on: their length, or
 * one more when the last of them escapes the next one. Less that length, it is the `from` of the bytes that follow.
 */
export function closingQuote(bytes: Buffer, from: number): number {
  // Most strings are short: a search in native code costs more to call than these few steps.
  const nearby = Math.min(bytes.length, from + NEARBY_BYTES)
  let position = from
  for (; position < nearby; position++) {
    const byte = bytes[position]
    if (byte === QUOTE) return position
    if (byte === BACKSLASH) position++
  }
  return distantQuote(bytes, position)
}

function distantQuote(bytes: Buffer, from: number): number {
  let quote = bytes.indexOf(QUOTE, from)
  while (quote !== -1 && isEscaped(bytes, from, quote)) quote = bytes.indexOf(QUOTE, quote + 1)
  return quote === -1 ? openEnd(bytes, from) : quote
}

const openEnd = (bytes: Buffer, from: number): number =>
  Math.max(from, bytes.length + Number(isEscaped(bytes, from, bytes.length)))

/** Whether an odd number of backslashes stands before the position, none of them before `from`. */
function isEscaped(bytes: Buffer, from: number, position: number): boolean {
  let before = position
  while (before > from && bytes[before - 1] === BACKSLASH) before--
  return (position - before) % 2 === 1
}

/** Whether a stretch, such as a JSON string, holds an escape. */
export function hasEscape(bytes: Buffer, start: number, end: number): boolean {
  for (let position = start; position < end; position++) if (bytes[position] === BACKSLASH) return true
  return false
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

export function afterSpace(bytes: Buffer, from: number): number {
  let position = from
  while (position < bytes.length && isSpace(bytes[position])) position++
  return position
}

/** The end of what stands before the space that ends at `end`. */
export function beforeSpace(bytes: Buffer, end: number): number {
  let position = end
  while (position > 0 && isSpace(bytes[position - 1])) position--
  return position
}

/** Byte positions of one member: the key and the value `[start, end)`, a key with its quotes. */
export interface MemberSpan {
  readonly keyStart: number
  readonly keyEnd: number
  readonly valueStart: number
  readonly valueEnd: number
}

interface Span {
  readonly start: number
  readonly end: number
}

/** No event has so many members on one level; a frame made of members alone shall not become a list of them. */
const MAXIMUM_MEMBERS = 1024

const BROKEN = -1

/**
 * The members of the JSON object that these bytes are, in order, repeated keys included. Values are stepped over, not
 * judged: well-formed JSON is split exactly, other bytes give `undefined` or spans a parser would refuse. More than
 * `maximum` members give `undefined`.
 */
export function memberSpans(bytes: Buffer, maximum = MAXIMUM_MEMBERS): MemberSpan[] | undefined {
  const members: MemberSpan[] = []
  let position = afterSpace(bytes, 0)
  if (bytes[position] !== OPEN_BRACE) return undefined
  position = afterSpace(bytes, position + 1)
  if (bytes[position] === CLOSE_BRACE) return endsAt(bytes, position) ? members : undefined
  while (members.length < maximum) {
    const keyStart = position
    if (bytes[keyStart] !== QUOTE) return undefined
    const keyEnd = closingQuote(bytes, keyStart + 1) + 1
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
export function elementSpans(bytes: Buffer, maximum = MAXIMUM_MEMBERS): Span[] | undefined {
  const elements: Span[] = []
  let position = afterSpace(bytes, 0)
  if (bytes[position] !== OPEN_BRACKET) return undefined
  position = afterSpace(bytes, position + 1)
  if (bytes[position] === CLOSE_BRACKET) return endsAt(bytes, position) ? elements : undefined
  while (elements.length < maximum) {
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

function afterValue(bytes: Buffer, start: number): number {
  const first = bytes[start]
  if (first === QUOTE) {
    const quote = closingQuote(bytes, start + 1)
    return quote < bytes.length ? quote + 1 : BROKEN
  }
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return afterNested(bytes, start)
  let position = start
  while (position < bytes.length && !endsScalar(bytes[position])) position++
  return position === start ? BROKEN : position
}

/** Steps over an object or array by counting brackets of either kind outside strings. */
function afterNested(bytes: Buffer, start: number): number {
  let depth = 0
  for (let position = start; position < bytes.length; position++) {
    const byte = bytes[position]
    if (byte === QUOTE) position = closingQuote(bytes, position + 1)
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return position + 1
  }
  return BROKEN
}

const endsAt = (bytes: Buffer, last: number): boolean => afterSpace(bytes, last + 1) === bytes.length

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

  /** What takes every member of that name away. */
  removal(name: string): Cut[] {
    return removalOf(this.members, (member) => this.isNamed(member, name))
  }

  private isNamed({ keyStart, keyEnd }: MemberSpan, name: string): boolean {
    if (isAt(this.frame, keyStart + 1, keyEnd - 1, name)) return true
    return hasEscape(this.frame, keyStart, keyEnd) && stringAt(this.frame, keyStart, keyEnd) === name
  }
}

/** The type of an event without a look into its payload: about a search for one byte over the frame. */
export const eventTypeOf = (frame: Buffer): EventType | undefined => FrameScan.of(frame)?.type()

/**
 * What takes these members out of their object: each goes with the comma before it, or with the one behind it when no
 * kept member stands before it, so that the rest stays JSON.
 */
export function removalOf(members: readonly MemberSpan[], isRemoved: (member: MemberSpan) => boolean): Cut[] {
  const cuts: Cut[] = []
  let hasKept = false
  let previousEnd = 0
  for (let index = 0; index < members.length; index++) {
    const member = members[index] as MemberSpan
    const { keyStart, valueEnd } = member
    if (!isRemoved(member)) hasKept = true
    else if (hasKept) cuts.push({ start: previousEnd, end: valueEnd, text: '' })
    else cuts.push({ start: keyStart, end: members[index + 1]?.keyStart ?? valueEnd, text: '' })
    previousEnd = valueEnd
  }
  return cuts
}

/** The bytes with these changes, in one copy; cuts do not overlap. The very same bytes without any. */
export const splice = (bytes: Buffer, cuts: Cut[]): Buffer =>
  cuts.length === 0 ? bytes : Buffer.concat(splicedPieces(bytes, cuts))

/** The same without a copy: pieces of the bytes, and what comes between them. */
export function splicedPieces(bytes: Buffer, cuts: Cut[]): Buffer[] {
  cuts.sort(byStart)
  const pieces: Buffer[] = []
  let position = 0
  for (const { start, end, text } of cuts) {
    pieces.push(bytes.subarray(position, start))
    if (text !== '') pieces.push(Buffer.from(text))
    position = end
  }
  pieces.push(bytes.subarray(position))
  return pieces
}

const byStart = (one: Cut, other: Cut): number => one.start - other.start
