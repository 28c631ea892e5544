import { AudioFault, type FrameHead, type FramedAudio, walkFrames } from './audio-fault.js'
import { checksum } from './checksums.js'

const STREAM_INFO_BYTES = 34
const FIXED_RATES_HZ = [0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]

/** The frames of a FLAC file (RFC 9639), both checksums of each found right. Throws an AudioFault. */
export function flacFrames(bytes: Buffer): FramedAudio {
  if (bytes.toString('latin1', 0, 4) !== 'fLaC') throw new AudioFault('it does not begin with fLaC')
  const info = bytes.subarray(8, 8 + STREAM_INFO_BYTES)
  if (info.length < STREAM_INFO_BYTES || (bytes.readUInt8(4) & 0x7f) !== 0)
    throw new AudioFault('STREAMINFO does not come first')
  const rateHz = info.readUIntBE(10, 3) >>> 4
  const framed = walkFrames(bytes, framesBegin(bytes), (all, at) => readFlacFrame(all, at, rateHz))
  const promised = (info.readUInt8(13) & 15) * 2 ** 32 + info.readUInt32BE(14)
  if (promised !== 0 && promised !== framed.samples)
    throw new AudioFault(`STREAMINFO promises ${promised} samples, the frames hold ${framed.samples}`)
  return { ...framed, warnings: [] }
}

/** Where the metadata blocks end. */
function framesBegin(bytes: Buffer): number {
  for (let at = 4; at + 4 <= bytes.length;) {
    const isLast = (bytes.readUInt8(at) & 0x80) !== 0
    at += 4 + bytes.readUIntBE(at + 1, 3)
    if (isLast) return at
  }
  throw new AudioFault('the metadata breaks off')
}

/** A frame does not say how long it is: it ends where its checksum is right and the next one begins, or the file ends. */
function readFlacFrame(bytes: Buffer, at: number, streamRateHz: number): FrameHead | undefined {
  const head = readHead(bytes, at, streamRateHz)
  if (head === undefined) return undefined
  for (let end = at + head.bytes + 2; end <= bytes.length; end += 1) {
    if (end < bytes.length && readHead(bytes, end, streamRateHz) === undefined) continue
    if (checksum(bytes.subarray(at, end), 16, 0x8005) === 0) return { ...head, bytes: end - at }
  }
  throw new AudioFault(`the frame at byte ${at} breaks off or has a wrong checksum`)
}

/** Header of a frame; `bytes` is the header's own length, its checksum included. Undefined where none begins. */
function readHead(bytes: Buffer, at: number, streamRateHz: number): FrameHead | undefined {
  if (bytes[at] !== 0xff || ((bytes[at + 1] ?? 0) & 0xfe) !== 0xf8) return undefined
  const sizes = bytes[at + 2] ?? 0
  const channelBits = (bytes[at + 3] ?? 0) >>> 4
  const blockCode = sizes >>> 4
  const rateCode = sizes & 15
  if (blockCode === 0 || channelBits > 10) return undefined
  const numberBytes = codedLength(bytes[at + 4] ?? 0)
  const blockBytes = blockCode === 6 ? 1 : blockCode === 7 ? 2 : 0
  const rateBytes = rateCode === 12 ? 1 : rateCode === 13 || rateCode === 14 ? 2 : 0
  const crcAt = at + 4 + numberBytes + blockBytes + rateBytes
  if (checksum(bytes.subarray(at, crcAt), 8, 0x07) !== bytes[crcAt]) return undefined
  const blockAt = at + 4 + numberBytes
  return {
    bytes: crcAt + 1 - at,
    samples: blockBytes > 0 ? bytes.readUIntBE(blockAt, blockBytes) + 1 : fixedBlock(blockCode),
    sampleRateHz: rateCode === 0 ? streamRateHz : (FIXED_RATES_HZ[rateCode] ?? streamRateHz),
    channels: channelBits < 8 ? channelBits + 1 : 2,
  }
}

/** Bytes of the frame's number, which is written as UTF-8 writes a character. */
const codedLength = (first: number): number => (first < 0x80 ? 1 : Math.max(1, Math.clz32(~(first << 24))))

const fixedBlock = (code: number): number => (code === 1 ? 192 : code < 6 ? 144 * 2 ** code : 2 ** code)
