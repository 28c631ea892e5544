import { randomBytes } from 'node:crypto'
import { isStrictBase64, type Text, TextSpan } from './base64.js'

/** Strings that are shorter cost little to parse. With quotes. */
export const LONG_STRING_BYTES = 16_384

/** Drawn anew by every process, so that no text of a caller can hold it. */
const MARK = `long:${randomBytes(12).toString('hex')}:`

const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w.+=-]+)*;base64,/
const LONGEST_PREFIX = 256

const textsOfGetters = new WeakMap<object, Text>()

/**
 * The value of JSON whose strings at these places (start and end in turn, quotes included) may be long. Those in Base64, as
 * pictures and sounds are, are not decoded: their members read them from the bytes once they are asked for. Throws as the
 * parser does; whether it does, no such string can change, as it holds nothing that JSON forbids or escapes.
 */
export function parseWithLongStrings(bytes: Buffer, places: readonly number[]): unknown {
  const texts: TextSpan[] = []
  let outline = ''
  let position = 0
  for (let index = 0; index < places.length; index += 2) {
    const start = Number(places[index]) + 1
    const end = Number(places[index + 1]) - 1
    if (!isBase64(bytes, start, end)) continue
    outline += bytes.toString('utf8', position, start) + MARK + String(texts.length)
    texts.push(new TextSpan(bytes, start, end))
    position = end
  }
  const value: unknown = JSON.parse(outline + bytes.toString('utf8', position))
  if (texts.length > 0) restore(value, texts)
  return value
}

/** A long string in its bytes, where the member has not been read yet; undefined for any other member. */
export function longTextOf(parent: object, name: string): Text | undefined {
  const getter: unknown = Reflect.get(Object.getOwnPropertyDescriptor(parent, name) ?? {}, 'get')
  return typeof getter === 'function' ? textsOfGetters.get(getter) : undefined
}

function isBase64(bytes: Buffer, start: number, end: number): boolean {
  const prefix = DATA_URL.exec(bytes.toString('latin1', start, Math.min(end, start + LONGEST_PREFIX)))?.[0] ?? ''
  return isStrictBase64(new TextSpan(bytes, start + prefix.length, end))
}

function restore(parent: unknown, texts: readonly TextSpan[]): void {
  if (typeof parent !== 'object' || parent === null) return
  for (const [name, member] of Object.entries(parent)) {
    if (typeof member !== 'string') restore(member, texts)
    else if (member.startsWith(MARK)) define(parent, name, texts[Number(member.slice(MARK.length))])
  }
}

/** A member like any other for those who read or write it. */
function define(parent: object, name: string, text: TextSpan | undefined): void {
  if (text === undefined) return
  const set = (value: unknown): void => {
    Object.defineProperty(parent, name, { value, writable: true, enumerable: true, configurable: true })
  }
  const get = (): string => {
    const value = text.slice(0)
    set(value)
    return value
  }
  textsOfGetters.set(get, text)
  Object.defineProperty(parent, name, { get, set, enumerable: true, configurable: true })
}
