/** The last bytes of a stream, `limit` at most. Memory does not grow with the stream. */
export class TailBytes {
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
