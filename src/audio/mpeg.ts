import type { AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'
import { parseFrame, type MpegFrame } from './mpeg-frame.js'

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
