import type { ByteReader } from './byte-reader.js'

const GROUP_CHARACTERS = 4
const GROUP_BYTES = 3

/** Characters judged at once, a multiple of four; what the decoder writes stays in the processor's cache. */
const CHUNK_CHARACTERS = 65_536

/** Overwritten by every check and never read: only how much is written matters. */
const scratch = Buffer.alloc((CHUNK_CHARACTERS / GROUP_CHARACTERS) * GROUP_BYTES)

/** Base64 text that is never decoded as a whole: its bytes are counted, and read in the places that are asked for. */
export class Base64Payload implements ByteReader {
  constructor(private readonly text: string) {}

  /** By length and padding alone. */
  get byteLength(): number {
    return decodedLength(this.text)
  }

  read(position: number, length: number): Buffer {
    const firstGroup = Math.floor(position / GROUP_BYTES)
    const endGroup = Math.ceil((position + length) / GROUP_BYTES)
    const window = this.text.slice(firstGroup * GROUP_CHARACTERS, endGroup * GROUP_CHARACTERS)
    const start = position - firstGroup * GROUP_BYTES
    return Buffer.from(window, 'base64').subarray(start, start + length)
  }

  /**
   * Whether the text is base64 of RFC 4648 section 4: its alphabet, padded to whole groups, nothing else. The platform's
   * decoder looks at many characters per step (an expression takes eighty times as long) but forgives what it does not
   * know: a forgiven character leaves fewer bytes than the length promises; the URL alphabet, and characters that it
   * would mistake for others by their low byte, are looked for.
   */
  isStrict(): boolean {
    if (this.text.length % GROUP_CHARACTERS !== 0) return false
    for (let position = 0; position < this.text.length; position += CHUNK_CHARACTERS) {
      const chunk = this.text.slice(position, position + CHUNK_CHARACTERS)
      const isLast = position + CHUNK_CHARACTERS >= this.text.length
      if (scratch.write(chunk, 'base64') !== (isLast ? decodedLength(chunk) : scratch.length)) return false
      if (chunk.includes('-') || chunk.includes('_') || Buffer.byteLength(chunk) !== chunk.length) return false
    }
    return true
  }
}

function decodedLength(text: string): number {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return Math.floor(text.length / GROUP_CHARACTERS) * GROUP_BYTES - padding
}
