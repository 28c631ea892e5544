/**
 * Reads one HTTP/1.1 answer at a time out of the bytes of a connection. It exists because a driver that shares two
 * cores with what it measures must cost little: no header objects, no streams, bodies are counted and not copied.
 */
const HEAD = 0
const FIXED = 1
const CHUNK_SIZE = 2
const CHUNK = 3
const CHUNK_END = 4
const TRAILER = 5
const DONE = 6

export class ResponseParser {
  #state = DONE
  #head = ''
  #remaining = 0
  #lineLength = 0
  #onBody
  status = 0
  bodyBytes = 0

  /** Status line and headers of the answer, with the empty line after them. */
  get head() {
    return this.#head
  }

  /** Makes ready for the next answer. `onBody(buffer, start, end)` sees body bytes without the chunk framing. */
  begin(onBody) {
    this.#state = HEAD
    this.#head = ''
    this.#onBody = onBody
    this.status = 0
    this.bodyBytes = 0
  }

  /** Takes `length` bytes of `buffer`; true when the answer is complete. Throws on bytes that belong to no answer. */
  feed(buffer, length) {
    let at = 0
    while (at < length) {
      if (this.#state === HEAD) at = this.#readHead(buffer, at, length)
      else if (this.#state === FIXED || this.#state === CHUNK) at = this.#readBody(buffer, at, length)
      else if (this.#state === CHUNK_SIZE) at = this.#readSize(buffer, at, length)
      else if (this.#state === CHUNK_END) at = this.#skipLineEnd(at, length)
      else if (this.#state === TRAILER) at = this.#readTrailer(buffer, at, length)
      else throw new Error('bytes after the end of an answer')
    }
    return this.#state === DONE
  }

  #readHead(buffer, at, length) {
    this.#head += buffer.latin1Slice(at, length)
    const end = this.#head.indexOf('\r\n\r\n')
    if (end === -1) return length
    const unread = this.#head.length - end - 4
    const head = this.#head.slice(0, end)
    this.status = Number(head.slice(9, 12))
    const fixed = /\r\ncontent-length: *(\d+)/i.exec(head)
    if (fixed) this.#expectFixed(Number(fixed[1]))
    else if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.#expectChunk()
    else throw new Error(`answer ${this.status} has neither a length nor chunks`)
    return length - unread
  }

  #expectFixed(bytes) {
    this.#remaining = bytes
    this.#state = bytes === 0 ? DONE : FIXED
  }

  #expectChunk() {
    this.#remaining = 0
    this.#state = CHUNK_SIZE
  }

  #readBody(buffer, at, length) {
    const end = Math.min(length, at + this.#remaining)
    this.#remaining -= end - at
    this.bodyBytes += end - at
    this.#onBody?.(buffer, at, end)
    if (this.#remaining > 0) return end
    if (this.#state === FIXED) this.#state = DONE
    else {
      this.#state = CHUNK_END
      this.#remaining = 2
    }
    return end
  }

  #readSize(buffer, at, length) {
    for (let index = at; index < length; index++) {
      const byte = buffer[index]
      if (byte === 10) {
        this.#state = this.#remaining === 0 ? TRAILER : CHUNK
        this.#lineLength = 0
        return index + 1
      }
      if (byte !== 13) this.#remaining = this.#remaining * 16 + hexDigit(byte)
    }
    return length
  }

  #skipLineEnd(at, length) {
    const skipped = Math.min(this.#remaining, length - at)
    this.#remaining -= skipped
    if (this.#remaining === 0) this.#expectChunk()
    return at + skipped
  }

  #readTrailer(buffer, at, length) {
    for (let index = at; index < length; index++) {
      if (buffer[index] === 10) {
        if (this.#lineLength === 0) {
          this.#state = DONE
          return index + 1
        }
        this.#lineLength = 0
      } else if (buffer[index] !== 13) this.#lineLength += 1
    }
    return length
  }
}

function hexDigit(byte) {
  const digit = byte >= 48 && byte <= 57 ? byte - 48 : (byte | 32) - 87
  if (digit < 0 || digit > 15) throw new Error('malformed chunk size')
  return digit
}
