/**
 * Makes a checksum function for a CRC of 8 to 32 bits that runs from the highest bit down, starts at zero and inverts
 * nothing: the form FLAC (8 and 16 bits) and Ogg (32 bits) use.
 */
export function createCrc(bits: number, polynomial: number): (bytes: Uint8Array) => number {
  const mask = bits === 32 ? 0xffffffff : (1 << bits) - 1
  const topBit = 1 << (bits - 1)
  const table = Int32Array.from({ length: 256 }, (_, byte) => {
    let remainder = byte << (bits - 8)
    for (let bit = 0; bit < 8; bit += 1) {
      remainder = (remainder & topBit) === 0 ? remainder << 1 : (remainder << 1) ^ polynomial
    }
    return remainder & mask
  })
  return (bytes) => {
    let crc = 0
    for (let index = 0; index < bytes.length; index += 1) {
      crc = ((crc << 8) ^ (table[((crc >>> (bits - 8)) ^ (bytes[index] ?? 0)) & 0xff] ?? 0)) & mask
    }
    return crc >>> 0
  }
}
