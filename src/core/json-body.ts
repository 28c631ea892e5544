import { isUtf8 } from 'node:buffer'
import { GatewayError, quoted } from './errors.js'
import { LONG_STRING_BYTES, parseWithLongStrings } from './long-strings.js'
import { shownKey } from './member-names.js'
import {
  afterSpace,
  beforeSpace,
  closingQuote,
  type Cut,
  hasEscape,
  type MemberSpan,
  removalOf,
  splice,
  splicedPieces,
  JSON_BYTES,
} from './json-spans.js'

const { QUOTE, COLON, COMMA, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES

const MAXIMUM_JSON_DEPTH = 64
/** In JSON of callers, those within others included: a parser takes seconds and gigabytes for the millions that fit into 10 MiB. */
export const MAXIMUM_JSON_VALUES = 65_536

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
/** With quotes. */
const FORBIDDEN_LENGTHS: ReadonlySet<number> = new Set([...FORBIDDEN_KEYS].map((key) => key.length + 2))

/**
 * One pass over the bytes of a JSON object: where its top-level members stand, so that a value can be replaced without
 * rebuilding the rest. Refuses (`invalid_request`) what a parser would quietly accept: more than 64 levels, keys that reach a
 * prototype, and a key that its object has already (what was authorised must be what is sent), below the top level only in
 * bytes of a `caller`, of whom more than `maximumValues` are refused, too. It does not judge syntax: text that is not JSON, or the
 * beginning of such a text, yields some spans or none, and the parser that runs next refuses it.
 */
export function scanJsonObject(
  bytes: Buffer,
  source: JsonSource = 'caller',
  maximumValues = limitOf(source),
): JsonScan {
  let values = 1
  const members = new Map<string, MemberSpan>()
  const nested = source === 'caller' ? new NestedKeys(bytes) : undefined
  const longStrings: number[] = []
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
      if (bytes[colon] !== COLON) {
        if (keyEnd - keyStart > LONG_STRING_BYTES) longStrings.push(keyStart, keyEnd)
        continue
      }
      if (depth !== 1) {
        const isEscaped = hasEscape(bytes, keyStart, keyEnd)
        // Most keys need not be decoded to tell that they are allowed.
        if (isEscaped || FORBIDDEN_LENGTHS.has(keyEnd - keyStart)) keyText(bytes, keyStart, keyEnd)
        nested?.add(depth, keyStart, keyEnd, isEscaped)
        continue
      }
      const name = keyText(bytes, keyStart, keyEnd)
      member = { name, keyStart, keyEnd, valueStart: afterSpace(bytes, colon + 1) }
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (++depth > MAXIMUM_JSON_DEPTH) throw tooDeep()
      const first = bytes[afterSpace(bytes, position + 1)]
      const isEmpty = first === CLOSE_BRACE || first === CLOSE_BRACKET
      if (!isEmpty && ++values > maximumValues) throw tooManyValues(maximumValues)
      nested?.open(depth)
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 1) closeMember(position)
      depth--
    } else if (byte === COMMA) {
      if (++values > maximumValues) throw tooManyValues(maximumValues)
      if (depth === 1) closeMember(position)
    }
  }
  return { members, values, longStrings }
}

interface JsonScan {
  /** Of the top level, by their names. */
  readonly members: Map<string, MemberSpan>
  /** At all levels, the whole included. */
  readonly values: number
  /** Start and end in turn, quotes included, of strings that are no keys. */
  readonly longStrings: readonly number[]
}

/** Whose JSON it is: a caller's is checked by the gateway and read by an upstream, which may read it otherwise. */
type JsonSource = 'caller' | 'upstream'

const limitOf = (source: JsonSource): number => (source === 'caller' ? MAXIMUM_JSON_VALUES : Number.POSITIVE_INFINITY)

/** Keys of one object that are compared one by one; more are looked up. */
const COMPARED_KEYS = 16

/** The keys of the objects below the top level that are open where the scan stands, by their depth. */
class NestedKeys {
  private readonly levels: ObjectKeys[] = []

  constructor(private readonly bytes: Buffer) {}

  /** An object or array begins. */
  open(depth: number): void {
    this.levels[depth]?.clear()
  }

  /** Throws `invalid_request` for a key that the object at this depth has already. */
  add(depth: number, start: number, end: number, isEscaped: boolean): void {
    const keys = (this.levels[depth] ??= new ObjectKeys(this.bytes))
    if (!keys.add(start, end, isEscaped)) throw duplicateKey(keyText(this.bytes, start, end))
  }
}

class ObjectKeys {
  /** Start and end of each in turn. */
  private readonly spans: number[] = []
  /** Their texts, once they are many or one is spelled with escapes. */
  private texts: Set<string> | undefined

  constructor(private readonly bytes: Buffer) {}

  clear(): void {
    this.spans.length = 0
    this.texts = undefined
  }

  /** False where the object has the key already. */
  add(start: number, end: number, isEscaped: boolean): boolean {
    const { spans } = this
    if (this.texts === undefined && (isEscaped || spans.length === 2 * COMPARED_KEYS)) {
      this.texts = new Set(Array.from({ length: spans.length / 2 }, (_, index) => this.textOf(index)))
    }
    if (this.texts !== undefined) {
      const before = this.texts.size
      return this.texts.add(keyText(this.bytes, start, end)).size > before
    }
    for (let index = 0; 2 * index < spans.length; index++) if (this.isAt(index, start, end)) return false
    spans.push(start, end)
    return true
  }

