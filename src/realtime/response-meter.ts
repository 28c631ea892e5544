import type { FrameScan } from '../core/json-spans.js'
import type { EstimatedUse } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { countedUnits } from '../core/usage-record.js'
import { isRecord } from '../core/validation-rules.js'
import { decodedLength } from '../dialects/realtime/client-events.js'
import { asksOutOfBand } from '../dialects/realtime/response.js'
import {
  ResponseInput,
  bytesPerSecond,
  ExpectedResponse,
  PCM_BYTES_PER_SECOND,
  SPOKEN_TOKENS_PER_SECOND,
  type TextAndAudio,
} from './response-estimate.js'

type Meaning =
  'audio' | 'text' | 'begun' | 'session' | 'item' | 'speech_started' | 'speech_stopped' | 'committed' | 'cleared'

/** Of either dialect. All others say nothing of what an answer takes. */
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
 * Counts what the answers under way have taken, for those whose `response.done` never comes. Sound comes many times a
 * second: of a delta the length of one member is added up, and nothing is parsed. Never throws.
 */
export class ResponseUsageEstimator {
  private readonly input = new ResponseInput()
  private readonly next = new ExpectedResponse()
  /** Those out of band may run beside another one. */
  private responses = 0
  /** Asked for, and not begun yet. */
  private outOfBandRequested = 0
  private read = NONE
  private pieces = 0
  private audioTokens = 0
  private spokenBytesPerSecond = PCM_BYTES_PER_SECOND

  /** Whether one has begun whose end has not come. */
  get isResponding(): boolean {
    return this.responses > 0
  }

  /** A message of that many bytes with audio has gone upstream. */
  append(messageBytes: number): void {
    this.input.append(messageBytes)
  }

  /** Another event of the client has gone upstream. */
  send(type: string, frame: Buffer): void {
    if (type === 'input_audio_buffer.commit') this.input.askCommit()
    if (type === 'response.create' && asksOutOfBand(frame)) this.outOfBandRequested++
    else this.next.send(frame)
  }

  /** What the next answer will use, the one that `create` asks for where a client does. */
  expected(create?: Buffer): EstimatedUse {
    return this.next.expected(this.input.heardNextSeconds, create)
  }

  /** An event of the upstream that bills nothing. */
  see(type: string, frame: Buffer, scan: FrameScan): void {
    const meaning = MEANINGS.get(type)
    if (meaning === undefined) return
    if (meaning === 'audio') this.speak(frame, scan)
    else if (meaning === 'text') this.write()
    else this.learn(meaning, fieldsOf(frame))
  }

  /** One answer has ended, with figures or, as it has failed, without. `isOutOfBand`: it was none of the conversation's. */
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
    // Which of them a piece was of is not kept.
    this.pieces = isLast ? 0 : less(this.pieces, completionTokens - audioOutputTokens)
    this.audioTokens = isLast ? 0 : less(this.audioTokens, audioOutputTokens)
    this.read = isLast
      ? NONE
      : { text: less(this.read.text, promptTokens - audioInputTokens), audio: less(this.read.audio, audioInputTokens) }
  }

  /** In the upstream's names; undefined when no answer is under way. */
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

  /** The same where one answer is under way: of several beside each other nobody knows which piece was whose. */
  estimateOfOne(): Units | undefined {
    return this.responses === 1 ? this.estimate() : undefined
  }

  private speak(frame: Buffer, scan: FrameScan): void {
    if (this.responses === 0) this.begin()
    const delta = scan.member('delta')
    if (delta === undefined) return
    const bytes = Math.max(0, decodedLength(frame, delta.valueStart + 1, delta.valueEnd - 1))
    this.audioTokens += (bytes / this.spokenBytesPerSecond) * SPOKEN_TOKENS_PER_SECOND
  }

  /** Upstreams send a token at a time. */
  private write(): void {
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
    if (meaning === 'committed') input.commit()
    else if (meaning === 'cleared') input.clear()
    else if (meaning === 'speech_started') input.speechStarted(event)
    else if (meaning === 'speech_stopped') input.speechStopped(event)
    else if (meaning === 'item') input.add(within(event, 'item'))
    else if (meaning === 'session') this.configure(within(event, 'session'))
    else this.beginAs(within(event, 'response'))
  }

  /** One that a client wants out of band leaves what was sent and heard to the next one of the conversation. */
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

/** Of what is no JSON after all, nothing. */
function fieldsOf(frame: Buffer): Fields {
  try {
    const event: unknown = JSON.parse(frame.toString())
    return isRecord(event) ? event : NO_FIELDS
  } catch {
    return NO_FIELDS
  }
}
