import { GatewayError } from './gateway-error.js'
import { quoted } from './message-text.js'

/** Byte positions of one top-level member: `"key"` starts at `keyStart`, its value is `[valueStart, valueEnd)`. */
export interface MemberSpan {
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
