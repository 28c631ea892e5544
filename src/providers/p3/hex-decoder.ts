import { malformedAnswer } from '../../upstream/upstream-response.js'

/** Hexadecimal text to bytes, piece by piece; a pair of digits may be cut in two. */
export class HexDecoder {
  /** The first digit of a pair whose second one has not come yet. */
  private half = ''

  /** The bytes of all pairs that are complete by now. Throws for anything that is not a hexadecimal digit. */
  decode(piece: Buffer): Buffer {
    const digits = this.half + piece.toString('latin1')
    const isEven = digits.length % 2 === 0
    this.half = isEven ? '' : digits.slice(-1)
    const pairs = isEven ? digits : digits.slice(0, -1)
    const bytes = Buffer.from(pairs, 'hex')
    // Node stops at the first character it cannot read and says nothing.
    if (bytes.length * 2 !== pairs.length) throw malformedAnswer('The upstream sent audio that is not hexadecimal.')
    return bytes
  }

  /** Called at the end of the text. Throws when a pair is incomplete. */
  finish(): void {
    if (this.half !== '') throw malformedAnswer('The upstream sent half a byte of audio.')
  }
}
