import type { ByteSink, ByteSource } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import { isRecord } from '../../core/validation-rules.js'
import { malformedResponse } from '../../upstream/upstream-response.js'
import { EventDataReader, JsonAudioScanner } from './p3-json-audio.js'

/** `data.status` of the answer, or the event, with which a speech is complete. */
const COMPLETE = 2

/** What P3 says around the audio, in a plain answer and in each event of a stream alike. */
export interface P3Envelope {
  /** `base_resp.status_code`; 0 = success, whatever the HTTP status says, and where there is no `base_resp`. */
  readonly code: number
  readonly message: string
  /** 1 = in progress, 2 = complete. */
  readonly status?: number
  /** `data.audio` as it stands in the text: a link, or nothing where the audio has been taken out. */
  readonly audio: string
  readonly subtitleFile?: string
  readonly billedCharacters?: number
  readonly audioMs?: number
  /** All of the audio, wherever it is. */
  readonly audioBytes?: number
  readonly traceId?: string
}

/** Throws `upstream_failed` for anything but one JSON object, and for one whose status cannot be read. */
export function readEnvelope(text: string): P3Envelope {
  const answer = parsed(text)
  const data = recordAt(answer, 'data')
  const figures = recordAt(answer, 'extra_info')
  return {
    ...statusOf(answer),
    audio: word(data['audio']) ?? '',
    ...present('status', count(data['status'])),
    ...present('subtitleFile', word(data['subtitle_file'])),
    // No speech is free: a zero is a missing figure.
    ...present('billedCharacters', count(figures['usage_characters']) || undefined),
    ...present('audioMs', count(figures['audio_length'])),
    ...present('audioBytes', count(figures['audio_size'])),
    ...present('traceId', word(answer['trace_id'])),
  }
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch {
    // Falls through: whatever is not a JSON object is a broken answer.
  }
  throw malformedResponse('The upstream answered with broken JSON.')
}

/** An answer without a status is judged by its audio; an unknown status is no success. */
function statusOf({ base_resp: status }: Record<string, unknown>): Pick<P3Envelope, 'code' | 'message'> {
  if (status == null) return { code: 0, message: '' }
  const { status_code: code, status_msg: message } = isRecord(status) ? status : {}
  if (!Number.isInteger(code)) throw malformedResponse('The upstream answered without a status that can be read.')
  return { code: code as number, message: word(message) ?? '' }
}

function recordAt(holder: Record<string, unknown>, name: string): Record<string, unknown> {
  const value = holder[name]
  return isRecord(value) ? value : {}
}

const word = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

const present = <Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): { readonly [Key in Name]?: Value } =>
  value === undefined ? {} : ({ [name]: value } as { readonly [Key in Name]?: Value })

/** Audio of one event that may wait for the event's status. */
const MAXIMUM_HELD_BYTES = 4 * 1024 * 1024

const OPEN_BRACE = 0x7b
/** White space and the bytes of a byte-order mark, none of which says what follows. */
const MEANINGLESS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf])
const EMPTY = Buffer.alloc(0)
const LINE_END = Buffer.from('\n')
const END_MARK = '[DONE]'

/** Called for each answer or event once it is whole; throws the `GatewayError` that the answer reports, if it does. */
type EnvelopeListener = (envelope: P3Envelope) => void

/**
 * The audio in P3's answer, as bytes, while it arrives: an event stream, or one JSON object in its place. The first
 * event with audio is passed on piece by piece; what follows waits for the end of its event, because the last one may
 * repeat the whole speech. An answer is complete once an event has said so; a polite end without that is a cut.
 */
export class P3AudioSource implements ByteSource, ByteSink {
  private sink!: ByteSink
  private form: 'unknown' | 'events' | 'object' = 'unknown'
  private over = false
  private isComplete = false
  private envelopes = 0
  /** Audio has been passed on, now or in an earlier event. */
  private spoke = false
  private spokeBefore = false
  private held: Buffer[] = []
  private heldBytes = 0
  private readonly scanner = new JsonAudioScanner((audio) => {
    this.onData(audio)
  })
  private readonly lines = new EventDataReader({
    data: (piece) => {
      this.read(piece)
    },
    lineEnd: () => {
      this.endLine()
    },
    eventEnd: () => {
      this.endEnvelope()
    },
  })

