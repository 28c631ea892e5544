import { isUtf8 } from 'node:buffer'
import { GatewayError } from './gateway-error.js'
import { type MemberSpan, scanJsonObject } from './json-scan.js'

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
