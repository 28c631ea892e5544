import { type JsonObject, textOf } from '../server/json-value.js'
import type { ServedLedger } from '../server/served-ledger.js'
import { transcriptUnits } from '../server/token-units.js'
import { AudioTally } from './audio-tally.js'
import type { CommittedAudio } from './input-audio-buffer.js'
import type { RealtimeDialect } from './realtime-dialect.js'

const REMEMBERED_EVENTS = 1000
const REMEMBERED_EVENT_BYTES = 256 * 1024
const KNOWN_PARAMETERS = ['model', 'call_id', 'intent']

/** What one session received and sent, for tests; bounded, whatever the session does. */
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
   * A failed one is charged for with nothing.
   */
  noteServed(usage: unknown): void {
    this.served.add(this.model, transcriptUnits(usage))
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
