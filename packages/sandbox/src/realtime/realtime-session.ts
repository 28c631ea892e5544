import { type JsonObject, textOf } from '../server/json-value.js'
import type { SocketMessage, SocketSession } from '../server/websocket-session.js'
import { checkEvent, type ClientEvent, eventIdOf, parseEvent } from './client-event.js'
import { Conversation } from './conversation.js'
import { readWish } from './fault-injection.js'
import { AudioDesk } from './input-audio-handler.js'
import { ItemDesk } from './item-desk.js'
import type { RealtimeContext } from './realtime-context.js'
import type { RealtimeRecord } from './realtime-record.js'
import { RealtimeRejection } from './realtime-rejection.js'
import { ResponseDesk } from './response-handler.js'
import { EventSender } from './server-events.js'
import { endAsWished, expire, sendOddFrames } from './session-end.js'
import { SessionState } from './session-state.js'

/** One conversation over one socket, from `session.created` to its close. */
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
  ) {
    const { dialect, sessionMaximumMs } = context
    this.#failed = new Promise((_resolve, reject) => (this.#fail = reject))
    const sender = new EventSender(session, dialect, record)
    const expiresAt = Math.floor((Date.now() + sessionMaximumMs) / 1000)
    this.#sender = sender
    this.#state = new SessionState(dialect, { id: sender.newId('sess'), model: record.model, expiresAt })
    this.#conversation = new Conversation(sender.newId('conv'))
    const background = this.#inBackground.bind(this)
    this.#responses = new ResponseDesk(sender, this.#state, this.#conversation, context, background)
    this.#audio = new AudioDesk(sender, this.#state, this.#conversation, this.#responses, background)
    this.#items = new ItemDesk(sender, this.#state, this.#conversation)
  }

  /** Resolves when the client is gone. Rejects when the simulator itself has failed. */
  async hold(): Promise<void> {
    const wish = readWish(this.session.faultWords)
    if (wish.words.has('hang')) {
      await this.session.closed
      return
    }
    await this.#sender.send('session.created', { session: this.#state.object })
    if (this.context.dialect === 'beta') {
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
        this.#state.update(fields['session'], this.#conversation.hasSpoken)
        await this.#sender.send('session.updated', { session: this.#state.object })
        return
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
        return this.#responses.create(fields['response'] ?? {})
      case 'response.cancel':
        this.#responses.cancel(fields['response_id'] === undefined ? undefined : textOf(fields['response_id']))
        return
      case 'output_audio_buffer.clear':
        throw new RealtimeRejection('invalid_event', `'${type}' is for WebRTC and SIP connections only.`, 'type')
      case 'transcription_session.update': {
        const message = 'Passing a transcription session update event to a realtime session is not allowed.'
        throw new RealtimeRejection('invalid_session_type', message, 'type')
      }
    }
  }

  async #expireLater(): Promise<void> {
    if (await this.session.waitOpen(this.context.sessionMaximumMs)) await expire(this.#sender)
  }

  /** A fault of work that nobody waits for still ends the session. */
  #inBackground(work: Promise<void>): void {
    work.catch(this.#fail)
  }
}
