import type { FrameScan } from '../core/json-spans.js'
import type { EstimatedUse } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { countedUnits } from '../core/usage-record.js'
import { isRecord } from '../core/validation-rules.js'
import { decodedLength, TextSpan } from '../core/base64.js'
import { requestsOutOfBand } from '../dialects/realtime/session-state.js'
import {
  ResponseInput,
  bytesPerSecond,
  NextResponseEstimator,
  PCM_BYTES_PER_SECOND,
  OUTPUT_TOKENS_PER_SECOND,
  type TextAndAudio,
} from './response-estimate.js'

type Meaning =
  | 'audio'
  | 'text'
  | 'begun'
  | 'session'
  | 'item'
  | 'speech_started'
  | 'speech_stopped'
  | 'committed'
  | 'cleared'

/** The events, of either dialect, that change what a response uses. */
const MEANINGS: ReadonlyMap<string, Meaning> = new Map<string, Meaning>([
  ['response.audio.delta', 'audio'],
  ['response.output_audio.delta', 'audio'],
  ['response.text.delta', 'text'],
  ['response.output_text.delta', 'text'],
  ['response.audio_transcript.delta', 'text'],
  ['response.output_audio_transcript.delta', 'text'],
  ['response.function_call_arguments.delta', 'text'],
  ['response.mcp_call_arguments.delta', 'text'],
  ['response.created', 'begun'],
  ['session.created', 'session'],
  ['session.updated', 'session'],
  ['transcription_session.created', 'session'],
  ['transcription_session.updated', 'session'],
  ['conversation.item.created', 'item'],
  ['conversation.item.added', 'item'],
  ['input_audio_buffer.speech_started', 'speech_started'],
  ['input_audio_buffer.speech_stopped', 'speech_stopped'],
  ['input_audio_buffer.committed', 'committed'],
  ['input_audio_buffer.cleared', 'cleared'],
])

type Fields = Readonly<Record<string, unknown>>

const NONE: TextAndAudio = { text: 0, audio: 0 }

/**
 * Estimates the use of responses under way, for those whose `response.done` never comes. Audio deltas are frequent:
 * only the length of one member is added up, and nothing is parsed. Never throws.
 */
export class ResponseUsageEstimator {
  private readonly input = new ResponseInput()
  private readonly next = new NextResponseEstimator()
  /** Responses under way; those out of band may run beside another one. */
  private responses = 0
  /** Requested out of band, and not begun yet. */
  private outOfBandRequested = 0
  private read = NONE
  private pieces = 0
  private audioTokens = 0
  private spokenBytesPerSecond = PCM_BYTES_PER_SECOND

  /** Whether a response has begun and not ended. */
  get isResponding(): boolean {
    return this.responses > 0
  }

  /** Of the client's audio that waits to be committed. */
  get uncommittedSeconds(): number {
    return this.input.uncommittedSeconds
  }

  /** Counts a message of that many bytes with audio, sent upstream; returns its seconds. */
  append(messageBytes: number): number {
    return this.input.append(messageBytes)
  }

  /** Counts any other client event sent upstream. */
  send(type: string, frame: Buffer): void {
    if (type === 'input_audio_buffer.commit') this.input.requestCommit()
    if (type === 'response.create' && requestsOutOfBand(frame)) this.outOfBandRequested++
    else this.next.send(frame)
  }

  /** Estimates the next response: the one that `create` requests, or one that the upstream begins by itself. */
  estimateNext(create?: Buffer): EstimatedUse {
    return this.next.estimate(this.input.nextInputSeconds, create)
  }

  /** Counts an upstream event that bills nothing; returns the seconds of audio that it took from what waited to be committed. */
  onEvent(type: string, frame: Buffer, scan: FrameScan): number {
    const meaning = MEANINGS.get(type)
    if (meaning === undefined) return 0
    if (meaning === 'committed') return this.input.commit()
    if (meaning === 'cleared') return this.input.clear()
    if (meaning === 'audio') this.addAudio(frame, scan)
    else if (meaning === 'text') this.addTextDelta()
    else this.learn(meaning, fieldsOf(frame))
    return 0
  }

