import { isUtf8 } from 'node:buffer'
import { GatewayError, quoted } from './errors.js'
import {
  afterSpace,
  beforeSpace,
  closingQuote,
  type Cut,
  hasEscape,
  type MemberSpan,
  removalOf,
  splice,
  JSON_BYTES,
} from './json-spans.js'

const { QUOTE, COLON, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES

const MAXIMUM_JSON_DEPTH = 64

/** A key may be as long as the body; what is said about it, and logged, is not. */
const MAXIMUM_SHOWN_CHARACTERS = 64

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
  let member: (Omit<MemberSpan, 'valueEnd'> & { readonly name: string }) | undefined
  const closeMember = (end: number): void => {
    if (member === undefined) return
    const { name, keyStart, keyEnd, valueStart } = member
    if (members.has(name)) throw duplicateKey(name)
    members.set(name, { keyStart, keyEnd, valueStart, valueEnd: beforeSpace(bytes, end) })
    member = undefined
  }
  for (let position = 0; position < bytes.length; position++) {
    const byte = bytes[position]
    if (byte === QUOTE) {
      const keyStart = position
      const keyEnd = closingQuote(bytes, keyStart + 1) + 1
      position = keyEnd - 1
      const colon = afterSpace(bytes, keyEnd)
      // Only a key is followed by a colon.
      if (bytes[colon] !== COLON || (depth !== 1 && !mayBeForbidden(bytes, keyStart, keyEnd))) continue
      const name = keyText(bytes, keyStart, keyEnd)
      if (depth === 1) member = { name, keyStart, keyEnd, valueStart: afterSpace(bytes, colon + 1) }
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > MAXIMUM_JSON_DEPTH) throw tooDeep()
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 1) closeMember(position)
      depth--
    } else if (byte === COMMA && depth === 1) {
      closeMember(position)
    }
  }
  return members
}

/** Whether a key below the top level is worth decoding: by its length with quotes, or because it has escapes. */
const mayBeForbidden = (bytes: Buffer, start: number, end: number): boolean =>
  FORBIDDEN_LENGTHS.has(end - start) || hasEscape(bytes, start, end)

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

/** What every JSON request for a model names. */
export interface ModelFields {
  readonly model: string
}

/** A caller's JSON object: the received bytes, which are relayed, and their parsed form for checks. */
export class JsonBody<Fields extends object = Record<string, unknown>> {
  private constructor(
    readonly bytes: Buffer,
    readonly fields: Fields,
    private readonly members: ReadonlyMap<string, MemberSpan>,
  ) {}

  /** Throws `invalid_request` for anything but one well-formed UTF-8 JSON object within the gateway's JSON rules. */
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
    const removed = new Set<MemberSpan>()
    const cuts: Cut[] = []
    let appended = ''
    for (const [name, text] of Object.entries(edits)) {
      const span = this.members.get(name)
      if (span === undefined) appended += text === undefined ? '' : `,${JSON.stringify(name)}:${text}`
      else if (text === undefined) removed.add(span)
      else cuts.push({ start: span.valueStart, end: span.valueEnd, text })
    }
    if (removed.size > 0) cuts.push(...removalOf([...this.members.values()], (member) => removed.has(member)))
    if (appended !== '') {
      const end = [...this.members.values()].at(-1)?.valueEnd ?? this.bytes.indexOf('{') + 1
      cuts.push({ start: end, end, text: removed.size === this.members.size ? appended.slice(1) : appended })
    }
    return splice(this.bytes, cuts)
  }

  /** The text of one top-level value as the caller spelled it. */
  textOf(name: string): string | undefined {
    const span = this.members.get(name)
    return span === undefined ? undefined : this.bytes.toString('utf8', span.valueStart, span.valueEnd)
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
