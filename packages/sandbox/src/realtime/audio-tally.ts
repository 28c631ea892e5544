import { createHash } from 'node:crypto'

/** Hexadecimal digits of a SHA-1 in what the model says. */
const CHECKSUM_DIGITS = 12

/** Audio that went by: how much, and a checksum. The bytes themselves are not kept. */
export class AudioTally {
  bytes = 0
  readonly #hash = createHash('sha1')

  add(audio: Buffer): void {
    this.bytes += audio.length
    this.#hash.update(audio)
  }

  /** The first twelve hexadecimal digits of the SHA-1 of all bytes so far. */
  get checksum(): string {
    return this.#hash.copy().digest('hex').slice(0, CHECKSUM_DIGITS)
  }
}
