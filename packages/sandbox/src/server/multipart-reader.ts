import { createHash } from 'node:crypto'

/** `name` and the base name of `filename` out of a Content-Disposition value; undefined when absent or not form-data. */
export function parseDisposition(value: string): { name: string | undefined; filename: string | undefined } {
  if (!/^form-data\s*(;|$)/i.test(value)) return { name: undefined, filename: undefined }
  const parameters = new Map<string, string>()
  // Clients in the field send quoted values, bare tokens (.NET) and the extended form of RFC 5987.
  for (const match of value.matchAll(/;\s*([\w!#$%&'+.^`|~-]+\*?)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^;"]*))/g)) {
    const key = (match[1] ?? '').toLowerCase()
    if (!parameters.has(key)) parameters.set(key, match[2]?.replaceAll(/\\(["\\])/g, '$1') ?? (match[3] ?? '').trim())
  }
  const filename = extendedValue(parameters.get('filename*')) ?? parameters.get('filename')
  return { name: parameters.get('name'), filename: filename === undefined ? undefined : baseName(filename) }
}

/** The boundary parameter of a multipart Content-Type; undefined when the type is another or the boundary is invalid. */
export function multipartBoundary(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !/^multipart\/form-data\s*;/i.test(contentType)) return undefined
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i.exec(contentType)
  return match?.[1] ?? match?.[2]
}

function extendedValue(value: string | undefined): string | undefined {
  const encoded = value === undefined ? undefined : /^utf-8'[^']*'(.*)$/i.exec(value)?.[1]
  if (encoded === undefined) return undefined
  try {
    return decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}

function baseName(path: string): string {
  return path.split(/[/\\]/).at(-1) ?? path
}

/** The last bytes of a stream, `limit` at most. Memory does not grow with the stream. */
class TailBytes {
  readonly #limit: number
  #pieces: Buffer[] = []
  #keptBytes = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  push(bytes: Buffer): void {
    const last = Buffer.from(bytes.subarray(-this.#limit))
    this.#pieces.push(last)
    this.#keptBytes += last.length
    // Joined now and then, not for each piece: pieces may be single bytes.
    if (this.#keptBytes > 2 * this.#limit) this.#join()
  }

  take(): Buffer {
    return this.#join()
  }

  #join(): Buffer {
    const joined = Buffer.from(Buffer.concat(this.#pieces).subarray(-this.#limit))
    this.#pieces = [joined]
    this.#keptBytes = joined.length
    return joined
  }
}

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
const MAX_TEXT_BYTES = 1024 * 1024

/** A part whose content is still arriving. */
class OpenPart {
  readonly #facts: Pick<ReceivedPart, 'name' | 'filename' | 'contentType' | 'rawDisposition' | 'offset'>
  readonly #hash = createHash('sha1')
  readonly #kept: Buffer[] = []
  readonly #tail = new TailBytes(TAIL_BYTES)
  #keptBytes = 0
  #size = 0

  /** `headerLines` without their line ends; `offset` as in `ReceivedPart`. Throws MultipartError. */
  constructor(headerLines: readonly string[], offset: number) {
    const headers = new Map<string, string>()
    for (const line of headerLines) {
      const colon = line.indexOf(':')
      if (colon <= 0 || /[\r\n]/.test(line)) throw new MultipartError(`malformed part header '${line}'`)
      headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim())
    }
    const rawDisposition = headers.get('content-disposition')
    if (rawDisposition === undefined) throw new MultipartError('a part has no Content-Disposition')
    const { name, filename } = parseDisposition(rawDisposition)
    if (name === undefined) throw new MultipartError(`no name in Content-Disposition '${rawDisposition}'`)
    this.#facts = { name, filename, contentType: headers.get('content-type'), rawDisposition, offset }
  }

  /** Takes the next piece of the content. Throws MultipartError when a text becomes too large. */
  push(bytes: Buffer): void {
    const { name, filename } = this.#facts
    this.#hash.update(bytes)
    this.#tail.push(bytes)
    this.#size += bytes.length
    const limit = filename === undefined ? MAX_TEXT_BYTES : HEAD_BYTES
    if (filename === undefined && this.#size > limit) throw new MultipartError(`field '${name}' is too large`)
    const kept = bytes.subarray(0, Math.max(0, limit - this.#keptBytes))
    this.#keptBytes += kept.length
    if (kept.length > 0) this.#kept.push(Buffer.from(kept))
  }

  /** The part, whose content has ended. */
  finish(): ReceivedPart {
    const kept = Buffer.concat(this.#kept)
    return {
      ...this.#facts,
      size: this.#size,
      head: kept.subarray(0, HEAD_BYTES),
      tail: this.#tail.take(),
      value: this.#facts.filename === undefined ? kept.toString('utf8') : undefined,
      sha1: this.#hash.digest('hex'),
    }
  }
}

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
