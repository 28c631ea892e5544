import { estimateTokens } from '../server/magic-text.js'
import type { ConversationItem } from './conversation-item.js'
import { type ItemStatus, type OutputPlace, OutputWriter } from './output-writer.js'
import type { TokenCount } from './response-usage.js'
import type { EventSender } from './server-events.js'

const PIECE_CHARACTERS = 8
/** The name and the brackets around it. */
const TOKENS_PER_CALL = 6

/** A function call, its arguments piece by piece. */
export class CallWriter extends OutputWriter {
  readonly item: ConversationItem
  readonly endedByLimit = false
  #sent = ''

  constructor(
    sender: EventSender,
    place: OutputPlace,
    private readonly call: { readonly name: string; readonly input: string },
  ) {
    super(sender, place)
    const id = sender.newId('item')
    this.item = { id, fields: {}, audio: undefined }
    this.#fill('in_progress')
  }

  get tokens(): TokenCount {
    return { text: TOKENS_PER_CALL + estimateTokens(this.#sent), audio: 0 }
  }

  async begin(): Promise<void> {
    await this.announce()
  }

  async next(): Promise<boolean> {
    const delta = this.call.input.slice(this.#sent.length, this.#sent.length + PIECE_CHARACTERS)
    if (delta === '') return false
    this.#sent += delta
    await this.sender.send('response.function_call_arguments.delta', { ...this.#keys, delta })
    return true
  }

  async end(status: ItemStatus): Promise<void> {
    this.#fill(status)
    const name = this.sender.dialect === 'ga' ? { name: this.call.name } : {}
    const done = { ...this.#keys, ...name, arguments: this.#sent }
    await this.sender.send('response.function_call_arguments.done', done)
    await this.conclude()
  }

  get #keys(): Record<string, unknown> {
    return { ...this.coordinates, call_id: this.item.fields['call_id'] }
  }

  #fill(status: ItemStatus | 'in_progress'): void {
    const callId = this.item.fields['call_id'] ?? this.sender.newId('call')
    const { name } = this.call
    const id = this.item.id
    this.item.fields = { id, type: 'function_call', status, name, call_id: callId, arguments: this.#sent }
  }
}
