import { hash } from 'node:crypto'
import { JsonText } from '../../core/json-text.js'
import { isRecord } from '../../core/validation-rules.js'
import { type Members, parsedOr } from './members.js'

/** Ids, inputs and schemas of tools as messages have them. JSON keeps the spelling of its writer: numbers and the order of keys count. */

/** What messages upstreams take as the id of a call. */
const ACCEPTED_ID = /^[\w-]{1,64}$/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** An id that a messages upstream takes: the same one for the call and for its result, in every request. */
const messagesToolId = (id: string): string => (ACCEPTED_ID.test(id) ? id : `t_${base32(id)}`)

/** Of the SHA-256 of the text: 52 letters. */
function base32(text: string): string {
  let bits = ''
  for (const byte of hash('sha256', text, 'buffer')) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{1,5}/g) ?? []).map((five) => ALPHABET[parseInt(five.padEnd(5, '0'), 2)]).join('')
}

/** Ids of calls, and of their results in the same order: upstreams refuse one that two calls of a conversation have. */
export class CallIds {
  private readonly uses = new Map<string, number>()

  /** The upstream's id for the next call with this id of the caller. */
  next(id: string): string {
    const use = this.uses.get(id) ?? 0
    this.uses.set(id, use + 1)
    // Some upstreams number the calls of each turn from 0. The prefix keeps a later use apart from what is made of another id.
    return use === 0 ? messagesToolId(id) : `r_${base32(`${id} ${use}`)}`
  }
}

/** Every tool takes an object upstream, also one that takes nothing. */
export const NO_INPUT = { type: 'object', properties: {} }

/** The same of a strict tool, for which upstreams take closed schemas alone. */
export const CLOSED_NO_INPUT = { ...NO_INPUT, additionalProperties: false }

/** What a custom tool takes upstream: one text. */
export const TEXT_INPUT = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }

/** The text that a custom tool is called with; all of the input, where the model did not keep to the form, or was cut. */
export function customInput(json: string): string {
  const value = parsedOr(json)
  const input = isRecord(value) && Object.keys(value).length === 1 ? value['input'] : undefined
  return typeof input === 'string' ? input : json
}

/** The input of a call, which messages want as an object. A model may have written anything else: `whenOther` is then called. */
export function inputOfArguments(text: string, whenOther: () => void = () => undefined): object {
  if (text.trim() === '') return {}
  if (isRecord(parsedOr(text))) return new JsonText(text)
  whenOther()
  return { arguments: text }
}

/** A tool's schema. Upstreams refuse one that does not say that it is of an object, which callers may leave out. */
export function objectSchema({ type }: Members, spelled: JsonText): JsonText {
  if (type !== undefined) return spelled
  const rest = spelled.text.slice(1)
  return new JsonText(`{"type":"object"${/^\s*\}/.test(rest) ? '' : ','}${rest}`)
}
