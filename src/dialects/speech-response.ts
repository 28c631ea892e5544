import type { ByteSink, ByteSource, ProviderResponse } from '../core/byte-stream.js'
import type { GatewayError } from '../core/errors.js'
import type { Units, Usage, UsageEstimator, UsageReader } from '../core/request-context.js'
import { codePoints } from '../core/validation-rules.js'
import { type FrameCounter, KEEP_ALIVE_MS } from '../upstream/sse-relay.js'
import { eventResponse, fileResponse, malformedResponse } from '../upstream/upstream-response.js'
import { AUDIO_FORMATS, type AudioFormat, WavSource } from './speech-formats.js'

/** Usage in `speech.audio.done`. Token counts of providers other than P1 are estimates, marked as such. */
export interface SpeechUsage extends Units {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly total_tokens: number
}

/** Amounts reported by the provider of a speech. */
interface SpeechFigures {
  /** Characters billed, as counted by the provider. */
  readonly characters?: number
  readonly audioMs?: number
}

const NOTHING = Buffer.alloc(0)
const CHARACTERS_PER_TOKEN = 4
const CHARACTERS_PER_SECOND = 15
const MS_PER_MINUTE = 60_000
/** The specification: audio costs about 1,000 audio tokens per minute. */
const AUDIO_TOKENS_PER_MINUTE = 1000

/** Estimated tokens of a speech, for upstreams that report none. */
export function estimateSpeechUsage(input: string, figures: SpeechFigures = {}): SpeechUsage {
  const characters = codePoints(input)
  const { audioMs = (characters / CHARACTERS_PER_SECOND) * 1000, characters: billed = characters } = figures
  const inputTokens = Math.ceil(characters / CHARACTERS_PER_TOKEN)
  const outputTokens = Math.ceil((audioMs * AUDIO_TOKENS_PER_MINUTE) / MS_PER_MINUTE)
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    input_characters: billed,
  }
}

/**
 * Raw audio as the one event form of speech: `speech.audio.delta` … `speech.audio.done`, CRLF, `[DONE]`.
 * Each piece is base64 of its own, so that a client may decode it on arrival.
 */
export class SpeechEventSource implements ByteSource, ByteSink {
  private sink!: ByteSink
  private keepAlive: NodeJS.Timeout | undefined
  private spoke = false
  /** First byte of a sample whose second has not arrived. */
  private begun: Buffer = NOTHING
  /** Bytes that have arrived. */
  audioBytes = 0

  constructor(
    private readonly audio: ByteSource,
    private readonly usage: () => SpeechUsage,
    /** Samples are not split: a client may play each chunk when it arrives. */
    private readonly sampleBytes = 1,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.keepAlive = setInterval(() => {
      sink.data(Buffer.from(': keep-alive\r\n\r\n'))
    }, KEEP_ALIVE_MS)
    this.audio.start(this)
  }

  pause(): void {
    this.audio.pause()
  }

  resume(): void {
    this.audio.resume()
  }

  cancel(): void {
    clearInterval(this.keepAlive)
    this.audio.cancel()
  }

  data(chunk: Buffer): void {
    this.spoke = true
    this.audioBytes += chunk.length
    this.keepAlive?.refresh()
    const audio = this.begun.length === 0 ? chunk : Buffer.concat([this.begun, chunk])
    const whole = audio.length - (audio.length % this.sampleBytes)
    this.begun = audio.subarray(whole)
    if (whole > 0) this.emit(audio.subarray(0, whole))
  }

  private emit(audio: Buffer): void {
    this.sink.data(Buffer.from(`data: {"type":"speech.audio.delta","audio":"${audio.toString('base64')}"}\r\n\r\n`))
  }

  end(): void {
    if (!this.spoke) {
      this.fail(malformedResponse('The upstream answered without content.'))
      return
    }
    clearInterval(this.keepAlive)
    if (this.begun.length > 0) this.emit(this.begun)
    // The gateway's own estimates, marked as such.
    const usage = JSON.stringify({ ...this.usage(), estimated: true })
    this.sink.data(Buffer.from(`data: {"type":"speech.audio.done","usage":${usage}}\r\n\r\ndata: [DONE]\r\n\r\n`))
    this.sink.end()
  }

  fail(error: GatewayError): void {
    clearInterval(this.keepAlive)
    this.sink.fail(error)
  }
}

/** 24 kHz, 16 bits, one channel, for every provider. */
const BYTES_PER_SECOND = 48_000
const WAV_HEADER_BYTES = 44

/** Seconds of speech in so many bytes; undefined for formats of unknown bit rate. */
function speechSeconds(format: AudioFormat, bytes: number): number | undefined {
  if (format !== 'pcm' && format !== 'wav') return undefined
  const samples = format === 'wav' ? Math.max(0, bytes - WAV_HEADER_BYTES) : bytes
  return Math.round((samples * 1000) / BYTES_PER_SECOND) / 1000
}

/** Not `audio_seconds`, the unit of input audio and of providers that bill by it. */
const withSeconds = (units: Readonly<Record<string, number>>, seconds: number | undefined) =>
  seconds === undefined ? units : { ...units, spoken_seconds: seconds }

