import { randomBytes } from 'node:crypto'
import { elementSpans, memberSpans, stringAt } from './json-spans.js'

/** Drawn anew by every process, so that no text of a caller or an upstream can hold it. */
const MARK = `json:${randomBytes(12).toString('hex')}:`
/** As it stands in JSON. */
const MARKED = `"${MARK}`

const LINE_ENDS = /[\r\n]+/g

/** JSON that stands in a value as it was spelled: numbers of any length, and keys in their order. */
export class JsonText {
  constructor(readonly text: string) {}

  toJSON(): string {
    return MARK + this.text
  }
}

/** As `JSON.stringify`, with each `JsonText` in it as it is. Without regular expressions, whose stack texts of megabytes exceed. */
export function jsonTextOf(value: unknown): string {
  const written = JSON.stringify(value)
  const pieces: string[] = []
  let position = 0
  for (let start = written.indexOf(MARKED); start !== -1; start = written.indexOf(MARKED, position)) {
    const end = endOfString(written, start + MARKED.length)
    const literal: unknown = JSON.parse(written.slice(start, end))
    pieces.push(written.slice(position, start), String(literal).slice(MARK.length))
    position = end
  }
  return position === 0 ? written : pieces.join('') + written.slice(position)
}

/** The position behind the quote that closes a JSON string. */
function endOfString(json: string, from: number): number {
  let quote = json.indexOf('"', from)
  while (isEscaped(json, quote)) quote = json.indexOf('"', quote + 1)
  return quote + 1
}

/** Whether an odd number of backslashes stands before the position. */
function isEscaped(json: string, position: number): boolean {
  let before = position
  while (json[before - 1] === '\\') before--
  return (position - before) % 2 === 1
}

/**
 * The text of the values within some JSON bytes, found by their paths; the members and elements on the way are looked up once. The
 * bytes are known to be JSON.
 */
export class JsonTexts {
  private names: ReadonlyMap<string, JsonTexts> | undefined
  private elements: readonly JsonTexts[] | undefined

  constructor(private readonly bytes: Buffer) {}

  /** undefined where there is no such value. */
  at(...path: readonly (string | number)[]): JsonTexts | undefined {
    return path.reduce<JsonTexts | undefined>(
      (found, step) => (typeof step === 'number' ? found?.element(step) : found?.member(step)),
      this,
    )
  }

  /** Line ends, which stand between tokens alone, become spaces: the text may be part of a line of an event stream. */
  get text(): JsonText {
    return new JsonText(this.bytes.toString().replaceAll(LINE_ENDS, ' '))
  }

  private member(name: string): JsonTexts | undefined {
    this.names ??= new Map(
      (memberSpans(this.bytes, Infinity) ?? []).map(({ keyStart, keyEnd, valueStart, valueEnd }) => [
        stringAt(this.bytes, keyStart, keyEnd) ?? '',
        new JsonTexts(this.bytes.subarray(valueStart, valueEnd)),
      ]),
    )
    return this.names.get(name)
  }

  private element(index: number): JsonTexts | undefined {
    this.elements ??= (elementSpans(this.bytes, Infinity) ?? []).map(
      ({ start, end }) => new JsonTexts(this.bytes.subarray(start, end)),
    )
    return this.elements[index]
  }
}