  constructor(
    private readonly body: ByteSource,
    private readonly onEnvelope: EnvelopeListener,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.body.start(this)
  }

  /** After the end a pause would hold the connection for ever: an ended response never resumes it. */
  pause(): void {
    if (!this.over) this.body.pause()
  }

  resume(): void {
    this.body.resume()
  }

  cancel(): void {
    this.body.cancel()
  }

  data(chunk: Buffer): void {
    if (this.over) return
    this.guarded(() => {
      const bytes = this.form === 'unknown' ? this.begin(chunk) : chunk
      if (this.form === 'object') this.read(bytes)
      else this.lines.write(bytes)
    })
  }

  end(): void {
    if (this.over) return
    this.guarded(() => {
      // The last event may lack its line end; a plain answer has none.
      if (this.form === 'object' || this.scanner.isClosed) this.endEnvelope()
      if (!this.isComplete) throw this.envelopes === 0 ? noEvents() : cutShort()
    })
  }

  fail(error: GatewayError): void {
    if (this.over) return
    this.over = true
    this.sink.fail(error)
  }

  /** Whatever the reading throws ends the answer, for both sides. */
  private guarded(read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      if (this.over) return
      this.over = true
      this.body.cancel()
      this.sink.fail(error)
    }
  }

  /** What the first byte that means something decides, whatever the headers say; what stands before it is left out. */
  private begin(chunk: Buffer): Buffer {
    const first = chunk.findIndex((byte) => !MEANINGLESS.has(byte))
    if (first === -1) return EMPTY
    this.form = chunk[first] === OPEN_BRACE ? 'object' : 'events'
    return chunk.subarray(first)
  }

  /** Whatever the upstream does with its connection from here on, the caller has everything and need not wait for it. */
  private finish(): void {
    if (this.over) return
    if (!this.spoke) throw malformedResponse('The upstream answered without audio.')
    this.over = true
    this.sink.end()
    // What the upstream still says is read and dropped, also where the reader was slow until now.
    this.body.resume()
  }

  private read(piece: Buffer): void {
    if (!this.isComplete) this.scanner.write(piece)
  }

  private endLine(): void {
    if (this.scanner.isClosed) this.endEnvelope()
    else this.read(LINE_END)
  }

  private onData(audio: Buffer): void {
    if (!this.spokeBefore) {
      this.spoke = true
      this.pass(audio)
      return
    }
    this.heldBytes += audio.length
    if (this.heldBytes <= MAXIMUM_HELD_BYTES) this.held.push(audio)
    else this.held = []
  }

  private endEnvelope(): void {
    const text = this.scanner.takeText().trim()
    if (this.isComplete || (this.form === 'events' && (text === '' || text === END_MARK))) return
    const envelope = readEnvelope(text)
    this.envelopes++
    this.onEnvelope(envelope)
    if (envelope.audio !== '') throw malformedResponse('The upstream sent audio that cannot be read.')
    // A whole JSON object needs no word to be complete, unless it says that it is not.
    this.isComplete = envelope.status === COMPLETE || (this.form === 'object' && envelope.status === undefined)
    if (this.isComplete) this.finish()
    else this.release()
    this.held = []
    this.heldBytes = 0
    this.spokeBefore = this.spoke
  }

  private release(): void {
    if (this.heldBytes > MAXIMUM_HELD_BYTES) throw malformedResponse('The upstream sent too much audio in one event.')
    for (const audio of this.held) this.pass(audio)
  }

  /** The sink may give the answer up in the middle of it. */
  private pass(audio: Buffer): void {
    if (!this.over) this.sink.data(audio)
  }
}

const noEvents = (): GatewayError => malformedResponse('The upstream answered with something that is not speech.')

const cutShort = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream ended its answer before it was complete.', {
    attempt: { phase: 'sent', channelError: true },
    retryable: false,
  })
