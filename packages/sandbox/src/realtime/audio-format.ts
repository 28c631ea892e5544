import { createHash } from 'node:crypto'
import { synthesizeSpeech } from '../audio/speech-synthesizer.js'

/** Hexadecimal digits of a SHA-1 in the model's text. */
const CHECKSUM_DIGITS = 12

/** Audio that went by: how much, and a checksum. The bytes themselves are not kept. */
export class AudioTally {
  bytes = 0
  readonly #hash = createHash('sha1')

  add(audio: Buffer): void {
    this.bytes += audio.length
    this.#hash.update(audio)
  }

  /** The first twelve hexadecimal digits of the SHA-1 of all bytes so far. */
  get checksum(): string {
    return this.#hash.copy().digest('hex').slice(0, CHECKSUM_DIGITS)
  }
}

/** Decodes base64 of the standard alphabet with its padding, and nothing else; undefined for any other text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  // Node skips what it does not know; only canonical text comes back the same.
  return bytes.toString('base64') === text ? bytes : undefined
}

/** ITU-T G.711 in both laws: 16-bit samples to bytes and back. */

const MU_LAW_BIAS = 0x84
const MU_LAW_CLIP = 32_635
/** A-law inverts every other bit on the line. */
const A_LAW_LINE_MASK = 0x55

export function encodeMuLaw(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0
  const magnitude = Math.min(Math.abs(sample), MU_LAW_CLIP) + MU_LAW_BIAS
  const exponent = Math.floor(Math.log2(magnitude)) - 7
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f
  return ~(sign | (exponent << 4) | mantissa) & 0xff
}

export function decodeMuLaw(byte: number): number {
  const bits = ~byte & 0xff
  const magnitude = (((bits & 0x0f) << 3) + MU_LAW_BIAS) << ((bits & 0x70) >> 4)
  return bits & 0x80 ? MU_LAW_BIAS - magnitude : magnitude - MU_LAW_BIAS
}

export function encodeALaw(sample: number): number {
  const sign = sample >= 0 ? 0x80 : 0
  const magnitude = sample >= 0 ? sample : -sample - 1
  if (magnitude < 256) return (sign | (magnitude >> 4)) ^ A_LAW_LINE_MASK
  const exponent = Math.floor(Math.log2(magnitude)) - 7
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f
  return (sign | (exponent << 4) | mantissa) ^ A_LAW_LINE_MASK
}

export function decodeALaw(byte: number): number {
  const bits = byte ^ A_LAW_LINE_MASK
  const segment = (bits & 0x70) >> 4
  const step = (bits & 0x0f) << 4
  const magnitude = segment === 0 ? step + 8 : (step + 0x108) << (segment - 1)
  return bits & 0x80 ? magnitude : -magnitude
}

/** `pcm16`: 24 kHz signed 16-bit little-endian. The others: 8 kHz, a byte for each sample. All mono. */
export type AudioFormat = 'pcm16' | 'g711_ulaw' | 'g711_alaw'

const FULL_SCALE = 32_768
const BYTES_PER_SAMPLE = 2
/** 24 kHz to the 8 kHz of G.711. */
const DECIMATION = 3

const LAWS = {
  g711_ulaw: { encode: encodeMuLaw, decode: Float64Array.from({ length: 256 }, (_, byte) => decodeMuLaw(byte)) },
  g711_alaw: { encode: encodeALaw, decode: Float64Array.from({ length: 256 }, (_, byte) => decodeALaw(byte)) },
}

export function bytesPerMs(format: AudioFormat): number {
  return format === 'pcm16' ? 48 : 8
}

/** Root mean square of whole samples, 0 to 1. */
export function loudness(frame: Buffer, format: AudioFormat): number {
  const count = format === 'pcm16' ? Math.floor(frame.length / BYTES_PER_SAMPLE) : frame.length
  let sum = 0
  for (let index = 0; index < count; index += 1) sum += sampleAt(frame, index, format) ** 2
  return count === 0 ? 0 : Math.sqrt(sum / count) / FULL_SCALE
}

/** Speech that can be heard, about 120 ms at a time. Speed is 0.25 to 1.5. */
export function* speak(text: string, format: AudioFormat, speed: number): Generator<Buffer, void, undefined> {
  for (const chunk of synthesizeSpeech(text, { format: 'pcm', speed })) {
    yield format === 'pcm16' ? chunk : compand(chunk, LAWS[format].encode)
  }
}

/** The voices have nothing above 4 kHz, so no filter is needed before two samples of three are left out. */
function compand(pcm: Buffer, encode: (sample: number) => number): Buffer {
  const samples = Math.floor(pcm.length / BYTES_PER_SAMPLE / DECIMATION)
  const encoded = Buffer.alloc(samples)
  for (let index = 0; index < samples; index += 1) {
    encoded[index] = encode(pcm.readInt16LE(index * DECIMATION * BYTES_PER_SAMPLE))
  }
  return encoded
}

function sampleAt(frame: Buffer, index: number, format: AudioFormat): number {
  if (format === 'pcm16') return frame.readInt16LE(index * BYTES_PER_SAMPLE)
  return LAWS[format].decode[frame[index] ?? 0] ?? 0
}
