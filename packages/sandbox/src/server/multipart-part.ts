import { createHash } from 'node:crypto'

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
const MAX_TEXT_BYTES = 1024 * 1024

/** A part whose content is still arriving. */
export class OpenPart {
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
