import { walkFrames, type FrameHead, type FramedAudio } from './audio-fault.js'

const MP3_HEADER_BYTES = 4
const TAG_HEADER_BYTES = 10
/** kb/s by the header's index, layer III (ISO/IEC 11172-3 and 13818-3). */
const BITRATES_1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const BITRATES_2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
const MP3_RATES_HZ = [44_100, 48_000, 32_000]

/** The frames of an MP3 file, MPEG 1, 2 and 2.5 layer III; an ID3v2 tag before them is skipped. Throws an AudioFault. */
export function mp3Frames(bytes: Buffer): FramedAudio {
  const tagBytes = tagLength(bytes)
  return { ...walkFrames(bytes, tagBytes, readMp3Head), warnings: tagBytes > 0 ? ['it begins with an ID3 tag'] : [] }
}

/** Undefined where no layer III frame of a known length begins. */
export function readMp3Head(bytes: Buffer, at: number): FrameHead | undefined {
  if (at + MP3_HEADER_BYTES > bytes.length) return undefined
  const word = bytes.readUInt32BE(at)
  const version = (word >>> 19) & 3
  const layer = (word >>> 17) & 3
  if (word >>> 21 !== 0x7ff || version === 1 || layer !== 1) return undefined
  const isMpeg1 = version === 3
  const bitrate = (isMpeg1 ? BITRATES_1 : BITRATES_2)[(word >>> 12) & 15]
  const baseRate = MP3_RATES_HZ[(word >>> 10) & 3]
  if (bitrate === undefined || bitrate === 0 || baseRate === undefined) return undefined
  const sampleRateHz = baseRate / (isMpeg1 ? 1 : version === 2 ? 2 : 4)
  const samples = isMpeg1 ? 1152 : 576
  const padding = (word >>> 9) & 1
  const length = Math.floor((samples / 8) * ((bitrate * 1000) / sampleRateHz)) + padding
  return { bytes: length, samples, sampleRateHz, channels: ((word >>> 6) & 3) === 3 ? 1 : 2 }
}

/** Length of the ID3v2 tag at the beginning, whose size is written seven bits to the byte. */
function tagLength(bytes: Buffer): number {
  if (bytes.length < TAG_HEADER_BYTES || bytes.toString('latin1', 0, 3) !== 'ID3') return 0
  return bytes.subarray(6, TAG_HEADER_BYTES).reduce((size, byte) => size * 128 + (byte & 0x7f), 0) + TAG_HEADER_BYTES
}
