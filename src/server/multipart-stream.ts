import { contentTypeIn, isFileHead, repairPartHead } from './part-head.js'

const HEAD_END = Buffer.from('\r\n\r\n')
const LINE_END = Buffer.from('\r\n')
const CLOSING = Buffer.from('--')
/** What the parser itself allows. */
const MAX_HEAD_BYTES = 16 * 1024

type State = 'content' | 'head' | 'epilogue'

/**
 * Passes a multipart body on to the parser, with part heads repaired, and counts its parts by their delimiters. The
 * parser passes over a part whose head it cannot use without a word; the difference to the parts it reported tells.
 */
export class MultipartFraming {
  readonly #delimiter: Buffer
  #state: State = 'content'
  /** Not yet passed on: what may be the beginning of a delimiter, or a head. A body starts as if after a line end. */
  #held = LINE_END
  #parts = 0
  #fileType: string | undefined

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  }

  /** Parts begun so far; larger than that after something no sender may write. */
  get parts(): number {
    return this.#parts
  }

  /** The Content-Type of the first file part as it was written; '' without one, undefined before such a part. */
  get fileType(): string | undefined {
    return this.#fileType
  }

  /** Takes the next bytes, in any cut; hands on what can be told by now. */
  push(chunk: Buffer, passOn: (bytes: Buffer) => void): void {
    let bytes = Buffer.concat([this.#held, chunk])
    let passed = -1
    while (passed !== 0 && bytes.length > 0) {
      passed = this.#step(bytes, passOn)
      bytes = bytes.subarray(passed)
    }
    this.#held = Buffer.from(bytes)
  }

  /** The bytes held back at the end of the body. */
  rest(): Buffer {
    return this.#held
  }

  /** Passes on one stretch and returns its length; 0 when more bytes are needed. */
  #step(bytes: Buffer, passOn: (bytes: Buffer) => void): number {
    if (this.#state === 'content') return this.#content(bytes, passOn)
    if (this.#state === 'head') return this.#head(bytes, passOn)
    passOn(bytes)
    return bytes.length
  }

  #content(bytes: Buffer, passOn: (bytes: Buffer) => void): number {
    const found = bytes.indexOf(this.#delimiter)
    if (found !== 0) {
      const length = found === -1 ? Math.max(bytes.length - this.#delimiter.length + 1, 0) : found
      if (length > 0) passOn(bytes.subarray(0, length))
      return length
    }
    const end = this.#delimiter.length + 2
    if (bytes.length < end) return 0
    const after = bytes.subarray(end - 2, end)
    if (after.equals(CLOSING)) this.#state = 'epilogue'
    else this.#begin(after.equals(LINE_END))
    passOn(bytes.subarray(0, end))
    return end
  }

  // The parser has ended the part before in any case: what no sender may write counts twice, so that it shows.
  #begin(wellFormed: boolean): void {
    this.#parts += wellFormed ? 1 : 2
    if (wellFormed) this.#state = 'head'
  }

  #head(bytes: Buffer, passOn: (bytes: Buffer) => void): number {
    const end = bytes.indexOf(HEAD_END)
    if (end === -1 && bytes.length <= MAX_HEAD_BYTES) return 0
    this.#state = 'content'
    const head = bytes.subarray(0, end === -1 ? bytes.length : end + HEAD_END.length)
    if (head.includes(this.#delimiter)) this.#parts += 1
    if (isFileHead(head)) this.#fileType ??= contentTypeIn(head)
    passOn(repairPartHead(head))
    return head.length
  }
}