  /** A response has ended, with figures or, when it failed, without. `isOutOfBand`: it was not part of the conversation. */
  end(reported: Units | undefined, isOutOfBand = false): void {
    if (reported !== undefined) this.next.end(reported, isOutOfBand)
    this.responses = Math.max(0, this.responses - 1)
    const isLast = this.responses === 0
    const {
      promptTokens = 0,
      audioInputTokens = 0,
      completionTokens = 0,
      audioOutputTokens = 0,
    } = reported === undefined ? {} : countedUnits(reported)
    // Deltas are not kept by response: what this one has reported is subtracted from the sums.
    this.pieces = isLast ? 0 : less(this.pieces, completionTokens - audioOutputTokens)
    this.audioTokens = isLast ? 0 : less(this.audioTokens, audioOutputTokens)
    this.read = isLast
      ? NONE
      : { text: less(this.read.text, promptTokens - audioInputTokens), audio: less(this.read.audio, audioInputTokens) }
  }

  /** The estimate in the upstream's names; undefined when no response is under way. */
  estimate(): Units | undefined {
    if (this.responses === 0) return undefined
    const input = { text_tokens: Math.ceil(this.read.text), audio_tokens: Math.round(this.read.audio) }
    const output = { text_tokens: this.pieces, audio_tokens: Math.ceil(this.audioTokens) }
    const inputTokens = input.text_tokens + input.audio_tokens
    const outputTokens = output.text_tokens + output.audio_tokens
    return {
      total_tokens: inputTokens + outputTokens,
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      input_token_details: input,
      output_token_details: output,
    }
  }

  /** The estimate when exactly one response is under way: of several the deltas cannot be distinguished. */
  estimateOfOne(): Units | undefined {
    return this.responses === 1 ? this.estimate() : undefined
  }

  private addAudio(frame: Buffer, scan: FrameScan): void {
    if (this.responses === 0) this.begin()
    const delta = scan.member('delta')
    if (delta === undefined) return
    const bytes = Math.max(0, decodedLength(new TextSpan(frame, delta.valueStart + 1, delta.valueEnd - 1)))
    this.audioTokens += (bytes / this.spokenBytesPerSecond) * OUTPUT_TOKENS_PER_SECOND
  }

  /** Upstreams send one token per delta. */
  private addTextDelta(): void {
    if (this.responses === 0) this.begin()
    this.pieces++
  }

  private begin(): void {
    const { text, audio } = this.input.take()
    this.next.begin()
    this.responses++
    this.read = { text: this.read.text + text, audio: this.read.audio + audio }
  }

  private learn(meaning: Meaning, event: Fields): void {
    const { input } = this
    if (meaning === 'speech_started') input.speechStarted(event)
    else if (meaning === 'speech_stopped') input.speechStopped(event)
    else if (meaning === 'item') input.add(within(event, 'item'))
    else if (meaning === 'session') this.configure(within(event, 'session'))
    else this.beginAs(within(event, 'response'))
  }

  /** A response out of band does not use up the input of the conversation's next response. */
  private beginAs(response: Fields): void {
    this.format(response)
    if (this.outOfBandRequested === 0 || response['conversation_id'] !== null) {
      this.begin()
      return
    }
    this.outOfBandRequested--
    this.responses++
  }

  private configure(session: Fields): void {
    this.format(session)
    this.input.configure(session)
    this.next.configure(session)
  }

  private format(settings: Fields): void {
    this.spokenBytesPerSecond = bytesPerSecond(settings, 'output') ?? this.spokenBytesPerSecond
  }
}

const less = (counted: number, reported: number): number => Math.max(0, counted - Math.max(0, reported))

const NO_FIELDS: Fields = {}

function within(event: Fields, name: string): Fields {
  const value = event[name]
  return isRecord(value) ? value : NO_FIELDS
}

/** Empty for text that is not JSON after all. */
function fieldsOf(frame: Buffer): Fields {
  try {
    const event: unknown = JSON.parse(frame.toString())
    return isRecord(event) ? event : NO_FIELDS
  } catch {
    return NO_FIELDS
  }
}
