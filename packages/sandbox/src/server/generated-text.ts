import { fieldOf, isObject, type JsonObject, listOf } from './json-value.js'

/**
 * Words anywhere in a client's text that shape a successful response:
 *
 * | Word | Effect |
 * |---|---|
 * | `#bytes=N` | speech: exactly N bytes of pcm-like data instead of speech |
 * | `#chunks=N` | chat, messages and responses: N content pieces `piece <n>` |
 * | `#words=N` | chat, messages and responses: an answer of N words |
 * | `#hold=N` | any event stream: N frames, then silence until the client disconnects |
 * | `#refuse` | chat, messages and responses: the model refuses, and says why |
 * | `#filter` | chat, messages and responses: the answer is cut behind three words by a filter of what may be said |
 * | `#steps=N` | messages: the model calls tools N times in a row before it answers, instead of once |
 * | `#redact` | messages: a model that thinks hides part of it, in a `redacted_thinking` block |
 * | `#skip` | messages: a model that thinks does not in steps that go on after the results of tools |
 * | `#args={…}` | the arguments of the first tool call, taken verbatim up to the end of the text |
 */
export function numberWord(text: string, word: 'bytes' | 'chunks' | 'words' | 'hold' | 'steps'): number | undefined {
  const digits = new RegExp(`(?:^|\\s)#${word}=(\\d{1,12})(?=\\s|$)`).exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Whether a text has one of the words that have no number. */
export const hasWord = (text: string, word: 'refuse' | 'filter' | 'redact' | 'skip'): boolean =>
  new RegExp(`(?:^|\\s)#${word}(?=\\s|$)`).test(text)

/** Why a model refuses. */
export const REFUSAL = 'I cannot help with that.'

/** Words of an answer before its filter acts. */
const UNFILTERED_WORDS = 3

/** The words that a filter lets pass where the client's text asks for it. */
export const unfilteredWords = (callerText: string): number =>
  hasWord(callerText, 'filter') ? UNFILTERED_WORDS : Infinity

export function argumentsWord(text: string): string | undefined {
  return /(?:^|\s)#args=(.*)$/s.exec(text)?.[1]
}

/** The pieces of `fallback`, or as many as the client's text requests. Lazy: N may be millions. */
export function answerPieces(callerText: string, fallback: string): Iterable<string> {
  const chunks = numberWord(callerText, 'chunks')
  if (chunks !== undefined) return numbered('piece', chunks)
  const words = numberWord(callerText, 'words')
  if (words !== undefined) return numbered('word', words)
  return fallback.match(/\s*\S+/g) ?? []
}

/** `#bytes=N`: exactly `total` bytes in pieces of `pieceBytes`; byte i is i modulo 251. Flat in memory for any size. */
export function* fillerBytes(total: number, pieceBytes: number): Generator<Buffer, void, undefined> {
  const period = 251
  const pattern = Buffer.from(Array.from({ length: pieceBytes + period }, (_, index) => index % period))
  for (let sent = 0; sent < total; sent += pieceBytes) {
    const start = sent % period
    yield pattern.subarray(start, start + Math.min(pieceBytes, total - sent))
  }
}

function* numbered(noun: string, count: number): Generator<string> {
  for (let number = 1; number <= count; number += 1) yield `${number === 1 ? '' : ' '}${noun}${number}`
}

/** A rough count as vendors' tokenisers give it: four ASCII characters, or one of any other script, to a token. */
export function estimateTokens(text: string): number {
  let ascii = 0
  let other = 0
  for (const character of text) {
    if (character.charCodeAt(0) < 0x80) ascii += 1
    else other += 1
  }
  return Math.ceil(ascii / 4) + other
}

const MAX_DEPTH = 8

/** A value that satisfies a JSON Schema, the same one each time: required properties only, or all when none is required. */
export function exampleOf(schema: unknown, name = 'value', depth = 0): unknown {
  if (!isObject(schema) || depth > MAX_DEPTH) return `example ${name}`
  if (Object.hasOwn(schema, 'const')) return schema['const']
  if (Object.hasOwn(schema, 'default')) return schema['default']
  const listed = listOf(schema['enum'])[0] ?? listOf(schema['examples'])[0]
  if (listed !== undefined) return listed
  const alternative = listOf(schema['anyOf'])[0] ?? listOf(schema['oneOf'])[0]
  if (alternative !== undefined) return exampleOf(alternative, name, depth + 1)
  return exampleOfType(schema, name, depth)
}

function exampleOfType(schema: JsonObject, name: string, depth: number): unknown {
  const type = Array.isArray(schema['type']) ? (schema['type'] as unknown[])[0] : schema['type']
  switch (type) {
    case 'object':
      return exampleObject(schema, depth)
    case 'array':
      return [exampleOf(schema['items'], name, depth + 1)]
    case 'number':
    case 'integer':
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 1
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return isObject(schema['properties']) ? exampleObject(schema, depth) : `example ${name}`
  }
}

function exampleObject(schema: JsonObject, depth: number): JsonObject {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = listOf(schema['required']).filter((name) => typeof name === 'string')
  const names = required.length > 0 ? required : Object.keys(properties)
  return Object.fromEntries(names.map((name) => [name, exampleOf(fieldOf(properties, name), name, depth + 1)]))
}

/**
 * The words of one answer while they are being sent: ends early at `limit` pieces, at a stop sequence or at a filter, and knows
 * afterwards why it ended and how many pieces (counted as tokens) went out.
 */
export class TextRun implements Iterable<string> {
  /** Pieces handed out so far. */
  count = 0
  /** Valid when the iteration is over. */
  ended: 'complete' | 'limit' | 'stop' | 'filter' = 'complete'
  /** The stop sequence met, when `ended` is `stop`. */
  stoppedBy: string | undefined

  constructor(
    private readonly pieces: Iterable<string>,
    private readonly limit: number,
    private readonly stops: readonly string[],
    private readonly unfiltered = Infinity,
  ) {}

  *[Symbol.iterator](): Generator<string> {
    for (const piece of this.stops.length > 0 ? this.#beforeStop() : this.pieces) {
      if (this.count >= this.limit) {
        this.ended = 'limit'
        return
      }
      if (this.count >= this.unfiltered) {
        this.ended = 'filter'
        return
      }
      this.count += 1
      yield piece
    }
    if (this.stoppedBy !== undefined) this.ended = 'stop'
  }

  /** Runs to the end at once. */
  join(): string {
    return [...this].join('')
  }

  #beforeStop(): readonly string[] {
    const whole = [...this.pieces].join('')
    let end = whole.length
    for (const stop of this.stops) {
      const at = whole.indexOf(stop)
      if (at < 0 || at >= end) continue
      end = at
      this.stoppedBy = stop
    }
    return whole.slice(0, end).match(/\s*\S+|\s+$/g) ?? []
  }
}
