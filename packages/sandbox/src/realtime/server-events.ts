import { randomBytes } from 'node:crypto'
import { fieldOf, isObject, type JsonObject, textOf } from '../server/json-value.js'
import { type ServedLedger, transcriptUnits } from '../server/served-usage.js'
import type { SocketSession } from '../server/websocket-session.js'
import { AudioTally } from './audio-format.js'
import type { CommittedAudio } from './input-audio-buffer.js'
import { eventTypeIn, itemIn, type RealtimeDialect } from './realtime-dialect.js'
import type { RealtimeRejection } from './validation.js'

const REMEMBERED_EVENTS = 1000
const REMEMBERED_EVENT_BYTES = 256 * 1024
const KNOWN_PARAMETERS = ['model', 'call_id', 'intent']

/** What one session received and sent, for tests; bounded. */
export class RealtimeRecord {
  /** Client events in order, the first thousand at most; `audio` is replaced by `audioBytes`. */
  readonly receivedEvents: JsonObject[] = []
  receivedEventCount = 0
  /** Types of the server's events in order, the first thousand at most. */
  readonly sentEventTypes: string[] = []
  sentEventCount = 0
  /** Decoded audio of all `input_audio_buffer.append`, and of all audio deltas sent. */
  readonly receivedAudio = new AudioTally()
  readonly sentAudio = new AudioTally()
  /** The last thousand. */
  readonly committed: CommittedAudio[] = []
  readonly unknownParameters: readonly (readonly [string, string])[]
  #receivedEventBytes = 0

  constructor(
    readonly dialect: RealtimeDialect,
    readonly model: string,
    query: URLSearchParams,
    private readonly served: ServedLedger,
  ) {
    this.unknownParameters = [...query].filter(([name]) => !KNOWN_PARAMETERS.includes(name))
  }

  noteReceived(event: JsonObject, bytes: number): void {
    this.receivedEventCount += 1
    const { audio, ...rest } = event
    const kept = audio === undefined ? event : { ...rest, audioBytes: Buffer.byteLength(textOf(audio), 'base64') }
    if (audio === undefined) this.#receivedEventBytes += bytes
    if (this.receivedEvents.length >= REMEMBERED_EVENTS || this.#receivedEventBytes > REMEMBERED_EVENT_BYTES) return
    this.receivedEvents.push(kept)
  }

  /**
   * What the client is charged for: as an event says, or would have said of a response that was cut off.
   * A failed one is charged for with nothing, a transcription by its own model.
   */
  noteServed(usage: unknown, model = this.model): void {
    this.served.add(model, transcriptUnits(usage))
  }

  noteSent(type: string): void {
    this.sentEventCount += 1
    if (this.sentEventTypes.length < REMEMBERED_EVENTS) this.sentEventTypes.push(type)
  }

  noteCommitted(audio: CommittedAudio): void {
    this.committed.push(audio)
    if (this.committed.length > REMEMBERED_EVENTS) this.committed.shift()
  }
}

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
