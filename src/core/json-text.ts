import { randomBytes } from 'node:crypto'
import { elementSpans, memberSpans, stringAt } from './json-spans.js'

/** Drawn anew by every process, so that no text of a caller or an upstream can hold it. */
const MARK = `json:${randomBytes(12).toString('hex')}:`
const MARKED = new RegExp(`"${MARK}(?:[^"\\\\]|\\\\.)*"`, 'g')

const LINE_ENDS = /[\r\n]+/g

/** JSON that stands in a value as it was spelled: numbers of any length, and keys in their order. */
export class JsonText {
  constructor(readonly text: string) {}

  toJSON(): string {
    return MARK + this.text
  }
}

/** As `JSON.stringify`, with each `JsonText` in it as it is. */
export const jsonTextOf = (value: unknown): string =>
  JSON.stringify(value).replace(MARKED, (literal) => String(JSON.parse(literal)).slice(MARK.length))

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
