import { undecodable, type AudioFacts } from './audio-facts.js'
import type { ByteWindow } from './byte-window.js'

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
