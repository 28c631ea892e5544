export const BASE64_BYTES_PER_CHARACTER = 3 / 4

/** Characters decoded at once, a multiple of four; the decoder's output stays in the processor's cache. */
const CHUNK_CHARACTERS = 65_536

const PADDING = 0x3d

/** Overwritten by every check and never read: only how much is written matters. */
const scratch = Buffer.alloc((CHUNK_CHARACTERS / 4) * 3)

/** The bytes that the base64 text `[start, end)` stands for. */
export function decodedLength(bytes: Buffer, start: number, end: number): number {
  const padding = bytes[end - 1] !== PADDING || end === start ? 0 : bytes[end - 2] === PADDING ? 2 : 1
  return Math.floor((end - start) / 4) * 3 - padding
}

/**
 * Whether the bytes `[start, end)` are base64 of RFC 4648 section 4: its alphabet, padded to whole groups, nothing
 * else. The platform's decoder looks at many characters per step but forgives what it does not know; a forgiven
 * character leaves fewer bytes than the length promises, and the URL alphabet, which it takes as well, is searched for.
 */
export function isStrictBase64(bytes: Buffer, start: number, end: number): boolean {
  if ((end - start) % 4 !== 0) return false
  for (let position = start; position < end; position += CHUNK_CHARACTERS) {
    const until = Math.min(end, position + CHUNK_CHARACTERS)
    const chunk = bytes.toString('latin1', position, until)
    const isLast = until === end
    const promised = isLast ? decodedLength(bytes, position, until) : scratch.length
    if (scratch.write(chunk, 'base64') !== promised) return false
    if (chunk.includes('-') || chunk.includes('_')) return false
  }
  return true
}
