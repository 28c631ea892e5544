import type { ByteSink, ByteSource } from '../core/byte-source.js'
import type { GatewayError } from '../core/gateway-error.js'
import type { Units } from '../core/request-context.js'
import { codePoints } from '../core/validation-rules.js'
import { KEEP_ALIVE_MS } from '../upstream/sse-relay.js'
import { malformedAnswer } from '../upstream/upstream-response.js'

/** What `speech.audio.done` says a speech took. The token figures of other providers than P1 are estimates and say so. */
export interface SpeechUsage extends Units {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly total_tokens: number
}

/** What a provider said itself about the speech it made. */
export interface SpeechFigures {
  /** Characters billed, by the provider's own way of counting. */
  readonly characters?: number
  readonly audioMs?: number
}

const NOTHING = Buffer.alloc(0)
const CHARACTERS_PER_TOKEN = 4
const CHARACTERS_PER_SECOND = 15
const MS_PER_MINUTE = 60_000
/** The specification: audio costs about 1,000 audio tokens per minute. */
const AUDIO_TOKENS_PER_MINUTE = 1000

/** What a speech probably cost in tokens, for upstreams that count none. */
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
  /** The beginning of a sample whose rest has not arrived. */
  private begun: Buffer = NOTHING
  /** Bytes that have arrived. */
  audioBytes = 0

  constructor(
    private readonly audio: ByteSource,
    private readonly usage: () => SpeechUsage,
    /** Samples are not parted: a client may play each piece when it arrives. */
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
    if (whole > 0) this.say(audio.subarray(0, whole))
  }

  private say(audio: Buffer): void {
    this.sink.data(Buffer.from(`data: {"type":"speech.audio.delta","audio":"${audio.toString('base64')}"}\r\n\r\n`))
  }

  end(): void {
    if (!this.spoke) {
      this.fail(malformedAnswer('The upstream answered without content.'))
      return
    }
    clearInterval(this.keepAlive)
    if (this.begun.length > 0) this.say(this.begun)
    // The figures are the gateway's own, and say so.
    const usage = JSON.stringify({ ...this.usage(), estimated: true })
    this.sink.data(Buffer.from(`data: {"type":"speech.audio.done","usage":${usage}}\r\n\r\ndata: [DONE]\r\n\r\n`))
    this.sink.end()
  }

  fail(error: GatewayError): void {
    clearInterval(this.keepAlive)
    this.sink.fail(error)
  }
}
