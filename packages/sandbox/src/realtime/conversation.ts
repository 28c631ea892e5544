import { fieldOf, listOf } from '../server/json-value.js'
import { type ConversationItem, isAnswer, withFirstPart } from './conversation-item.js'
import { RealtimeRejection } from './realtime-rejection.js'

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

  /** Cuts what the model said at `audioEndMs`; its transcript goes, as nobody knows where in it the cut is. */
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
    item.fields = withFirstPart(item, { transcript: null })
  }
}
