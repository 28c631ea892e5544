import { isUtf8 } from 'node:buffer'
import { GatewayError, quoted } from './errors.js'

/** Byte positions of one top-level member: `"key"` starts at `keyStart`, its value is `[valueStart, valueEnd)`. */
interface MemberSpan {
  readonly keyStart: number
  readonly valueStart: number
  readonly valueEnd: number
}

export const MAXIMUM_JSON_DEPTH = 64

/** A key may be as long as the body; what is said about it, and logged, is not. */
const MAXIMUM_SHOWN_CHARACTERS = 64

const NEARBY_BYTES = 32

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
const FORBIDDEN_LENGTHS: ReadonlySet<number> = new Set([...FORBIDDEN_KEYS].map((key) => key.length + 2))

/**
 * One pass over the bytes of a JSON object: where its top-level members stand, so that a value can be replaced without
 * rebuilding the rest. Refuses (`invalid_request`) what a parser would quietly accept: more than 64 levels, a repeated
 * top-level key (what was authorised must be what is sent), keys that reach a prototype. It does not judge syntax:
 * text that is not JSON yields some spans or none, and the parser that runs next refuses it.
 */
export function scanJsonObject(bytes: Buffer): Map<string, MemberSpan> {
  const members = new Map<string, MemberSpan>()
  let depth = 0
  let member: { name: string; keyStart: number; valueStart: number } | undefined
  let position = 0
  const closeMember = (end: number): void => {
    if (member === undefined) return
    const { name, keyStart, valueStart } = member
    if (members.has(name)) throw duplicateKey(name)
    members.set(name, { keyStart, valueStart, valueEnd: trimEnd(bytes, end) })
    member = undefined
  }
  while (position < bytes.length) {
    const byte = bytes[position]
    if (byte === QUOTE) {
      const end = stringEnd(bytes, position)
      const next = skipSpace(bytes, end)
      // Only a key is followed by a colon.
      if (bytes[next] === COLON) {
        const name = depth === 1 || mayBeForbidden(bytes, position, end) ? keyText(bytes, position, end) : ''
        if (depth === 1) member = { name, keyStart: position, valueStart: skipSpace(bytes, next + 1) }
      }
      position = end
      continue
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > MAXIMUM_JSON_DEPTH) throw tooDeep()
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 1) closeMember(position)
      depth--
    } else if (byte === COMMA && depth === 1) {
      closeMember(position)
    }
    position++
  }
  return members
}

/** The position behind the closing quote of the string that opens at `start`; the end of the bytes when unclosed. */
function stringEnd(bytes: Buffer, start: number): number {
  // Most strings are short: a search in native code costs more to call than these few steps.
  const nearby = Math.min(bytes.length, start + 1 + NEARBY_BYTES)
  for (let position = start + 1; position < nearby; position++) {
    const byte = bytes[position]
    if (byte === QUOTE) return position + 1
    if (byte === BACKSLASH) position++
  }
  return distantStringEnd(bytes, start)
}

