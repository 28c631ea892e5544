import { FrameScan } from '../core/json-spans.js'
import type { EstimatedUse } from '../core/quota.js'
import type { Units } from '../core/request-context.js'
import { countedUnits } from '../core/usage-record.js'
import { isRecord } from '../core/validation-rules.js'
import { BASE64_BYTES_PER_CHARACTER } from '../core/base64.js'
import { BYTES_PER_TOKEN, SHORTEST_MEDIUM_CHARACTERS, TOKENS_PER_MEDIUM } from '../core/token-counter.js'

/** Tokens by which upstreams count audio. */
export const INPUT_TOKENS_PER_SECOND = 10
export const OUTPUT_TOKENS_PER_SECOND = 20

/** 24 kHz, two bytes per sample. */
export const PCM_BYTES_PER_SECOND = 48_000
/** 8 kHz, one byte per sample. */
const G711_BYTES_PER_SECOND = 8_000

const G711: ReadonlySet<unknown> = new Set(['g711_ulaw', 'g711_alaw', 'audio/pcmu', 'audio/pcma'])

type Half = 'input' | 'output'

/**
 * Bytes per second of the input or output audio in these settings of a session or response, in either dialect;
 * undefined when they name no format.
 */
export function bytesPerSecond(settings: Readonly<Record<string, unknown>>, half: Half): number | undefined {
  const audio = settings['audio']
  const side = isRecord(audio) ? audio[half] : undefined
  const nested = isRecord(side) ? side['format'] : undefined
  const format = isRecord(nested) ? nested['type'] : settings[`${half}_audio_format`]
  if (format == null) return undefined
  return G711.has(format) ? G711_BYTES_PER_SECOND : PCM_BYTES_PER_SECOND
}

/** Length of an append without audio and without an id. */
const EMPTY_APPEND_BYTES = '{"type":"input_audio_buffer.append","audio":""}'.length

type Fields = Readonly<Record<string, unknown>>

/** Tokens; audio may have fractions. */
export interface TextAndAudio {
  readonly text: number
  readonly audio: number
}

/**
 * Input of the next response that no earlier response has read: texts, and audio once the upstream has committed it.
 * Input of earlier turns is not counted again.
 */
export class ResponseInput {
  /** Instructions and tools: every response reads them. */
  private fixedBytes = 0
  private textBytes = 0
  private inputSeconds = 0
  private inputBytesPerSecond = PCM_BYTES_PER_SECOND
  /** Appended, not committed yet. */
  private appendedBytes = 0
  private speechStartMs: number | undefined
  private speechSeconds: number | undefined
  private isCommitRequested = false

  /** Seconds of input audio of the next response, a requested commit that is not confirmed yet included. */
  get nextInputSeconds(): number {
    return this.inputSeconds + (this.isCommitRequested ? this.uncommittedSeconds : 0)
  }

  /** Sent, and not committed yet. */
  get uncommittedSeconds(): number {
    return this.appendedBytes / this.inputBytesPerSecond
  }

  /** Counts a message of that many bytes with audio, sent upstream; returns its seconds. */
  append(messageBytes: number): number {
    const bytes = Math.max(0, messageBytes - EMPTY_APPEND_BYTES) * BASE64_BYTES_PER_CHARACTER
    this.appendedBytes += bytes
    return bytes / this.inputBytesPerSecond
  }

  configure(session: Fields): void {
    this.inputBytesPerSecond = bytesPerSecond(session, 'input') ?? this.inputBytesPerSecond
    const { instructions, tools } = session
    const toolBytes = Array.isArray(tools) && tools.length > 0 ? byteLength(JSON.stringify(tools)) : 0
    this.fixedBytes = byteLength(instructions) + toolBytes
  }

  /** Counts an item that was added to the conversation; the model's own items are not counted. */
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

  /** The client has sent `input_audio_buffer.commit`. */
  requestCommit(): void {
    this.isCommitRequested = true
  }

  /**
   * The upstream has committed the audio; returns its seconds. With voice activity detection the silence around speech is not part
   * of it.
   */
  commit(): number {
    const seconds = this.speechSeconds ?? this.uncommittedSeconds
    this.inputSeconds += seconds
    this.clear()
    return seconds
  }

  /** The upstream has discarded the audio; returns its seconds. */
  clear(): number {
    const seconds = this.uncommittedSeconds
    this.appendedBytes = 0
    this.isCommitRequested = false
    this.speechStartMs = this.speechSeconds = undefined
    return seconds
  }

  /** A response begins, and reads everything counted so far. */
  take(): TextAndAudio {
    const { fixedBytes, textBytes, inputSeconds } = this
    this.textBytes = this.inputSeconds = 0
    return { text: (fixedBytes + textBytes) / BYTES_PER_TOKEN, audio: inputSeconds * INPUT_TOKENS_PER_SECOND }
  }
}

