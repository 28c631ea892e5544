import { synthesizeSpeech } from '../audio/speech-synthesizer.js'
import { decodeALaw, decodeMuLaw, encodeALaw, encodeMuLaw } from './g711.js'

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
