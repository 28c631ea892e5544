import { createHash, type Hash } from 'node:crypto'

import { parseDisposition } from './multipart-disposition.js'
import { TailBytes } from './tail-bytes.js'

/** One part of a multipart body, in the order received. Content is hashed while it streams, not collected. */
export interface ReceivedPart {
  readonly name: string
  /** The base name; undefined when the part had no filename. */
  readonly filename: string | undefined
  readonly contentType: string | undefined
  readonly rawDisposition: string
  readonly size: number
  /** Hexadecimal SHA-1 of the content. */
  readonly sha1: string
  /** The content as UTF-8 text; undefined for a part with a filename. */
  readonly value: string | undefined
  /** The first 64 KiB of the content. */
  readonly head: Buffer
  /** The last 64 KiB of the content. */
  readonly tail: Buffer
  /** Where the content begins in the whole body, in bytes. */
  readonly offset: number
}

/** The body breaks RFC 7578 or its framing; `message` says where. */
export class MultipartError extends Error {}

const HEAD_BYTES = 64 * 1024
const TAIL_BYTES = 64 * 1024
const MAX_PART_HEADER_BYTES = 16 * 1024
const MAX_TEXT_BYTES = 1024 * 1024
const CRLF = '\r\n'

interface OpenPart {
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: string | undefined
  readonly rawDisposition: string
  readonly offset: number
  readonly hash: Hash
  readonly kept: Buffer[]
  readonly tail: TailBytes
  keptBytes: number
  size: number
}

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
    this.#open = this.#openPart(lines)
    this.#state = 'content'
    return true
  }

  #openPart(lines: readonly string[]): OpenPart {
    const headers = new Map<string, string>()
    for (const line of lines) {
      const colon = line.indexOf(':')
      if (colon <= 0 || /[\r\n]/.test(line)) throw new MultipartError(`malformed part header '${line}'`)
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
    }
    const rawDisposition = headers.get('content-disposition')
    if (rawDisposition === undefined) throw new MultipartError('a part has no Content-Disposition')
    const { name, filename } = parseDisposition(rawDisposition)
    if (name === undefined) throw new MultipartError(`no name in Content-Disposition '${rawDisposition}'`)
    return {
      name,
      filename,
      contentType: headers.get('content-type'),
      rawDisposition,
      offset: this.#consumedBytes,
      hash: createHash('sha1'),
      kept: [],
      tail: new TailBytes(TAIL_BYTES),
      keptBytes: 0,
      size: 0,
    }
  }

  #readContent(): boolean {
    const end = this.#pending.indexOf(this.#delimiter)
    if (end < 0) {
      // The tail may be the beginning of a delimiter whose rest is still on the way.
      const safe = this.#pending.length - this.#delimiter.length + 1
      if (safe > 0) this.#addContent(this.#take(safe))
      return false
    }
    this.#addContent(this.#take(end))
    this.#take(this.#delimiter.length)
    this.#closePart()
    this.#state = 'afterDelimiter'
    return true
  }

  #addContent(bytes: Buffer): void {
    const part = this.#open
    if (part === undefined) return
    part.hash.update(bytes)
    part.tail.push(bytes)
    part.size += bytes.length
    const limit = part.filename === undefined ? MAX_TEXT_BYTES : HEAD_BYTES
    if (part.filename === undefined && part.size > limit) throw new MultipartError(`field '${part.name}' is too large`)
    const kept = bytes.subarray(0, Math.max(0, limit - part.keptBytes))
    part.keptBytes += kept.length
    if (kept.length > 0) part.kept.push(Buffer.from(kept))
  }

  #closePart(): void {
    const part = this.#open
    if (part === undefined) return
    const { name, filename, contentType, rawDisposition, size, offset } = part
    const kept = Buffer.concat(part.kept)
    const value = filename === undefined ? kept.toString('utf8') : undefined
    const head = kept.subarray(0, HEAD_BYTES)
    this.parts.push({
      name,
      filename,
      contentType,
      rawDisposition,
      size,
      offset,
      head,
      tail: part.tail.take(),
      value,
      sha1: part.hash.digest('hex'),
    })
    this.#open = undefined
  }

  #readEpilogue(): boolean {
    const text = this.#pending.toString('latin1')
    if (text !== '' && text !== '\r' && text !== CRLF) throw new MultipartError('bytes behind the closing boundary')
    return false
  }
}
