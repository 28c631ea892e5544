import { walkFrames, type FrameHead, type FramedAudio } from './audio-fault.js'

const ADTS_HEADER_BYTES = 7
const SAMPLES_PER_BLOCK = 1024
/** Hz by the header's index (ISO/IEC 14496-3). */
const ADTS_RATES_HZ = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
]

/** The frames of an ADTS stream of AAC. Throws an AudioFault. */
export const adtsFrames = (bytes: Buffer): FramedAudio => ({ ...walkFrames(bytes, 0, readAdtsHead), warnings: [] })

/** Undefined where no ADTS frame begins. */
function readAdtsHead(bytes: Buffer, at: number): FrameHead | undefined {
  if (at + ADTS_HEADER_BYTES > bytes.length) return undefined
  const sync = bytes.readUInt16BE(at)
  const word = bytes.readUIntBE(at + 2, 5)
  const field = (shift: number, width: number): number => Math.floor(word / 2 ** shift) % 2 ** width
  const sampleRateHz = ADTS_RATES_HZ[field(34, 4)]
  const channels = field(30, 3)
  const length = field(13, 13)
  // The two layer bits are always 0, which tells ADTS from MP3.
  if ((sync & 0xfff6) !== 0xfff0 || sampleRateHz === undefined || channels === 0) return undefined
  if (length <= ADTS_HEADER_BYTES) return undefined
  return { bytes: length, samples: (field(0, 2) + 1) * SAMPLES_PER_BLOCK, sampleRateHz, channels }
}
