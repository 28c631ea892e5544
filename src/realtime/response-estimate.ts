import { FrameScan } from '../core/json-spans.js'
import type { EstimatedUse } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { countedUnits } from '../core/usage-record.js'
import { isRecord } from '../core/validation-rules.js'
import { BASE64_BYTES_PER_CHARACTER } from '../dialects/realtime/client-events.js'
import { BYTES_PER_TOKEN, SHORTEST_MEDIUM_CHARACTERS, TOKENS_PER_MEDIUM } from '../limits/estimate-usage.js'

/** Upstreams count audio by these. */
export const HEARD_TOKENS_PER_SECOND = 10
export const SPOKEN_TOKENS_PER_SECOND = 20

/** 24 kHz, two bytes to a sample. */
export const PCM_BYTES_PER_SECOND = 48_000
/** 8 kHz, a byte to a sample. */
const G711_BYTES_PER_SECOND = 8_000

const G711: ReadonlySet<unknown> = new Set(['g711_ulaw', 'g711_alaw', 'audio/pcmu', 'audio/pcma'])

type Half = 'input' | 'output'

/**
 * Bytes to a second of the audio that a session, or a response, hears or speaks, in the form of either dialect;
 * undefined where it does not say.
 */
export function bytesPerSecond(settings: Readonly<Record<string, unknown>>, half: Half): number | undefined {
  const audio = settings['audio']
  const side = isRecord(audio) ? audio[half] : undefined
  const nested = isRecord(side) ? side['format'] : undefined
  const format = isRecord(nested) ? nested['type'] : settings[`${half}_audio_format`]
  if (format == null) return undefined
  return G711.has(format) ? G711_BYTES_PER_SECOND : PCM_BYTES_PER_SECOND
}

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
export class ResponseInput {
  /** Of instructions and tools: every answer reads them. */
  private fixedBytes = 0
  private textBytes = 0
  private heardSeconds = 0
  private inputBytesPerSecond = PCM_BYTES_PER_SECOND
  /** Not committed yet. */
  private appendedBytes = 0
  private speechStartMs: number | undefined
  private speechSeconds: number | undefined
  private isCommitRequested = false

  /** Seconds of audio that the next answer hears, also where the upstream has still to say that it has them. */
  get heardNextSeconds(): number {
    return this.heardSeconds + (this.isCommitRequested ? this.appendedBytes / this.inputBytesPerSecond : 0)
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
    this.isCommitRequested = true
  }

  /** Where the upstream finds speech by itself, the silence around it is no part of the conversation. */
  commit(): void {
    this.heardSeconds += this.speechSeconds ?? this.appendedBytes / this.inputBytesPerSecond
    this.clear()
  }

  clear(): void {
    this.appendedBytes = 0
    this.isCommitRequested = false
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

/** Of an answer that may be spoken, if it has no maximum that is less. */
const SPOKEN_SECONDS = 10

/** Of audio, always: a limit that is used up must not be missed because of an answer in text. */
const LEAST_SECONDS = 0.1

/**
 * Members that hold sound or pictures in Base64, of which no model reads a character. Slashes may be escaped; quotes never
 * are, so that text which only looks like such a member is none.
 */
const MEDIUM = /"(audio|image_url)"\s*:\s*"([^"]*)"/g

/** What a model reads of events, before it is counted in tokens. */
interface Material {
  readonly textBytes: number
  readonly soundBytes: number
  readonly pictures: number
}

/** What an event says of the answer it asks for. */
interface Wish {
  /** Infinity: without a maximum. */
  readonly mostTokens?: number
  readonly isSpoken?: boolean
}

const NO_MATERIAL: Material = { textBytes: 0, soundBytes: 0, pictures: 0 }
const NO_WISH: Wish = {}

/**
 * What the next answer of a session will use, as far as it can be told before it begins: the conversation as the last
 * answer has counted it, what was sent since, and as much as it may say. Events are looked through, not parsed.
 */
export class ExpectedResponse {
  private conversationTokens = 0
  private sent = NO_MATERIAL
  private mostTokens = Infinity
  private isSpoken = true
  private inputBytesPerSecond = PCM_BYTES_PER_SECOND

