import { MultipartError, OpenPart, type ReceivedPart } from './multipart-part.js'

const MAX_PART_HEADER_BYTES = 16 * 1024
const CRLF = '\r\n'

/**
 * A strict incremental parser: CRLF everywhere, no preamble, a closing delimiter, nothing but a line end behind it.
 * Memory does not grow with the size of the parts.
 */
export class MultipartReader {
  readonly parts: ReceivedPart[] = []
  readonly #dashBoundary: Buffer
  readonly #delimiter: Buffer
  #state: 'first' | 'afterDelimiter' | 'headers' | 'content' | 'epilogue' = 'first'
  #pending: Buffer = Buffer.alloc(0)
  #consumedBytes = 0
  #open: OpenPart | undefined

  constructor(boundary: string) {
    this.#dashBoundary = Buffer.from(`--${boundary}`, 'latin1')
    this.#delimiter = Buffer.from(`${CRLF}--${boundary}`, 'latin1')
  }

  /** Takes the next piece of the body. Throws MultipartError. */
  push(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    while (this.#step());
  }

  /** Must be called at the end of the body. Throws MultipartError when the closing delimiter is missing. */
  finish(): readonly ReceivedPart[] {
    if (this.#state !== 'epilogue') throw new MultipartError(`unexpected end of body while reading ${this.#state}`)
    return this.parts
  }

  #step(): boolean {
    switch (this.#state) {
      case 'first':
        return this.#readFirst()
      case 'afterDelimiter':
        return this.#readAfterDelimiter()
      case 'headers':
        return this.#readHeaders()
      case 'content':
        return this.#readContent()
      case 'epilogue':
        return this.#readEpilogue()
    }
  }

  #take(bytes: number): Buffer {
    const taken = this.#pending.subarray(0, bytes)
    this.#pending = this.#pending.subarray(bytes)
    this.#consumedBytes += bytes
    return taken
  }

  #readFirst(): boolean {
    if (this.#pending.length < this.#dashBoundary.length) return false
    if (!this.#take(this.#dashBoundary.length).equals(this.#dashBoundary)) {
      throw new MultipartError('the body does not start with the boundary named in Content-Type')
    }
    this.#state = 'afterDelimiter'
    return true
  }

  #readAfterDelimiter(): boolean {
    if (this.#pending.length < 2) return false
    const mark = this.#take(2).toString('latin1')
    if (mark !== CRLF && mark !== '--') throw new MultipartError('a boundary is followed by neither CRLF nor --')
    this.#state = mark === '--' ? 'epilogue' : 'headers'
    return true
  }

  #readHeaders(): boolean {
    const end = this.#pending.indexOf(CRLF + CRLF)
    if (end > MAX_PART_HEADER_BYTES || (end < 0 && this.#pending.length > MAX_PART_HEADER_BYTES)) {
      throw new MultipartError('part headers are too large')
    }
    if (end < 0) return false
    const lines = this.#take(end + 4)
      .toString('utf8')
      .trimEnd()
      .split(CRLF)
    this.#open = new OpenPart(lines, this.#consumedBytes)
    this.#state = 'content'
    return true
  }

  #readContent(): boolean {
    const end = this.#pending.indexOf(this.#delimiter)
    if (end < 0) {
      // The tail may be the beginning of a delimiter whose rest is still on the way.
      const safe = this.#pending.length - this.#delimiter.length + 1
      if (safe > 0) this.#open?.push(this.#take(safe))
      return false
    }
    this.#open?.push(this.#take(end))
    this.#take(this.#delimiter.length)
    if (this.#open !== undefined) this.parts.push(this.#open.finish())
    this.#open = undefined
    this.#state = 'afterDelimiter'
    return true
  }

  #readEpilogue(): boolean {
    const text = this.#pending.toString('latin1')
    if (text !== '' && text !== '\r' && text !== CRLF) throw new MultipartError('bytes behind the closing boundary')
    return false
  }
}
