import { type AudioFacts, type ByteWindow, undecodable } from './audio-facts.js'

/** One header of MPEG-1, MPEG-2 or MPEG-2.5 audio. */
interface MpegFrame {
  readonly layer: 1 | 2 | 3
  /** Length of the frame with its header. */
  readonly bytes: number
  /** Playing time. */
  readonly seconds: number
  /** Version, layer and sample rate: what stays the same through a stream. */
  readonly kind: number
}

/** kbit/s by bit-rate index 1 to 14. */
const BIT_RATES = {
  v1: {
    1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  },
  v2: {
    1: [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    2: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    3: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  },
} as const
/** Hz of MPEG-1; MPEG-2 has half, MPEG-2.5 a quarter. */
const SAMPLE_RATES = [44_100, 48_000, 32_000]
const VERSION_DIVISORS: Readonly<Record<number, number>> = { 3: 1, 2: 2, 0: 4 }
const LAYERS: Readonly<Record<number, 1 | 2 | 3>> = { 3: 1, 2: 2, 1: 3 }

/** Reads a frame header; undefined when the four bytes are none (free-format streams count as none). */
function parseFrame(header: Buffer): MpegFrame | undefined {
  if (header.length < 4 || header.readUInt16BE(0) < 0xffe0) return undefined
  const [second, third] = [header.readUInt8(1), header.readUInt8(2)]
  const divisor = VERSION_DIVISORS[(second >> 3) & 3]
  const layer = LAYERS[(second >> 1) & 3]
  const sampleRate = SAMPLE_RATES[(third >> 2) & 3]
  if (divisor === undefined || layer === undefined || sampleRate === undefined) return undefined
  const bitRate = BIT_RATES[divisor === 1 ? 'v1' : 'v2'][layer][(third >> 4) - 1]
  if (bitRate === undefined) return undefined
  const rate = sampleRate / divisor
  const samples = layer === 1 ? 384 : layer === 3 && divisor > 1 ? 576 : 1152
  // A slot is what padding adds: four bytes in layer I, one byte in the others.
  const slotBytes = layer === 1 ? 4 : 1
  const slots = Math.floor((samples * bitRate * 1000) / (8 * slotBytes * rate)) + ((third >> 1) & 1)
  return { layer, bytes: slots * slotBytes, seconds: samples / rate, kind: ((second & 0x1e) << 8) | (third & 0x0c) }
}

const PROGRAM_SCAN_BYTES = 64 * 1024
const PACK_START = Buffer.from([0, 0, 1, 0xba])
const START_CODE = Buffer.from([0, 0, 1])

export function isMpegProgram(head: Buffer): boolean {
  return head.subarray(0, 4).equals(PACK_START)
}

/** A program stream (`.mpeg`): looks for a packet of MPEG audio among its first ones. */
export async function inspectMpegProgram(bytes: ByteWindow): Promise<AudioFacts> {
  const area = await bytes.bytes(0, PROGRAM_SCAN_BYTES)
  for (let at = 0; at !== -1; at = area.indexOf(START_CODE, at + 3)) {
    const stream = area[at + 3] ?? 0
    // 0xC0 to 0xDF carry MPEG audio, 0xBD other kinds of sound.
    if ((stream >= 0xc0 && stream <= 0xdf) || stream === 0xbd) {
      return { container: 'mpeg-program', extension: 'mpeg', contentType: 'audio/mpeg' }
    }
  }
  throw undecodable('the MPEG file has no audio stream')
}

const MAX_TAGS = 16
const SCAN_BYTES = 64 * 1024
const MAX_MISSES = 100_000
const BLOCK_BYTES = 64 * 1024
/** Frames in a row that cannot be there by chance. */
const SCAN_FRAMES = 3
const TRAILING_TAGS = ['TAG', 'APE', 'LYR', 'ID3']
const INFO_TAGS = ['Xing', 'Info', 'VBRI']

/** Where the leading ID3v2 tags end; 0 when there are none. */
export async function endOfId3Tags(bytes: ByteWindow): Promise<number> {
  let position = 0
  for (let count = 0; count < MAX_TAGS; count += 1) {
    const header = await bytes.bytes(position, 10)
    if (header.length < 10 || header.toString('latin1', 0, 3) !== 'ID3') break
    // Four bytes of seven bits each; a footer repeats the header.
    const size = header.subarray(6, 10).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0)
    position += 10 + size + ((header.readUInt8(5) & 0x10) === 0 ? 0 : 10)
  }
  return position
}

