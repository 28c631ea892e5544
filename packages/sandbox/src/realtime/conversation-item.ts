import { isObject, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { type AudioFormat, bytesPerMs } from './audio-format.js'
import { AudioTally } from './audio-tally.js'
import { without } from './members.js'

/** Audio of an item: what is known of it without its bytes. */
export interface ItemAudio {
  durationMs: number
  readonly bytes: number
  readonly checksum: string
  readonly format: AudioFormat
}

/** One item of the conversation. `fields` has the GA form, without audio bytes. */
export interface ConversationItem {
  readonly id: string
  fields: JsonObject
  audio: ItemAudio | undefined
}

/** An item that a client sent; its audio is weighed and thrown away. */
export function itemOf(id: string, checked: JsonObject, format: AudioFormat): ConversationItem {
  const { type, status } = checked
  const rest = without(checked, 'id', 'object', 'type', 'status')
  const tally = new AudioTally()
  const parts = listOf(rest['content']).map((part) => {
    if (!isObject(part) || typeof part['audio'] !== 'string') return part
    tally.add(Buffer.from(part['audio'], 'base64'))
    return { ...without(part, 'audio'), transcript: part['transcript'] ?? null }
  })
  const content = rest['content'] === undefined ? {} : { content: parts }
  const { bytes, checksum } = tally
  const audio = bytes === 0 ? undefined : { bytes, checksum, durationMs: bytes / bytesPerMs(format), format }
  return { id, fields: { id, type, status: status ?? 'completed', ...rest, ...content }, audio }
}

export function roleOf(item: ConversationItem): string {
  return textOf(item.fields['role'])
}

export function isAnswer(item: ConversationItem): boolean {
  return item.fields['type'] === 'function_call' || roleOf(item) === 'assistant'
}

/** All words of an item: texts, transcripts, arguments and outputs. */
export function wordsOf(item: ConversationItem): string {
  const parts = listOf(item.fields['content']).filter(isObject)
  const said = parts.map((part) => textOf(part['text'] ?? part['transcript']))
  const called = [item.fields['arguments'], item.fields['output']].map(textOf)
  return [...said, ...called].filter((words) => words !== '').join(' ')
}

/** The item with something else in its first content part. */
export function withFirstPart(item: ConversationItem, change: JsonObject): JsonObject {
  const [first, ...others] = listOf(item.fields['content'])
  return { ...item.fields, content: [{ ...(isObject(first) ? first : {}), ...change }, ...others] }
}