  private textOf(index: number): string {
    return keyText(this.bytes, Number(this.spans[2 * index]), Number(this.spans[2 * index + 1]))
  }

  private isAt(index: number, start: number, end: number): boolean {
    const from = Number(this.spans[2 * index])
    if (Number(this.spans[2 * index + 1]) - from !== end - start) return false
    for (let offset = 1; start + offset < end; offset++) {
      if (this.bytes[from + offset] !== this.bytes[start + offset]) return false
    }
    return true
  }
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

const duplicateKey = (name: string): GatewayError =>
  new GatewayError('invalid_request', `The key ${quoted(name)} stands twice in the request body.`, {
    param: shownKey(name),
    code: 'duplicate_key',
  })

const tooDeep = (): GatewayError =>
  new GatewayError('invalid_request', `The request body is nested deeper than ${MAXIMUM_JSON_DEPTH} levels.`, {
    code: 'json_too_deep',
  })

const tooManyValues = (maximumValues: number): GatewayError =>
  new GatewayError('invalid_request', `The request body holds more than ${maximumValues} values.`, {
    code: 'json_too_many_values',
  })

/** What an edit does to one top-level member: `undefined` removes it, text (JSON) replaces or appends it. */
export type JsonEdits = Readonly<Record<string, string | undefined>>

/** What every JSON request for a model names. */
export interface ModelFields {
  readonly model: string
}

/** A copy costs less than to send several pieces. */
const COPIED_BYTES = 1_048_576

interface JsonParsing {
  readonly source?: JsonSource
  /** Values at all levels. */
  readonly maximumValues?: number | undefined
  /** Told how many values there are; may throw. */
  readonly beforeParsing?: (values: number) => void
}

/** A caller's JSON object: the received bytes, which are relayed, and their parsed form for checks. */
export class JsonBody<Fields extends object = Record<string, unknown>> {
  private constructor(
    readonly bytes: Buffer,
    readonly fields: Fields,
    private scanned?: JsonScan,
  ) {}

  /** Throws `invalid_request` for anything but one well-formed UTF-8 JSON object within the gateway's JSON rules. */
  static parse(bytes: Buffer, { source, maximumValues, beforeParsing }: JsonParsing = {}): JsonBody {
    if (!isUtf8(bytes)) throw new GatewayError('invalid_request', 'The request body is not valid UTF-8.', INVALID_JSON)
    const scan = scanJsonObject(bytes, source, maximumValues)
    beforeParsing?.(scan.values)
    return new JsonBody(bytes, parseObject(bytes, scan.longStrings), scan)
  }

  /** A body that the gateway has written: `text` is the JSON of `fields`. */
  static written<Written extends object>(text: string, fields: Written): JsonBody<Written> {
    return new JsonBody(Buffer.from(text), fields)
  }

  /** The same body once its fields have been checked against a DTO. */
  as<Checked extends object>(fields: Checked): JsonBody<Checked> {
    return new JsonBody(this.bytes, fields, this.scanned)
  }

  /** The caller's bytes with only the named members changed; all other bytes, their order and spelling stay. */
  edited(edits: JsonEdits): Buffer {
    return splice(this.bytes, this.cutsOf(edits))
  }

  /** The same, of a large body in pieces of the caller's bytes and what comes between them: there is no second one of it. */
  editedPieces(edits: JsonEdits): Buffer[] {
    return this.bytes.length <= COPIED_BYTES ? [this.edited(edits)] : splicedPieces(this.bytes, this.cutsOf(edits))
  }

  private cutsOf(edits: JsonEdits): Cut[] {
    const { members } = this.scan
    const removed = new Set<MemberSpan>()
    const cuts: Cut[] = []
    let appended = ''
    for (const [name, text] of Object.entries(edits)) {
      const span = members.get(name)
      if (span === undefined) appended += text === undefined ? '' : `,${JSON.stringify(name)}:${text}`
      else if (text === undefined) removed.add(span)
      else cuts.push({ start: span.valueStart, end: span.valueEnd, text })
    }
    if (removed.size > 0) cuts.push(...removalOf([...members.values()], (member) => removed.has(member)))
    if (appended !== '') {
      const end = [...members.values()].at(-1)?.valueEnd ?? this.bytes.indexOf('{') + 1
      cuts.push({ start: end, end, text: removed.size === members.size ? appended.slice(1) : appended })
    }
    return cuts
  }

  /** The text of one top-level value as the caller spelled it. */
  textOf(name: string): string | undefined {
    const span = this.scan.members.get(name)
    return span === undefined ? undefined : this.bytes.toString('utf8', span.valueStart, span.valueEnd)
  }

  /** Of what the gateway has written it is made when it is needed. */
  private get scan(): JsonScan {
    return (this.scanned ??= scanJsonObject(this.bytes, 'upstream'))
  }
}

const INVALID_JSON = { code: 'invalid_json' } as const

function parseObject(bytes: Buffer, longStrings: readonly number[]): Record<string, unknown> {
  let value: unknown
  try {
    value = longStrings.length === 0 ? JSON.parse(bytes.toString()) : parseWithLongStrings(bytes, longStrings)
  } catch {
    // The parser's own message quotes the body, which may hold a caller's secret.
    throw new GatewayError('invalid_request', 'The request body is not valid JSON.', INVALID_JSON)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new GatewayError('invalid_request', 'The request body must be a JSON object.', INVALID_JSON)
  }
  return value as Record<string, unknown>
}
