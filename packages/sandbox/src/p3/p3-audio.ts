import { streamedWavHeader } from '../audio/audio-containers.js'
import { SAMPLE_RATE } from '../audio/pcm-voice.js'
import { countSpeechFrames, synthesizeSpeech } from '../audio/speech-synthesizer.js'
import { fillerBytes, numberWord } from '../server/generated-text.js'
import type { P3Request } from './p3-request.js'
import { spokenText } from './p3-text.js'

const PCM_SAMPLE_BYTES = 2

/**
 * Changes the sample rate of signed 16-bit little-endian mono pieces by linear interpolation, piece by piece. Good
 * enough for babble without energy above 4 kHz; the duration stays exact. Pieces contain whole samples.
 */
export function* resamplePcm(
  pieces: Iterable<Buffer>,
  fromHz: number,
  toHz: number,
): Generator<Buffer, void, undefined> {
  if (fromHz === toHz) {
    yield* pieces
    return
  }
  const step = fromHz / toHz
  let made = 0
  let before = 0
  let last = 0
  for (const piece of pieces) {
    const count = piece.length / PCM_SAMPLE_BYTES
    const sampleAt = (index: number): number => (index < before ? last : piece.readInt16LE((index - before) * 2))
    const out: number[] = []
    // Every sample needs its right neighbour, so the last stretch of a piece waits for the next one.
    for (; Math.floor(made * step) + 1 < before + count; made += 1) {
      const left = Math.floor(made * step)
      const share = made * step - left
      out.push(Math.round(sampleAt(left) * (1 - share) + sampleAt(left + 1) * share))
    }
    if (count > 0) last = piece.readInt16LE(piece.length - PCM_SAMPLE_BYTES)
    before += count
    if (out.length > 0) yield toBytes(out)
  }
  const rest = Math.max(0, Math.ceil(before / step) - made)
  if (rest > 0) yield toBytes(new Array<number>(rest).fill(last))
}

/** Writes each sample of a mono piece twice: left and right. */
export function* toStereo(pieces: Iterable<Buffer>): Generator<Buffer, void, undefined> {
  for (const piece of pieces) {
    const stereo = Buffer.alloc(piece.length * 2)
    for (let offset = 0; offset < piece.length; offset += PCM_SAMPLE_BYTES) {
      piece.copy(stereo, offset * 2, offset, offset + PCM_SAMPLE_BYTES)
      piece.copy(stereo, offset * 2 + PCM_SAMPLE_BYTES, offset, offset + PCM_SAMPLE_BYTES)
    }
    yield stereo
  }
}

/** The same bytes in pieces of exactly `size` bytes; the last one may be shorter. */
export function* recut(pieces: Iterable<Buffer>, size: number): Generator<Buffer, void, undefined> {
  let waiting: Buffer = Buffer.alloc(0)
  for (const piece of pieces) {
    waiting = waiting.length === 0 ? piece : Buffer.concat([waiting, piece])
    while (waiting.length >= size) {
      yield waiting.subarray(0, size)
      waiting = waiting.subarray(size)
    }
  }
  if (waiting.length > 0) yield waiting
}

function toBytes(samples: readonly number[]): Buffer {
  const bytes = Buffer.alloc(samples.length * PCM_SAMPLE_BYTES)
  samples.forEach((sample, index) => bytes.writeInt16LE(sample, index * PCM_SAMPLE_BYTES))
  return bytes
}

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
  const flatBytes = numberWord(request.text, 'bytes')
  if (flatBytes !== undefined) {
    const lengthMs = (flatBytes * 1000) / (sampleRate * channels * BYTES_PER_SAMPLE)
    return { pieces: () => fillerBytes(flatBytes, FLAT_PIECE_BYTES), lengthMs, sampleRate, channels, flat: true }
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
