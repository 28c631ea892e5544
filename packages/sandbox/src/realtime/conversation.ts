import { fieldOf, isObject, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { type AudioFormat, AudioTally, bytesPerMs } from './audio-format.js'
import { RealtimeRejection } from './validation.js'

/** A copy of an object without some of its members. */
function without(object: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

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
  /** True once the client has cut the answer off: what is still spoken of it does not belong to the item. */
  isTruncated?: boolean
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

/** Items remembered; a longer conversation loses its oldest ones, as automatic truncation does. */
const REMEMBERED_ITEMS = 1000

/** The items of one session in their order. */
export class Conversation {
  #items: ConversationItem[] = []

  constructor(readonly id: string) {}

  get items(): readonly ConversationItem[] {
    return this.#items
  }

  get lastId(): string | null {
    return this.#items.at(-1)?.id ?? null
  }

  /** True once the model has spoken. */
  get hasSpoken(): boolean {
    return this.#items.some((item) => isAnswer(item) && item.audio !== undefined)
  }

  /** What came after the model's last words: what it has to answer. */
  get turn(): readonly ConversationItem[] {
    return this.#items.slice(this.#items.findLastIndex(isAnswer) + 1)
  }

  find(id: string): ConversationItem | undefined {
    return this.#items.find((item) => item.id === id)
  }

  /** `action` is the word in code and message of the error, e.g. `delete`. */
  get(id: string, action: 'retrieve' | 'truncate' | 'delete'): ConversationItem {
    const item = this.find(id)
    if (item !== undefined) return item
    const doing = { retrieve: 'retrieving', truncate: 'truncating', delete: 'deleting' }[action]
    const message = `Error ${doing} item: the item with id '${id}' does not exist.`
    throw new RealtimeRejection(`item_${action}_invalid_item_id`, message, 'item_id')
  }

  /** Inserts behind `previousId` (null: at the front) or at the end, and returns the id before it. */
  insert(item: ConversationItem, previousId: string | null | undefined = this.lastId): string | null {
    const at = previousId === null ? 0 : this.#items.findIndex(({ id }) => id === previousId) + 1
    if (previousId !== null && at === 0) {
      const message = `Error adding item: the previous item with id '${previousId}' does not exist.`
      throw new RealtimeRejection('item_create_invalid_previous_item_id', message, 'previous_item_id')
    }
    this.#items.splice(at, 0, item)
    if (this.#items.length > REMEMBERED_ITEMS) this.#items.shift()
    return previousId
  }

  delete(id: string): void {
    const item = this.get(id, 'delete')
    this.#items = this.#items.filter((other) => other !== item)
  }

  /** Cuts what the model said at `audioEndMs`; its transcript is removed, because the position of the cut in it is unknown. */
  truncate(id: string, contentIndex: number, audioEndMs: number): void {
    const item = this.get(id, 'truncate')
    const isSpoken = isAnswer(item) && item.audio !== undefined
    const part: unknown = listOf(item.fields['content'])[contentIndex]
    if (!isSpoken || fieldOf(part, 'type') !== 'output_audio') {
      const message = 'Only model output audio messages can be truncated.'
      throw new RealtimeRejection('invalid_value', message, part === undefined ? 'content_index' : 'item_id')
    }
    const durationMs = Math.floor(item.audio?.durationMs ?? 0)
    if (audioEndMs > durationMs) {
      const message = `Audio content of ${durationMs}ms is already shorter than ${audioEndMs}ms`
      throw new RealtimeRejection('invalid_value', message, 'audio_end_ms')
    }
    if (item.audio !== undefined) item.audio.durationMs = audioEndMs
    item.isTruncated = true
    item.fields = withFirstPart(item, { transcript: null })
  }
}
