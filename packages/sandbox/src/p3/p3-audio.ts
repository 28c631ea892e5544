import { countSpeechFrames } from '../audio/frame-schedule.js'
import { SAMPLE_RATE } from '../audio/pcm-voice.js'
import { synthesizeSpeech } from '../audio/speech-synthesizer.js'
import { streamedWavHeader } from '../audio/wav-writer.js'
import { magicNumber } from '../server/magic-text.js'
import type { P3Request } from './p3-request.js'
import { spokenText } from './p3-text.js'
import { resamplePcm, toStereo } from './pcm-shape.js'

/** The upstream's own default. */
const DEFAULT_SAMPLE_RATE = 32_000
const MP3_FRAME_MS = 24
const FRAME_MS = 20
const BYTES_PER_SAMPLE = 2
const FLAT_PIECE_BYTES = 49_152

/** One answer's audio and the truth about it. */
export interface P3Audio {
  /** The bytes from the start, the same each time it is called. */
  readonly pieces: () => Iterable<Buffer>
  readonly lengthMs: number
  /** In Hz. */
  readonly sampleRate: number
  readonly channels: 1 | 2
  /** Any number of bytes from `#bytes=N`: such an answer is never held in memory. */
  readonly flat: boolean
}

/**
 * Speaks a request. pcm and wav have the rate and the channels that were asked for; mp3, flac and opus come as the
 * synthesizer makes them, 24 kHz mono, and `extra_info` says so.
 */
export function speakP3(request: P3Request): P3Audio {
  const raw = request.format === 'pcm' || request.format === 'wav'
  const sampleRate = raw ? (request.sampleRate ?? DEFAULT_SAMPLE_RATE) : SAMPLE_RATE
  const channels = raw ? request.channels : 1
  const flatBytes = magicNumber(request.text, 'bytes')
  if (flatBytes !== undefined) {
    const lengthMs = (flatBytes * 1000) / (sampleRate * channels * BYTES_PER_SAMPLE)
    return { pieces: () => flatAudio(flatBytes), lengthMs, sampleRate, channels, flat: true }
  }
  const { format, speed } = request
  const text = spokenText(request.text, speed)
  const frameMs = format === 'mp3' ? MP3_FRAME_MS : FRAME_MS
  const lengthMs = countSpeechFrames(text, speed, frameMs) * frameMs
  const shape = { lengthMs, sampleRate, channels }
  const pieces = (): Iterable<Buffer> => {
    if (!raw) return synthesizeSpeech(text, { format, speed })
    const mono = resamplePcm(synthesizeSpeech(text, { format: 'pcm', speed }), SAMPLE_RATE, sampleRate)
    const samples = channels === 2 ? toStereo(mono) : mono
    return format === 'wav' ? withWavHeader(samples, shape) : samples
  }
  return { ...shape, pieces, flat: false }
}

/** Bits per second: nominal for raw samples, the average for compressed audio. */
export function bitrateOf(audio: P3Audio, format: P3Request['format'], sizeBytes: number): number {
  if (format === 'pcm' || format === 'wav') return audio.sampleRate * audio.channels * BYTES_PER_SAMPLE * 8
  return Math.round((sizeBytes * 8000) / Math.max(1, audio.lengthMs))
}

/** A file, not a stream: the header has the true sizes. */
function* withWavHeader(
  samples: Iterable<Buffer>,
  shape: Pick<P3Audio, 'lengthMs' | 'sampleRate' | 'channels'>,
): Generator<Buffer, void, undefined> {
  const blockBytes = shape.channels * BYTES_PER_SAMPLE
  const dataBytes = Math.round((shape.lengthMs * shape.sampleRate) / 1000) * blockBytes
  const header = streamedWavHeader(shape.sampleRate)
  header.writeUInt32LE(header.length - 8 + dataBytes, 4)
  header.writeUInt16LE(shape.channels, 22)
  header.writeUInt32LE(shape.sampleRate * blockBytes, 28)
  header.writeUInt16LE(blockBytes, 32)
  header.writeUInt32LE(dataBytes, 40)
  yield header
  yield* samples
}

/** Exactly `total` bytes: byte i is i modulo 251. Flat in memory for any size. */
function* flatAudio(total: number): Generator<Buffer, void, undefined> {
  const period = 251
  const pattern = Buffer.from(Array.from({ length: FLAT_PIECE_BYTES + period }, (_, index) => index % period))
  for (let sent = 0; sent < total; sent += FLAT_PIECE_BYTES) {
    const start = sent % period
    yield pattern.subarray(start, start + Math.min(FLAT_PIECE_BYTES, total - sent))
  }
}