const byteLength = (text: unknown): number => (typeof text === 'string' ? Buffer.byteLength(text) : 0)

/** Assumed length of a spoken response, unless its maximum is lower. */
const ASSUMED_OUTPUT_SECONDS = 10

/** Least audio of any response: an exhausted limit must also apply when the response is text. */
const MINIMUM_SECONDS = 0.1

/**
 * Members that hold audio or images in Base64, which models do not read as text. Slashes may be escaped; quotes never
 * are, so that text which only looks like such a member does not match.
 */
const MEDIUM = /"(audio|image_url)"\s*:\s*"([^"]*)"/g

/** What a model reads of events, before it is counted in tokens. */
interface Material {
  readonly textBytes: number
  readonly soundBytes: number
  readonly pictures: number
}

/** The settings of a `response.create` that change its cost. */
interface RequestedResponse {
  /** Infinity: no maximum. */
  readonly maximumTokens?: number
  readonly isSpoken?: boolean
}

const NO_MATERIAL: Material = { textBytes: 0, soundBytes: 0, pictures: 0 }
const NO_REQUEST: RequestedResponse = {}

/**
 * Estimates the use of the next response of a session before it begins: the conversation as the last response has
 * counted it, the input sent since, and the maximum of its output. Events are scanned, not parsed.
 */
export class NextResponseEstimator {
  private conversationTokens = 0
  private sent = NO_MATERIAL
  private maximumTokens = Infinity
  private isSpoken = true
  private inputBytesPerSecond = PCM_BYTES_PER_SECOND

  /** `session`: the complete session as the upstream reports it, in either dialect. */
  configure(session: Fields): void {
    this.maximumTokens = maximumOf(session['max_output_tokens'] ?? session['max_response_output_tokens'])
    const modalities = session['output_modalities'] ?? session['modalities']
    if (Array.isArray(modalities)) this.isSpoken = modalities.includes('audio')
    this.inputBytesPerSecond = bytesPerSecond(session, 'input') ?? this.inputBytesPerSecond
  }

  /** Counts a client event sent upstream, except those that append audio. */
  send(event: Buffer): void {
    this.sent = sumOf(this.sent, materialOf(event))
  }

  /** A response begins, and has read what was sent. */
  begin(): void {
    this.sent = NO_MATERIAL
  }

  /**
   * A response has ended: the next one reads its input and output. One without input changes nothing; one out of band
   * never makes the conversation shorter, though it may be longer, as some upstreams name no conversation at all.
   */
  end(reported: Units, isOutOfBand = false): void {
    const { promptTokens = 0, completionTokens = 0 } = countedUnits(reported)
    if (promptTokens === 0) return
    const tokens = promptTokens + completionTokens
    this.conversationTokens = isOutOfBand ? Math.max(this.conversationTokens, tokens) : tokens
  }

  /**
   * `inputSeconds`: audio that no response has read yet. `create`: the client's event that requests the response, if one does.
   */
  estimate(inputSeconds: number, create?: Buffer): EstimatedUse {
    const requested = create === undefined ? NO_REQUEST : readRequestedResponse(create)
    const { maximumTokens = this.maximumTokens, isSpoken = this.isSpoken } = requested
    const input = create === undefined ? this.sent : sumOf(this.sent, materialOf(create))
    const { textBytes, soundBytes, pictures } = input
    const isBounded = maximumTokens < Infinity
    const totalInputSeconds = inputSeconds + soundBytes / this.inputBytesPerSecond
    const outputSeconds = isSpoken ? Math.min(ASSUMED_OUTPUT_SECONDS, maximumTokens / OUTPUT_TOKENS_PER_SECOND) : 0
    const inputTokens =
      textBytes / BYTES_PER_TOKEN + pictures * TOKENS_PER_MEDIUM + totalInputSeconds * INPUT_TOKENS_PER_SECOND
    return {
      tokens: this.conversationTokens + Math.ceil(inputTokens) + (isBounded ? maximumTokens : 0),
      unboundedResponses: isBounded ? 0 : 1,
      audioSeconds: Math.max(MINIMUM_SECONDS, Math.ceil((totalInputSeconds + outputSeconds) * 10) / 10),
    }
  }
}

const maximumOf = (value: unknown): number => (typeof value === 'number' && value > 0 ? value : Infinity)

function readRequestedResponse(create: Buffer): RequestedResponse {
  const member = FrameScan.of(create)?.member('response')
  if (member === undefined) return NO_REQUEST
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
    ...(maximum !== undefined && { maximumTokens: maximumOf(Number(maximum)) }),
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