  /** `session`: all of it, as the upstream says it in either dialect. */
  configure(session: Fields): void {
    this.mostTokens = maximumOf(session['max_output_tokens'] ?? session['max_response_output_tokens'])
    const modalities = session['output_modalities'] ?? session['modalities']
    if (Array.isArray(modalities)) this.isSpoken = modalities.includes('audio')
    this.inputBytesPerSecond = bytesPerSecond(session, 'input') ?? this.inputBytesPerSecond
  }

  /** An event of the client has gone upstream; not those that only append to its sound. */
  send(event: Buffer): void {
    this.sent = sumOf(this.sent, materialOf(event))
  }

  /** An answer begins, and has read what was sent. */
  begin(): void {
    this.sent = NO_MATERIAL
  }

  /**
   * One has ended: the next one reads what it read and said. One that read nothing changes nothing; one out of band never
   * makes the conversation shorter, though it may be longer, as some upstreams name no conversation at all.
   */
  end(reported: Units, isOutOfBand = false): void {
    const { promptTokens = 0, completionTokens = 0 } = countedUnits(reported)
    if (promptTokens === 0) return
    const tokens = promptTokens + completionTokens
    this.conversationTokens = isOutOfBand ? Math.max(this.conversationTokens, tokens) : tokens
  }

  /** `heardSeconds`: sound that none has answered yet. `create`: the event that asks for it, where a client does. */
  expected(heardSeconds: number, create?: Buffer): EstimatedUse {
    const wish = create === undefined ? NO_WISH : wishOf(create)
    const { mostTokens = this.mostTokens, isSpoken = this.isSpoken } = wish
    const read = create === undefined ? this.sent : sumOf(this.sent, materialOf(create))
    const { textBytes, soundBytes, pictures } = read
    const isBounded = mostTokens < Infinity
    const heard = heardSeconds + soundBytes / this.inputBytesPerSecond
    const spoken = isSpoken ? Math.min(SPOKEN_SECONDS, mostTokens / SPOKEN_TOKENS_PER_SECOND) : 0
    const readTokens = textBytes / BYTES_PER_TOKEN + pictures * TOKENS_PER_MEDIUM + heard * HEARD_TOKENS_PER_SECOND
    return {
      tokens: this.conversationTokens + Math.ceil(readTokens) + (isBounded ? mostTokens : 0),
      unboundedResponses: isBounded ? 0 : 1,
      audioSeconds: Math.max(LEAST_SECONDS, Math.ceil((heard + spoken) * 10) / 10),
    }
  }
}

const maximumOf = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : Infinity)

function wishOf(create: Buffer): Wish {
  const member = FrameScan.of(create)?.member('response')
  if (member === undefined) return NO_WISH
  const bytes = create.subarray(member.valueStart, member.valueEnd)
  const response = FrameScan.of(bytes)
  const text = (name: string): string | undefined => {
    const span = response?.member(name)
    const found = span === undefined ? 'null' : bytes.toString('latin1', span.valueStart, span.valueEnd)
    return found === 'null' ? undefined : found
  }
  const maximum = text('max_output_tokens') ?? text('max_response_output_tokens')
  const modalities = text('output_modalities') ?? text('modalities')
  return {
    ...(maximum !== undefined && { mostTokens: maximumOf(Number(maximum)) }),
    ...(modalities !== undefined && { isSpoken: modalities.includes('"audio"') }),
  }
}

function materialOf(event: Buffer): Material {
  const material = { textBytes: event.length, soundBytes: 0, pictures: 0 }
  if (event.length < SHORTEST_MEDIUM_CHARACTERS) return material
  for (const [, name, medium = ''] of event.toString('latin1').matchAll(MEDIUM)) {
    if (medium.length < SHORTEST_MEDIUM_CHARACTERS) continue
    material.textBytes -= medium.length
    if (name === 'audio') material.soundBytes += medium.length * BASE64_BYTES_PER_CHARACTER
    else material.pictures++
  }
  return material
}

const sumOf = (one: Material, other: Material): Material => ({
  textBytes: one.textBytes + other.textBytes,
  soundBytes: one.soundBytes + other.soundBytes,
  pictures: one.pictures + other.pictures,
})
