import { type JsonObject, textOf } from '../server/json-value.js'
import type { SocketMessage, SocketSession } from '../server/websocket-session.js'
import { checkEvent, checkItem, type ClientEvent, eventIdOf, parseEvent } from './client-events.js'
import { Conversation, itemOf } from './conversation.js'
import { endAsWished, expire, readWish, sendOddFrames } from './fault-injection.js'
import { AudioDesk } from './input-audio-handler.js'
import type { RealtimeContext, SessionKind } from './realtime-dialect.js'
import { ResponseDesk } from './response-handler.js'
import { EventSender, type RealtimeRecord } from './server-events.js'
import { otherKind, SessionState } from './session-config.js'
import { RealtimeRejection } from './validation.js'

/** The items of one session as its client handles them. All methods throw RealtimeRejection. */
class ItemDesk {
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

const NO_RESPONSES = 'Responses cannot be created in a transcription session.'

/** One conversation, or transcription, over one socket, from `session.created` to its close. */
export class RealtimeSession {
  readonly #sender: EventSender
  readonly #state: SessionState
  readonly #conversation: Conversation
  readonly #responses: ResponseDesk
  readonly #audio: AudioDesk
  readonly #items: ItemDesk
  readonly #failed: Promise<never>
  #fail!: (reason: unknown) => void

  constructor(
    private readonly session: SocketSession,
    private readonly context: RealtimeContext,
    private readonly record: RealtimeRecord,
    private readonly kind: SessionKind,
  ) {
    const { dialect, sessionMaximumMs } = context
    this.#failed = new Promise((_resolve, reject) => (this.#fail = reject))
    const sender = new EventSender(session, dialect, record)
    const expiresAt = Math.floor((Date.now() + sessionMaximumMs) / 1000)
    this.#sender = sender
    this.#state = new SessionState(dialect, { id: sender.newId('sess'), kind, model: record.model, expiresAt })
    this.#conversation = new Conversation(sender.newId('conv'))
    const background = this.#inBackground.bind(this)
    this.#responses = new ResponseDesk(sender, this.#state, this.#conversation, context, background)
    this.#audio = new AudioDesk(sender, this.#state, this.#conversation, this.#responses, background)
    this.#items = new ItemDesk(sender, this.#state, this.#conversation)
  }

  /** Resolves when the client is gone. Rejects when the simulator itself has failed. */
  async run(): Promise<void> {
    const wish = readWish(this.session.faultWords)
    if (wish.words.has('hang')) {
      await this.session.closed
      return
    }
    await this.#sendSession('created')
    if (this.context.dialect === 'beta' && this.kind === 'conversation') {
      const conversation = { id: this.#conversation.id, object: 'realtime.conversation' }
      await this.#sender.send('conversation.created', { conversation })
    }
    this.session.clientMayLeave = true
    await sendOddFrames(this.#sender, wish)
    if (await endAsWished(this.#sender, wish)) return
    this.#inBackground(this.#expireLater())
    await Promise.race([this.#listen(), this.#failed])
  }

  async #listen(): Promise<void> {
    for (;;) {
      const message = await this.session.nextMessage()
      if (message === undefined) return
      await this.#receive(message)
    }
  }

  async #receive(message: SocketMessage): Promise<void> {
    let event: JsonObject | undefined
    try {
      event = parseEvent(message)
      this.record.noteReceived(event, message.data.length)
      await this.#handle(checkEvent(event, this.context.dialect))
    } catch (error) {
      if (!(error instanceof RealtimeRejection)) throw error
      if (event === undefined) this.session.violations.push(error.message)
      await this.#sender.refuse(error, eventIdOf(event))
    }
  }

  async #handle({ type, fields }: ClientEvent): Promise<void> {
    switch (type) {
      case 'session.update':
        if (this.context.dialect === 'beta' && this.kind === 'transcription') throw otherKind(this.kind, 'type')
        return this.#update(fields['session'])
      case 'input_audio_buffer.append':
        return this.#audio.append(fields['audio'])
      case 'input_audio_buffer.commit':
        return this.#audio.commit()
      case 'input_audio_buffer.clear':
        return this.#audio.clear()
      case 'conversation.item.create':
        return this.#items.create(fields)
      case 'conversation.item.retrieve':
        return this.#items.retrieve(fields)
      case 'conversation.item.truncate':
        return this.#items.truncate(fields)
      case 'conversation.item.delete':
        return this.#items.delete(fields)
      case 'response.create':
        if (this.kind === 'conversation') return this.#responses.create(fields['response'] ?? {})
        throw new RealtimeRejection('invalid_session_type', NO_RESPONSES, 'type')
      case 'response.cancel':
        this.#responses.cancel(fields['response_id'] === undefined ? undefined : textOf(fields['response_id']))
        return
      case 'output_audio_buffer.clear':
        throw new RealtimeRejection('invalid_event', `'${type}' is for WebRTC and SIP connections only.`, 'type')
      case 'transcription_session.update':
        if (this.kind === 'conversation') throw otherKind(this.kind, 'type')
        return this.#update(fields['session'])
    }
  }

  async #update(change: unknown): Promise<void> {
    this.#state.update(change, this.#conversation.hasSpoken)
    await this.#sendSession('updated')
  }

  async #sendSession(what: 'created' | 'updated'): Promise<void> {
    const isOwnEvent = this.context.dialect === 'beta' && this.kind === 'transcription'
    const name = isOwnEvent ? `transcription_session.${what}` : `session.${what}`
    await this.#sender.send(name, { session: this.#state.object })
  }

  async #expireLater(): Promise<void> {
    if (await this.session.waitOpen(this.context.sessionMaximumMs)) await expire(this.#sender)
  }

  /** An error of work that is not awaited ends the session, too. */
  #inBackground(work: Promise<void>): void {
    work.catch(this.#fail)
  }
}
