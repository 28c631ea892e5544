import { randomBytes } from 'node:crypto'
import { fieldOf, isObject, type JsonObject } from '../server/json-value.js'
import type { SocketSession } from '../server/websocket-session.js'
import { eventTypeIn, itemIn, type RealtimeDialect } from './realtime-dialect.js'
import type { RealtimeRecord } from './realtime-record.js'
import type { RealtimeRejection } from './realtime-rejection.js'

const HEARD = 'conversation.item.input_audio_transcription.completed'

/** GA deltas are padded, so that their lengths tell nothing about the words. */
const PADDING = 'Jq8ZtW3mYc5VxKpR'

/** Sends events, named and shaped as the dialect wants them. All take GA names and items of GA form. */
export class EventSender {
  readonly #prefix = randomBytes(8).toString('hex')
  #counter = 0

  constructor(
    readonly session: SocketSession,
    readonly dialect: RealtimeDialect,
    readonly record: RealtimeRecord,
  ) {}

  /** An id no other session has. */
  newId(kind: string): string {
    this.#counter += 1
    return `${kind}_${this.#prefix}${this.#counter.toString(36)}`
  }

  /** Resolves when the network has taken the event, with false when the client is gone. */
  async send(type: string, fields: JsonObject = {}): Promise<boolean> {
    const name = eventTypeIn(this.dialect, type)
    if (name === undefined) return this.session.end === undefined
    const item = isObject(fields['item']) ? { item: itemIn(this.dialect, fields['item']) } : {}
    return this.sendAs(name, { ...fields, ...item, ...this.#padding(type) })
  }

  /** Sends an event just as it is. */
  async sendAs(type: string, fields: JsonObject): Promise<boolean> {
    this.record.noteSent(type)
    if (type === 'response.done') this.record.noteServed(fieldOf(fields['response'], 'usage'))
    if (type === HEARD) this.record.noteServed(fields['usage'])
    const eventId = this.newId('event')
    // The two generations put their first two keys in a different order.
    const head = this.dialect === 'ga' ? { type, event_id: eventId } : { event_id: eventId, type }
    return this.session.send(JSON.stringify({ ...head, ...fields }))
  }

  async refuse(rejection: RealtimeRejection, eventId: string | null): Promise<boolean> {
    return this.send('error', { error: rejection.body(eventId) })
  }

  /** The items of a response object, in the dialect's form. */
  items(items: readonly JsonObject[]): readonly JsonObject[] {
    return items.map((item) => itemIn(this.dialect, item))
  }

  #padding(type: string): JsonObject {
    if (this.dialect === 'beta' || !type.startsWith('response.') || !type.endsWith('.delta')) return {}
    return { obfuscation: PADDING.slice(this.#counter % PADDING.length) }
  }
}
