import type { ByteSink, ByteSource } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { codePoints } from '../core/validation-rules.js'

/** The specification's table of audio formats: `response_format` → Content-Type. A test compares it with docs/spec.md. */
export const AUDIO_FORMATS = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  aac: 'audio/aac',
  flac: 'audio/flac',
  opus: 'audio/opus',
  pcm: 'audio/pcm',
} as const satisfies Record<string, string>

export type AudioFormat = keyof typeof AUDIO_FORMATS

export const AUDIO_FORMAT_NAMES = Object.keys(AUDIO_FORMATS)

/** Of the audio output of chat (design: Chat). */
export const CHAT_AUDIO_FORMATS = ['wav', 'aac', 'mp3', 'flac', 'opus', 'pcm16']

export const DEFAULT_AUDIO_FORMAT: AudioFormat = 'mp3'

/** The requested format; the default if it is absent or unknown. */
export const requestedFormat = (format: string | null | undefined): AudioFormat =>
  format != null && isAudioFormat(format) ? format : DEFAULT_AUDIO_FORMAT

const isAudioFormat = (format: string): format is AudioFormat => Object.hasOwn(AUDIO_FORMATS, format)

/** The error for a text longer than `limit`, such as `4096 characters`. */
export const inputTooLong = (limit: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid 'input': string too long. Expected a string with at most ${limit}.`, {
    param: 'input',
    code: 'string_above_max_length',
  })

/** Characters are code points (design: Speech). Throws `invalid_request` for more of them. */
export function assertInputLength(input: string, maximumCharacters: number): void {
  if (codePoints(input) > maximumCharacters) throw inputTooLong(`${maximumCharacters} characters`)
}

/** Voice → the upstream's name of it. */
export type VoiceTable = Readonly<Record<string, string>>

/**
 * The upstream's name of a voice: from the channel's table, then the provider's; any other name, and every id, is
 * relayed as the caller wrote it.
 */
export function upstreamVoice(
  voice: string | { readonly id: string },
  standard: VoiceTable,
  ofChannel: VoiceTable = {},
): string {
  if (typeof voice !== 'string') return voice.id
  for (const table of [ofChannel, standard]) {
    // Own names only: `constructor` is an unknown voice, not a member of every table.
    if (Object.hasOwn(table, voice)) return table[voice] ?? voice
  }
  return voice
}

const SAMPLE_RATE_HZ = 24_000
const BYTES_PER_SAMPLE = 2
const PCM_FORMAT_TAG = 1
const FORMAT_CHUNK_BYTES = 16
/** Value of a length field for an unknown length; decoders then read to the end. */
const UNKNOWN_BYTES = 0xffffffff

/** RIFF header of a stream of 24 kHz, 16-bit, mono samples of a length not known yet. */
function streamedHeader(): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(UNKNOWN_BYTES, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(FORMAT_CHUNK_BYTES, 16)
  header.writeUInt16LE(PCM_FORMAT_TAG, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SAMPLE_RATE_HZ, 24)
  header.writeUInt32LE(SAMPLE_RATE_HZ * BYTES_PER_SAMPLE, 28)
  header.writeUInt16LE(BYTES_PER_SAMPLE, 32)
  header.writeUInt16LE(BYTES_PER_SAMPLE * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(UNKNOWN_BYTES, 40)
  return header
}

/** Samples as a WAV stream, for upstreams that stream pcm and no wav. The header leaves together with the first samples. */
export class WavSource implements ByteSource, ByteSink {
  private sink!: ByteSink
  private begun = false

  constructor(private readonly samples: ByteSource) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.samples.start(this)
  }

  pause(): void {
    this.samples.pause()
  }

  resume(): void {
    this.samples.resume()
  }

  cancel(): void {
    this.samples.cancel()
  }

  data(chunk: Buffer): void {
    if (!this.begun) {
      this.begun = true
      this.sink.data(streamedHeader())
    }
    this.sink.data(chunk)
  }

  end(): void {
    this.sink.end()
  }

  fail(error: GatewayError): void {
    this.sink.fail(error)
  }
}
