import { undecodable, type AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'

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
