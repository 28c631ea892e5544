import { elementSpans, memberSpans, stringAt } from './json-spans.js'

const OPEN = Buffer.from('{')
const CLOSE = Buffer.from('}')
const COMMA = Buffer.from(',')

/**
 * One level of a JSON object whose values stay the bytes they came as: members can be moved, renamed and replaced
 * without a number or a string being spelled anew. Of repeated keys the last one counts.
 */
export class RawObject {
  private constructor(private readonly members: Map<string, Buffer | RawObject>) {}

  /** `undefined` for bytes that are not one JSON object. */
  static parse(bytes: Buffer | undefined): RawObject | undefined {
    const spans = bytes === undefined ? undefined : memberSpans(bytes)
    if (bytes === undefined || spans === undefined) return undefined
    const members = new Map<string, Buffer>()
    for (const { keyStart, keyEnd, valueStart, valueEnd } of spans) {
      const name = stringAt(bytes, keyStart, keyEnd)
      if (name === undefined) return undefined
      members.set(name, bytes.subarray(valueStart, valueEnd))
    }
    return new RawObject(members)
  }

  static empty(): RawObject {
    return new RawObject(new Map())
  }

  get isEmpty(): boolean {
    return this.members.size === 0
  }

  get names(): string[] {
    return [...this.members.keys()]
  }

  has(name: string): boolean {
    return this.members.has(name)
  }

  /** The JSON text of a value. */
  get(name: string): Buffer | undefined {
    const value = this.members.get(name)
    return value instanceof RawObject ? value.toBuffer() : value
  }

  /** The value of a member that is a string. */
  text(name: string): string | undefined {
    const value = this.members.get(name)
    return Buffer.isBuffer(value) ? stringAt(value, 0, value.length) : undefined
  }

  /** A member that is an object, to be edited in place. */
  object(name: string): RawObject | undefined {
    const value = this.members.get(name)
    if (value === undefined || value instanceof RawObject) return value
    const parsed = RawObject.parse(value)
    if (parsed !== undefined) this.members.set(name, parsed)
    return parsed
  }

  /** As above; made when absent, and when it is no object. */
  objectOrNew(name: string): RawObject {
    const found = this.object(name)
    if (found !== undefined) return found
    const made = RawObject.empty()
    this.members.set(name, made)
    return made
  }

  /** `value` is JSON text; a new member comes last. */
  set(name: string, value: Buffer | string): void {
    this.members.set(name, typeof value === 'string' ? Buffer.from(value) : value)
  }

  setText(name: string, value: string): void {
    this.set(name, JSON.stringify(value))
  }

  /** Puts a new member before all others. */
  setFirst(name: string, value: string): void {
    const rest = [...this.members]
    this.members.clear()
    this.set(name, value)
    for (const [other, kept] of rest) if (other !== name) this.members.set(other, kept)
  }

  /** Removes a member and returns its JSON text. */
  remove(name: string): Buffer | undefined {
    const value = this.get(name)
    this.members.delete(name)
    return value
  }

  /** The member keeps its place; a member that already has the new name gives way. */
  rename(from: string, to: string): void {
    const value = this.members.get(from)
    if (value === undefined || from === to) return
    const all = [...this.members]
    this.members.clear()
    for (const [name, kept] of all) {
      if (name === from) this.members.set(to, kept)
      else if (name !== to) this.members.set(name, kept)
    }
  }

  toBuffer(): Buffer {
    const pieces: Buffer[] = []
    for (const [name, value] of this.members) {
      const isFirst = pieces.length === 0
      pieces.push(isFirst ? OPEN : COMMA, Buffer.from(`${JSON.stringify(name)}:`))
      pieces.push(value instanceof RawObject ? value.toBuffer() : value)
    }
    if (pieces.length === 0) pieces.push(OPEN)
    pieces.push(CLOSE)
    return Buffer.concat(pieces)
  }
}

/** The array with each element that `edit` changes replaced; the very same bytes when none is or it is no array. */
export function mapElements(array: Buffer, edit: (element: Buffer) => Buffer): Buffer {
  const spans = elementSpans(array)
  if (spans === undefined) return array
  const elements = spans.map(({ start, end }) => array.subarray(start, end))
  const edited = elements.map(edit)
  if (edited.every((element, index) => element === elements[index])) return array
  return Buffer.from(`[${edited.map((element) => element.toString('latin1')).join(',')}]`, 'latin1')
}