/** ADTS streams share the sync word of MPEG audio, with the layer bits at zero. */
export function isAdts(head: Buffer): boolean {
  return head.length >= 2 && head[0] === 0xff && ((head[1] ?? 0) & 0xf6) === 0xf0
}

export function isMpegAudio(head: Buffer): boolean {
  return parseFrame(head) !== undefined
}

/**
 * Looks for frames that follow each other; undefined when there are none. `isExpected`: a tag or the file's name says
 * that they must be there, if not at once.
 */
export async function inspectMpegAudio(bytes: ByteWindow, isExpected: boolean): Promise<AudioFacts | undefined> {
  const frame = (await frameChain(bytes, 0, 1)) ?? (isExpected ? await scanForFrames(bytes) : undefined)
  if (frame === undefined) return undefined
  return { container: 'mpeg-audio', extension: frame.layer === 3 ? 'mp3' : 'mpga', contentType: 'audio/mpeg' }
}

/**
 * Playing time in seconds by walking all frames: for streams of varying bit rate whose encoder left no statistics.
 * Undefined when there is too much between the frames to look through.
 */
export async function secondsOfFrames(bytes: ByteWindow): Promise<number | undefined> {
  let [seconds, misses, position] = [0, 0, 0]
  while (position + 4 <= bytes.size) {
    const block = await bytes.bytes(position, BLOCK_BYTES)
    let at = 0
    while (at + 4 <= block.length) {
      const frame = parseFrame(block.subarray(at, at + 4))
      seconds += frame?.seconds ?? 0
      misses += frame === undefined ? 1 : 0
      at = frame === undefined ? nextSync(block, at) : at + frame.bytes
    }
    if (misses > MAX_MISSES) return undefined
    position += at
  }
  return seconds
}

function nextSync(block: Buffer, at: number): number {
  const found = block.indexOf(0xff, at + 1)
  return found === -1 ? block.length : found
}

// Some writers leave zeros or other bytes between a tag and the first frame.
async function scanForFrames(bytes: ByteWindow): Promise<MpegFrame | undefined> {
  const area = Buffer.from(await bytes.bytes(0, SCAN_BYTES))
  for (let at = area.indexOf(0xff); at !== -1; at = area.indexOf(0xff, at + 1)) {
    if (parseFrame(area.subarray(at, at + 4)) === undefined) continue
    const frame = await frameChain(bytes, at, SCAN_FRAMES)
    if (frame !== undefined) return frame
  }
  return undefined
}

/** The frame at `position` when it is whole and `followers` like it come after it, as far as there is room. */
async function frameChain(bytes: ByteWindow, position: number, followers: number): Promise<MpegFrame | undefined> {
  const first = parseFrame(await bytes.bytes(position, 4))
  if (first === undefined) return undefined
  let [frame, at] = [first, position]
  for (let count = 0; count < followers; count += 1) {
    at += frame.bytes
    const next = await bytes.bytes(at, 4)
    if (at > bytes.size) return undefined
    const isLast = next.length < 4 || TRAILING_TAGS.some((tag) => next.toString('latin1').startsWith(tag))
    if (isLast) return (await isInfoFrame(bytes, at - frame.bytes)) ? undefined : first
    const following = parseFrame(next)
    if (following?.kind !== first.kind) return undefined
    frame = following
  }
  return first
}

// An encoder's first frame may hold its statistics instead of audio.
async function isInfoFrame(bytes: ByteWindow, position: number): Promise<boolean> {
  const text = (await bytes.bytes(position, 48)).toString('latin1')
  return INFO_TAGS.some((tag) => text.includes(tag))
}
