import type { JsonObject } from '../server/json-value.js'
import type { ConversationItem } from './conversation-item.js'
import type { TokenCount } from './response-usage.js'
import type { EventSender } from './server-events.js'

export type ItemStatus = 'completed' | 'incomplete'

/** Where an output item belongs. */
export interface OutputPlace {
  readonly responseId: string
  readonly outputIndex: number
  /** Puts the item into the conversation and returns the id before it; undefined when the response is out of band. */
  readonly enter: ((item: ConversationItem) => string | null) | undefined
}

/** Sends the events of one output item: `begin`, then `next` until it returns false or the item is broken off, `end`. */
export abstract class OutputWriter {
  abstract readonly item: ConversationItem
  abstract readonly tokens: TokenCount
  /** True when words were left over at the token limit. */
  abstract readonly endedByLimit: boolean
  #previousId: string | null | undefined

  constructor(
    protected readonly sender: EventSender,
    protected readonly place: OutputPlace,
  ) {}

  /** Sends one delta; false when there is none left. */
  abstract next(): Promise<boolean>

  abstract begin(): Promise<void>

  abstract end(status: ItemStatus): Promise<void>

  /** The keys every event about the item has. */
  protected get coordinates(): JsonObject {
    const { responseId, outputIndex } = this.place
    return { response_id: responseId, item_id: this.item.id, output_index: outputIndex }
  }

  protected async announce(): Promise<void> {
    const { responseId, outputIndex, enter } = this.place
    const item = this.item.fields
    await this.sender.send('response.output_item.added', { response_id: responseId, output_index: outputIndex, item })
    this.#previousId = enter?.(this.item)
    if (this.#previousId === undefined) return
    await this.sender.send('conversation.item.added', { previous_item_id: this.#previousId, item })
  }

  protected async conclude(): Promise<void> {
    const { responseId, outputIndex } = this.place
    const item = this.item.fields
    if (this.#previousId !== undefined) {
      await this.sender.send('conversation.item.done', { previous_item_id: this.#previousId, item })
    }
    await this.sender.send('response.output_item.done', { response_id: responseId, output_index: outputIndex, item })
  }
}
