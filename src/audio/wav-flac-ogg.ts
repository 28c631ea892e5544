import { type AudioFacts, type ByteWindow, notAudio, undecodable } from './audio-facts.js'

const MAX_BLOCKS = 256
const STREAM_INFO_BYTES = 34

/** Walks the metadata blocks to the first frame. */
export async function inspectFlac(bytes: ByteWindow): Promise<AudioFacts> {
  let position = 4
  for (let count = 0; count < MAX_BLOCKS; count += 1) {
    const header = await bytes.bytes(position, 4)
    if (header.length < 4) break
    const [flags, length] = [header.readUInt8(0), header.readUIntBE(1, 3)]
    if (count === 0 && ((flags & 0x7f) !== 0 || length !== STREAM_INFO_BYTES)) break
    position += 4 + length
    if ((flags & 0x80) !== 0) {
      await requireFrame(bytes, position)
      return { container: 'flac', extension: 'flac', contentType: 'audio/flac' }
    }
  }
  throw undecodable('the FLAC metadata is broken')
}

async function requireFrame(bytes: ByteWindow, position: number): Promise<void> {
  const frame = await bytes.bytes(position, 6)
  // Fourteen sync bits, one reserved bit, one bit for the blocking strategy.
  if (frame.length < 6 || (frame.readUInt16BE(0) & 0xfffe) !== 0xfff8) throw undecodable('the FLAC file holds no frame')
}

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

const MAX_PAGES = 8192
const PAGE_HEADER_BYTES = 27
const BEGINNING_OF_STREAM = 0x02
/** How a stream's first packet begins, and how many packets come before its audio. */
const AUDIO_CODECS = [
  { magic: 'OpusHead', headerPackets: 2 },
  { magic: '\u0001vorbis', headerPackets: 3 },
  { magic: '\u007fFLAC', headerPackets: 2 },
  { magic: 'Speex   ', headerPackets: 2 },
] as const

interface OggPage {
  readonly beginsStream: boolean
  readonly serial: number
  /** Packets that end on this page. */
  readonly packets: number
  readonly content: number
  readonly end: number
}

/** Looks for a packet of audio after the header packets of an audio stream. */
export async function inspectOgg(bytes: ByteWindow): Promise<AudioFacts> {
  const packetsToAudio = new Map<number, number>()
  let position = 0
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const page = await readPage(bytes, position)
    if (page === undefined) break
    if (page.beginsStream) {
      const codec = await codecAt(bytes, page.content)
      if (codec !== undefined) packetsToAudio.set(page.serial, codec.headerPackets)
    }
    const missing = packetsToAudio.get(page.serial)
    if (missing !== undefined && page.packets > missing) {
      return { container: 'ogg', extension: 'ogg', contentType: 'audio/ogg' }
    }
    if (missing !== undefined) packetsToAudio.set(page.serial, missing - page.packets)
    position = page.end
  }
  throw undecodable('the Ogg file holds no audio')
}

async function codecAt(bytes: ByteWindow, position: number): Promise<(typeof AUDIO_CODECS)[number] | undefined> {
  const text = (await bytes.bytes(position, 8)).toString('latin1')
  return AUDIO_CODECS.find(({ magic }) => text.startsWith(magic))
}

async function readPage(bytes: ByteWindow, position: number): Promise<OggPage | undefined> {
  const header = await bytes.bytes(position, PAGE_HEADER_BYTES + 255)
  if (header.length < PAGE_HEADER_BYTES || header.toString('latin1', 0, 4) !== 'OggS') return undefined
  const lacing = header.subarray(PAGE_HEADER_BYTES, PAGE_HEADER_BYTES + header.readUInt8(26))
  const content = position + PAGE_HEADER_BYTES + lacing.length
  // A cut last page still counts when some of its content is there.
  if (content >= bytes.size && lacing.some((length) => length > 0)) return undefined
  return {
    beginsStream: (header.readUInt8(5) & BEGINNING_OF_STREAM) !== 0,
    serial: header.readUInt32LE(14),
    packets: lacing.filter((length) => length < 255).length,
    content,
    end: content + lacing.reduce((sum, length) => sum + length, 0),
  }
}
