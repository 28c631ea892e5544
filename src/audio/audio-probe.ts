import { parseBlob } from 'music-metadata'
import type { ByteWindow } from './byte-window.js'

const TIME_LIMIT_MS = 1000
/** Only the last page of an Ogg file tells its length. In MPEG audio the library's scan is slow; frames are counted elsewhere. */
const NEEDS_FULL_SCAN: ReadonlySet<string> = new Set(['audio/ogg'])
/** The library reads tables in one piece as long as the file says they are. */
const MAX_READ_BYTES = 4 * 1024 * 1024

/**
 * How long the audio is, in seconds, as far as the file tells within the time limit. Never throws: a file the library
 * cannot read may still be read upstream.
 */
export async function durationOf(
  bytes: ByteWindow,
  contentType: string,
  timeLimitMs = TIME_LIMIT_MS,
): Promise<number | undefined> {
  try {
    const blob = new WindowBlob(bytes, contentType, { start: 0, end: bytes.size }, performance.now() + timeLimitMs)
    const { format } = await parseBlob(blob, { duration: NEEDS_FULL_SCAN.has(contentType), skipCovers: true })
    return format.duration !== undefined && Number.isFinite(format.duration) && format.duration > 0
      ? format.duration
      : undefined
  } catch {
    return undefined
  }
}

/** A blob whose bytes stay in the spool. Every read of the library passes here, so here its time ends. */
class WindowBlob extends Blob {
  override readonly size: number
  readonly #bytes: ByteWindow
  readonly #range: { readonly start: number; readonly end: number }
  readonly #deadlineMs: number

  constructor(
    bytes: ByteWindow,
    type: string,
    range: { readonly start: number; readonly end: number },
    deadlineMs: number,
  ) {
    super([], { type })
    this.size = range.end - range.start
    this.#bytes = bytes
    this.#range = range
    this.#deadlineMs = deadlineMs
  }

  override slice(start = 0, end = this.size): Blob {
    const range = { start: this.#range.start + start, end: Math.min(this.#range.start + end, this.#range.end) }
    return new WindowBlob(this.#bytes, this.type, range, this.#deadlineMs)
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    if (this.size > MAX_READ_BYTES || performance.now() > this.#deadlineMs)
      throw new Error('the file takes too much to read')
    return new Uint8Array(await this.#bytes.bytes(this.#range.start, this.size)).buffer
  }
}