/** Usage of a speech so far: the characters that its provider bills, and the audio that has arrived. */
export class SpeechUsageEstimator implements UsageEstimator {
  constructor(
    /** 0 = nothing yet. */
    private readonly characters: () => number,
    private readonly format: AudioFormat,
    /** Bytes of audio relayed so far. */
    private readonly audioBytes: () => number,
  ) {}

  estimate(): Usage | undefined {
    const characters = this.characters()
    if (characters === 0) return undefined
    return {
      units: withSeconds({ input_characters: characters }, speechSeconds(this.format, this.audioBytes())),
      estimated: true,
    }
  }
}

const KEY = Buffer.from('"audio":"')
const LOWER_D = 0x64
const QUOTE = 0x22
const PADDING = 0x3d

/** Counts the bytes of audio in `speech.audio.delta` events, by the ends of each base64 text. */
export class AudioCounter implements FrameCounter {
  /** Bytes. */
  count = 0
  private countBefore = 0

  checkpoint(): void {
    this.countBefore = this.count
  }

  rollBack(): void {
    this.count = this.countBefore
  }

  line(bytes: Buffer, start: number, end: number): void {
    if (bytes[start] !== LOWER_D) return
    const key = bytes.indexOf(KEY, start)
    if (key === -1 || key >= end) return
    const audio = key + KEY.length
    const audioEnd = bytes.indexOf(QUOTE, audio)
    if (audioEnd === -1 || audioEnd > end) return
    const padding = Number(bytes[audioEnd - 1] === PADDING) + Number(bytes[audioEnd - 2] === PADDING)
    this.count += Math.max(0, Math.floor(((audioEnd - audio) * 3) / 4) - padding)
  }
}

/** Estimated usage of relayed speech events until `speech.audio.done` comes, in tokens as that event has them. */
export class SpeechEventUsageEstimator implements UsageEstimator {
  constructor(
    private readonly input: string,
    private readonly format: AudioFormat,
    private readonly audio: Pick<AudioCounter, 'count'>,
  ) {}

  estimate(): Usage | undefined {
    if (this.audio.count === 0) return undefined
    const seconds = speechSeconds(this.format, this.audio.count)
    // If the bytes do not show how much was spoken, the whole text counts.
    const usage = estimateSpeechUsage(this.input, seconds === undefined ? {} : { audioMs: seconds * 1000 })
    const { input_tokens, output_tokens, total_tokens } = usage
    return { units: withSeconds({ input_tokens, output_tokens, total_tokens }, seconds), estimated: true }
  }

  /** Counted in full: the text has at most 4096 characters. */
  countedUnits(): Units | undefined {
    return this.estimate()?.units
  }
}

/** A speech from an upstream. */
export interface SpokenAudio {
  readonly source: ByteSource
  /** Format of the source's bytes. */
  readonly format: AudioFormat
  /** Format that the client receives: `wav` with a header written here for `pcm`, otherwise `format`. */
  readonly sentAs: AudioFormat
  /** Set if the upstream lacks the requested format, and the client receives this one. */
  readonly fallback?: AudioFormat
  /** Called at the end of the audio, for the last event. */
  readonly usage: () => SpeechUsage
  /** Characters that the provider bills so far; 0 = none yet. */
  readonly characters: () => number
  readonly headers?: Readonly<Record<string, string>>
  /** Usage reported by the provider; absent if it never reports any. */
  readonly reported?: UsageReader
}

/** The usage reported by the provider, otherwise an estimate. */
class SpokenUsage implements UsageReader {
  constructor(
    private readonly reported: UsageReader | undefined,
    private readonly estimator: UsageEstimator,
  ) {}

  get reportedUsage(): Usage | undefined {
    return this.reported?.reportedUsage
  }

  estimate(): Usage | undefined {
    return this.estimator.estimate()
  }

  countedUnits(): Units | undefined {
    return this.reported?.countedUnits?.()
  }
}

/** 16 bits, one channel; the header of a WAV stream has an even length as well. */
export const PCM_SAMPLE_BYTES = 2

/**
 * The response of every speech provider: raw bytes whose Content-Type says what they are, or the events of
 * `stream_format: sse`. What fails before the first byte of audio rejects, so that another channel may be tried.
 */
export async function speechResponse(
  audio: SpokenAudio,
  streamFormat: string | null | undefined,
): Promise<ProviderResponse> {
  const { characters, source, format, sentAs, fallback, reported } = audio
  const headers = { ...audio.headers, ...(fallback === undefined ? {} : { 'x-gateway-audio-fallback': fallback }) }
  const sent = format === 'pcm' && sentAs === 'wav' ? new WavSource(source) : source
  const usageBy = (audioBytes: () => number): UsageReader =>
    new SpokenUsage(reported, new SpeechUsageEstimator(characters, sentAs, audioBytes))
  if (streamFormat === 'sse') {
    const events = new SpeechEventSource(sent, audio.usage, format === 'pcm' ? PCM_SAMPLE_BYTES : 1)
    return await eventResponse(
      200,
      headers,
      events,
      usageBy(() => events.audioBytes),
    )
  }
  return await fileResponse(200, { ...headers, 'content-type': AUDIO_FORMATS[sentAs] }, sent, (relayed) =>
    usageBy(() => relayed.passedBytes),
  )
}
