import { type JsonObject, textOf } from '../server/json-value.js'
import { checkItem } from './client-events.js'
import { itemOf } from './conversation-item.js'
import type { Conversation } from './conversation.js'
import { RealtimeRejection } from './realtime-rejection.js'
import type { EventSender } from './server-events.js'
import type { SessionState } from './session-state.js'

/** The items of one session as its client handles them. All methods throw RealtimeRejection. */
export class ItemDesk {
  constructor(
    private readonly sender: EventSender,
    private readonly state: SessionState,
    private readonly conversation: Conversation,
  ) {}

  async create({ item, previous_item_id: previous }: JsonObject): Promise<void> {
    const checked = checkItem(this.sender.dialect, item, 'item')
    const id = checked['id'] === undefined ? this.sender.newId('item') : textOf(checked['id'])
    this.#refuseStrangers(id, checked)
    const created = itemOf(id, checked, this.state.facts.inputFormat)
    const wanted = previous === undefined || previous === null ? undefined : textOf(previous)
    const previousId = this.conversation.insert(created, wanted === 'root' ? null : wanted)
    await this.sender.send('conversation.item.added', { previous_item_id: previousId, item: created.fields })
    await this.sender.send('conversation.item.done', { previous_item_id: previousId, item: created.fields })
  }

  async retrieve(event: JsonObject): Promise<void> {
    const item = this.conversation.get(textOf(event['item_id']), 'retrieve')
    await this.sender.send('conversation.item.retrieved', { item: item.fields })
  }

  async truncate(event: JsonObject): Promise<void> {
    const { item_id: itemId, content_index: contentIndex, audio_end_ms: audioEndMs } = event
    this.conversation.truncate(textOf(itemId), Number(contentIndex), Number(audioEndMs))
    const place = { item_id: itemId, content_index: contentIndex, audio_end_ms: audioEndMs }
    await this.sender.send('conversation.item.truncated', place)
  }

  async delete(event: JsonObject): Promise<void> {
    this.conversation.delete(textOf(event['item_id']))
    await this.sender.send('conversation.item.deleted', { item_id: event['item_id'] })
  }

  #refuseStrangers(id: string, checked: JsonObject): void {
    if (this.conversation.find(id) !== undefined) {
      const message = `Error adding item: an item with id '${id}' already exists.`
      throw new RealtimeRejection('item_create_duplicate_item_id', message, 'item.id')
    }
    if (checked['type'] !== 'function_call_output') return
    const callId = textOf(checked['call_id'])
    if (
      this.conversation.items.some(({ fields }) => fields['type'] === 'function_call' && fields['call_id'] === callId)
    )
      return
    const message = `Tool call ID '${callId}' not found in conversation.`
    throw new RealtimeRejection('invalid_tool_call_id', message, 'item.call_id')
  }
}
