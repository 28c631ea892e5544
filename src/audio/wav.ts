import { notAudio, undecodable, type AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'

const MAX_CHUNKS = 256
/** Sizes of a chunk whose writer did not know its length, as streaming writers leave them. */
const UNKNOWN_SIZE = 0xffff_ffff
const UNCOMPRESSED: ReadonlySet<number> = new Set([0x0001, 0x0003, 0x0006, 0x0007, 0xfffe])

interface WaveFormat {
  readonly bytesPerSecond: number
  readonly blockBytes: number
}

export function isRiff(head: Buffer): boolean {
  return ['RIFF', 'RF64', 'BW64'].includes(head.toString('latin1', 0, 4))
}

/** Walks the chunks of a RIFF file. The duration comes from the bytes that are really there, not from the header. */
export async function inspectWav(bytes: ByteWindow): Promise<AudioFacts> {
  const head = await bytes.bytes(0, 12)
  if (head.length === 12 && head.toString('latin1', 8) !== 'WAVE') throw notAudio()
  let format: WaveFormat | undefined
  let position = 12
  for (let count = 0; count < MAX_CHUNKS; count += 1) {
    const header = await bytes.bytes(position, 8)
    if (header.length < 8) throw undecodable('the WAV file has no data chunk')
    const [id, size] = [header.toString('latin1', 0, 4), header.readUInt32LE(4)]
    const content = position + 8
    if (id === 'fmt ') format = readFormat(await bytes.bytes(content, 16))
    if (id === 'data') return factsOf(format, dataBytes(size, bytes.size - content))
    // Chunks begin at even positions.
    position = content + size + (size % 2)
  }
  throw undecodable('the WAV file has no data chunk')
}

function readFormat(chunk: Buffer): WaveFormat {
  if (chunk.length < 16) throw undecodable('the WAV header is cut off')
  const [tag, channels, sampleRate] = [chunk.readUInt16LE(0), chunk.readUInt16LE(2), chunk.readUInt32LE(4)]
  const blockBytes = chunk.readUInt16LE(12)
  const bytesPerSecond = UNCOMPRESSED.has(tag) ? sampleRate * blockBytes : chunk.readUInt32LE(8)
  if (channels === 0 || sampleRate === 0 || blockBytes === 0) throw undecodable('the WAV header describes no audio')
  return { bytesPerSecond, blockBytes }
}

function dataBytes(declared: number, present: number): number {
  return declared === UNKNOWN_SIZE ? present : Math.min(declared, present)
}

function factsOf(format: WaveFormat | undefined, audioBytes: number): AudioFacts {
  if (format === undefined) throw undecodable('the WAV file has no format chunk')
  if (audioBytes < format.blockBytes) throw undecodable('the WAV file holds no audio data')
  const facts = { container: 'wav', extension: 'wav', contentType: 'audio/wav' } as const
  if (format.bytesPerSecond === 0) return facts
  return { ...facts, durationSeconds: audioBytes / format.bytesPerSecond }
}
