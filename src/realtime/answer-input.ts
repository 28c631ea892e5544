import { isRecord } from '../core/validation-rules.js'
import { BASE64_BYTES_PER_CHARACTER } from '../dialects/realtime/strict-base64.js'
import { BYTES_PER_TOKEN } from '../limits/estimate-usage.js'
import { bytesPerSecond, HEARD_TOKENS_PER_SECOND, PCM_BYTES_PER_SECOND } from './audio-rates.js'

/** Of an append without audio and without an id. */
const EMPTY_APPEND_BYTES = '{"type":"input_audio_buffer.append","audio":""}'.length

type Fields = Readonly<Record<string, unknown>>

/** Tokens; audio may have fractions. */
export interface TextAndAudio {
  readonly text: number
  readonly audio: number
}

/**
 * What the next answer will read that none before it has read: texts, and audio from the moment the upstream takes it
 * for a part of the conversation. What earlier turns have left there is not counted again.
 */
export class AnswerInput {
  /** Of instructions and tools: every answer reads them. */
  private fixedBytes = 0
  private textBytes = 0
  private heardSeconds = 0
  private inputBytesPerSecond = PCM_BYTES_PER_SECOND
  /** Not committed yet. */
  private appendedBytes = 0
  private speechStartMs: number | undefined
  private speechSeconds: number | undefined
  private isCommitAsked = false

  /** Seconds of audio that the next answer hears, also where the upstream has still to say that it has them. */
  get heardNextSeconds(): number {
    return this.heardSeconds + (this.isCommitAsked ? this.appendedBytes / this.inputBytesPerSecond : 0)
  }

  /** A message of that many bytes with audio has gone upstream. */
  append(messageBytes: number): void {
    this.appendedBytes += Math.max(0, messageBytes - EMPTY_APPEND_BYTES) * BASE64_BYTES_PER_CHARACTER
  }

  configure(session: Fields): void {
    this.inputBytesPerSecond = bytesPerSecond(session, 'input') ?? this.inputBytesPerSecond
    const { instructions, tools } = session
    const toolBytes = Array.isArray(tools) && tools.length > 0 ? byteLength(JSON.stringify(tools)) : 0
    this.fixedBytes = byteLength(instructions) + toolBytes
  }

  /** An item is in the conversation; those of the model itself are not counted. */
  add(item: Fields): void {
    if (item['type'] === 'function_call_output') this.textBytes += byteLength(item['output'])
    const { role, content } = item
    if (role === 'assistant' || !Array.isArray(content)) return
    for (const part of content as readonly unknown[]) if (isRecord(part)) this.textBytes += byteLength(part['text'])
  }

  speechStarted({ audio_start_ms: startMs }: Fields): void {
    this.speechStartMs = typeof startMs === 'number' ? startMs : undefined
  }

  speechStopped({ audio_end_ms: endMs }: Fields): void {
    if (this.speechStartMs === undefined || typeof endMs !== 'number') return
    this.speechSeconds = Math.max(0, endMs - this.speechStartMs) / 1000
  }

  /** The client has told the upstream that its turn is over. */
  askCommit(): void {
    this.isCommitAsked = true
  }

  /** Where the upstream finds speech by itself, the silence around it is no part of the conversation. */
  commit(): void {
    this.heardSeconds += this.speechSeconds ?? this.appendedBytes / this.inputBytesPerSecond
    this.clear()
  }

  clear(): void {
    this.appendedBytes = 0
    this.isCommitAsked = false
    this.speechStartMs = this.speechSeconds = undefined
  }

  /** An answer begins, and has all of it. */
  take(): TextAndAudio {
    const { fixedBytes, textBytes, heardSeconds } = this
    this.textBytes = this.heardSeconds = 0
    return { text: (fixedBytes + textBytes) / BYTES_PER_TOKEN, audio: heardSeconds * HEARD_TOKENS_PER_SECOND }
  }
}

const byteLength = (text: unknown): number => (typeof text === 'string' ? Buffer.byteLength(text) : 0)