function distantStringEnd(bytes: Buffer, start: number): number {
  let quote = bytes.indexOf(QUOTE, start + 1)
  while (quote !== -1) {
    let backslashes = 0
    while (bytes[quote - 1 - backslashes] === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return quote + 1
    quote = bytes.indexOf(QUOTE, quote + 1)
  }
  return bytes.length
}

/** Whether a key below the top level is worth decoding: by its length with quotes, or because it has escapes. */
function mayBeForbidden(bytes: Buffer, start: number, end: number): boolean {
  if (FORBIDDEN_LENGTHS.has(end - start)) return true
  for (let position = start + 1; position < end; position++) if (bytes[position] === BACKSLASH) return true
  return false
}

function keyText(bytes: Buffer, start: number, end: number): string {
  const literal = bytes.toString('utf8', start, end)
  const name = literal.includes('\\') ? unescaped(literal) : literal.slice(1, -1)
  if (FORBIDDEN_KEYS.has(name)) {
    throw new GatewayError('invalid_request', `The key ${quoted(name)} is not allowed in the request body.`, {
      param: name,
      code: 'forbidden_key',
    })
  }
  return name
}

function unescaped(literal: string): string {
  try {
    return String(JSON.parse(literal))
  } catch {
    return literal
  }
}

function skipSpace(bytes: Buffer, from: number): number {
  let position = from
  while (isSpace(bytes[position])) position++
  return position
}

function trimEnd(bytes: Buffer, end: number): number {
  let position = end
  while (isSpace(bytes[position - 1])) position--
  return position
}

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const duplicateKey = (name: string): GatewayError =>
  new GatewayError('invalid_request', `The key ${quoted(name)} stands twice in the request body.`, {
    param: name.slice(0, MAXIMUM_SHOWN_CHARACTERS),
    code: 'duplicate_key',
  })

const tooDeep = (): GatewayError =>
  new GatewayError('invalid_request', `The request body is nested deeper than ${MAXIMUM_JSON_DEPTH} levels.`, {
    code: 'json_too_deep',
  })

/** What an edit does to one top-level member: `undefined` removes it, text (JSON) replaces or appends it. */
export type JsonEdits = Readonly<Record<string, string | undefined>>

interface Cut {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A caller's JSON object: the bytes as they came, and their parsed form for checks. The bytes are what travels on. */
export class JsonBody<Fields extends object = Record<string, unknown>> {
  private constructor(
    readonly bytes: Buffer,
    readonly fields: Fields,
    private readonly members: ReadonlyMap<string, MemberSpan>,
  ) {}

  /** Throws `invalid_request` for anything but one well-formed UTF-8 JSON object within the house's JSON rules. */
  static parse(bytes: Buffer): JsonBody {
    if (!isUtf8(bytes)) throw new GatewayError('invalid_request', 'The request body is not valid UTF-8.', INVALID_JSON)
    const members = scanJsonObject(bytes)
    return new JsonBody(bytes, parseObject(bytes), members)
  }

  /** The same body once its fields have been checked against a DTO. */
  as<Checked extends object>(fields: Checked): JsonBody<Checked> {
    return new JsonBody(this.bytes, fields, this.members)
  }

  /** The caller's bytes with only the named members changed; all other bytes, their order and spelling stay. */
  edited(edits: JsonEdits): Buffer {
    if (Object.keys(edits).length === 0) return this.bytes
    const cuts: Cut[] = []
    let appended = ''
    const removed = new Set(Object.keys(edits).filter((name) => edits[name] === undefined))
    for (const [name, text] of Object.entries(edits)) {
      const span = this.members.get(name)
      if (span !== undefined && text !== undefined) cuts.push({ start: span.valueStart, end: span.valueEnd, text })
      else if (span !== undefined) cuts.push(this.removalOf(name, removed))
      else if (text !== undefined) appended += `,${JSON.stringify(name)}:${text}`
    }
    if (appended !== '') cuts.push(this.appendix(appended, removed))
    return cuts.length === 0 ? this.bytes : splice(this.bytes, cuts)
  }

  /** The text of one top-level value as the caller spelled it. */
  textOf(name: string): string | undefined {
    const span = this.members.get(name)
    return span === undefined ? undefined : this.bytes.toString('utf8', span.valueStart, span.valueEnd)
  }

  /** A member leaves with the comma before it, or with the one behind it when no kept member stands before it. */
  private removalOf(name: string, removed: ReadonlySet<string>): Cut {
    const names = [...this.members.keys()]
    const spans = [...this.members.values()]
    const index = names.indexOf(name)
    const span = spans[index] as MemberSpan
    const previous = spans[index - 1]
    if (previous !== undefined && names.slice(0, index).some((other) => !removed.has(other))) {
      return { start: previous.valueEnd, end: span.valueEnd, text: '' }
    }
    return { start: span.keyStart, end: spans[index + 1]?.keyStart ?? span.valueEnd, text: '' }
  }

  private appendix(appended: string, removed: ReadonlySet<string>): Cut {
    const last = [...this.members.values()].at(-1)
    const end = last?.valueEnd ?? this.bytes.indexOf('{') + 1
    const isAlone = [...this.members.keys()].every((name) => removed.has(name))
    return { start: end, end, text: isAlone ? appended.slice(1) : appended }
  }
}

const INVALID_JSON = { code: 'invalid_json' } as const

function parseObject(bytes: Buffer): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    // The parser's own message quotes the body, which may hold a caller's secret.
    throw new GatewayError('invalid_request', 'The request body is not valid JSON.', INVALID_JSON)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new GatewayError('invalid_request', 'The request body must be a JSON object.', INVALID_JSON)
  }
  return value as Record<string, unknown>
}

function splice(bytes: Buffer, cuts: Cut[]): Buffer {
  cuts.sort((a, b) => a.start - b.start || a.end - b.end)
  const pieces: Buffer[] = []
  let position = 0
  for (const { start, end, text } of cuts) {
    if (start > position) pieces.push(bytes.subarray(position, start))
    if (text !== '') pieces.push(Buffer.from(text, 'utf8'))
    position = Math.max(position, end)
  }
  pieces.push(bytes.subarray(position))
  return Buffer.concat(pieces)
}
