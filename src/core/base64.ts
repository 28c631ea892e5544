const GROUP_CHARACTERS = 4
const GROUP_BYTES = 3

export const BASE64_BYTES_PER_CHARACTER = GROUP_BYTES / GROUP_CHARACTERS

/** Characters decoded at once, whole groups; the decoder's output stays in the processor's cache. */
const CHUNK_CHARACTERS = 65_536

/** Overwritten by every check and never read: only the number of written bytes matters. */
const scratch = Buffer.alloc(CHUNK_CHARACTERS * BASE64_BYTES_PER_CHARACTER)

/** Text that is read piece by piece; strings are such a text. */
export interface Text {
  readonly length: number
  slice(start: number, end?: number): string
}

/** Text in the bytes `[start, end)` of a buffer, one character per byte, without a string of its whole length. */
export class TextSpan implements Text {
  constructor(
    private readonly bytes: Buffer,
    private readonly start: number,
    private readonly end: number,
  ) {}

  get length(): number {
    return this.end - this.start
  }

  slice(start: number, end = this.length): string {
    return this.bytes.toString('latin1', this.start + start, this.start + Math.min(end, this.length))
  }
}

/** Bytes that the base64 text stands for, by its length and padding alone. */
export function decodedLength(base64: Text): number {
  const tail = base64.slice(Math.max(0, base64.length - 2))
  const padding = tail === '==' ? 2 : tail.endsWith('=') ? 1 : 0
  return Math.floor(base64.length / GROUP_CHARACTERS) * GROUP_BYTES - padding
}

/**
 * Whether the text is base64 of RFC 4648 section 4: its alphabet, padded to whole groups, nothing else. The platform's
 * decoder checks many characters per step (a regular expression takes eighty times as long) but skips unknown ones: a
 * skipped character leaves fewer bytes than the length promises. The URL alphabet, and characters that the decoder
 * mistakes for others by their low byte, are searched for.
 */
export function isStrictBase64(text: Text): boolean {
  if (text.length % GROUP_CHARACTERS !== 0) return false
  for (let position = 0; position < text.length; position += CHUNK_CHARACTERS) {
    const chunk = text.slice(position, position + CHUNK_CHARACTERS)
    const isLast = position + CHUNK_CHARACTERS >= text.length
    if (scratch.write(chunk, 'base64') !== (isLast ? decodedLength(chunk) : scratch.length)) return false
    if (chunk.includes('-') || chunk.includes('_') || Buffer.byteLength(chunk) !== chunk.length) return false
  }
  return true
}
