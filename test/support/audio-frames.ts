/** Why bytes are not the audio they are said to be. */
export class AudioFault extends Error {
  override readonly name = 'AudioFault'
}

/** Compressed audio taken apart, not yet decoded. */
export interface FramedAudio {
  readonly frames: readonly Buffer[]
  readonly sampleRateHz: number
  readonly channels: number
  /** Per channel, as the frames' headers say. */
  readonly samples: number
  readonly warnings: readonly string[]
}

/** What one frame says of itself. `bytes` is its whole length, its header included. */
interface FrameHead {
  readonly bytes: number
  readonly samples: number
  readonly sampleRateHz: number
  readonly channels: number
}

/** Walks frames that follow one another without a gap from `start` to the very end; all must agree on rate and channels. */
function walkFrames(
  bytes: Buffer,
  start: number,
  readHead: (bytes: Buffer, at: number) => FrameHead | undefined,
): Omit<FramedAudio, 'warnings'> {
  const frames: Buffer[] = []
  let samples = 0
  let first: FrameHead | undefined
  for (let at = start; at < bytes.length;) {
    const head = readHead(bytes, at)
    if (head === undefined) throw new AudioFault(`no frame begins at byte ${at} of ${bytes.length}`)
    if (at + head.bytes > bytes.length) throw new AudioFault(`the frame at byte ${at} breaks off`)
    first ??= head
    if (head.sampleRateHz !== first.sampleRateHz || head.channels !== first.channels)
      throw new AudioFault(`the frame at byte ${at} has another rate or other channels`)
    frames.push(bytes.subarray(at, at + head.bytes))
    samples += head.samples
    at += head.bytes
  }
  if (first === undefined) throw new AudioFault('there is not one frame in it')
  return { frames, samples, sampleRateHz: first.sampleRateHz, channels: first.channels }
}

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

/** CRC of `bits` bits (8 to 32) with this polynomial, highest bit first, beginning at zero: the form Ogg and FLAC use. */
export function checksum(bytes: Buffer, bits: number, polynomial: number): number {
  const table = tableOf(bits, polynomial)
  const mask = 0xffffffff >>> (32 - bits)
  let crc = 0
  for (const byte of bytes) {
    const index = ((crc >>> (bits - 8)) ^ byte) & 0xff
    crc = (((bits === 8 ? 0 : crc << 8) ^ (table[index] ?? 0)) & mask) >>> 0
  }
  return crc
}

const tables = new Map<string, Uint32Array>()

function tableOf(bits: number, polynomial: number): Uint32Array {
  const key = `${bits}/${polynomial}`
  const known = tables.get(key)
  if (known !== undefined) return known
  const top = 2 ** (bits - 1)
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = (byte << (bits - 8)) >>> 0
    for (let step = 0; step < 8; step += 1) crc = ((crc & top) !== 0 ? (crc << 1) ^ polynomial : crc << 1) >>> 0
    return crc
  })
  tables.set(key, table)
  return table
}

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
