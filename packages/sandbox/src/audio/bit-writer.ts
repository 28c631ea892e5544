/** Collects values of any number of bits, highest bit first, into bytes. */
export class BitWriter {
  private readonly bytes: number[] = []
  private partialByte = 0
  private partialBits = 0

  /** Appends the lowest `bits` (0 to 32) bits of a value; negative values go in two's complement. */
  write(value: number, bits: number): void {
    for (let bit = bits - 1; bit >= 0; bit -= 1) this.writeBit((value >>> bit) & 1)
  }

  /** Appends `count` zero bits and a one: the unary code of Rice coding. */
  writeUnary(count: number): void {
    for (let zero = 0; zero < count; zero += 1) this.writeBit(0)
    this.writeBit(1)
  }

  /** Fills the last byte with zero bits and returns everything written. */
  finish(): Buffer {
    while (this.partialBits > 0) this.writeBit(0)
    return Buffer.from(this.bytes)
  }

  private writeBit(bit: number): void {
    this.partialByte = (this.partialByte << 1) | bit
    this.partialBits += 1
    if (this.partialBits < 8) return
    this.bytes.push(this.partialByte)
    this.partialByte = 0
    this.partialBits = 0
  }
}
