/** CRC of `bits` bits (8 to 32) with this polynomial, highest bit first, beginning at zero: the form Ogg and FLAC use. */
export function checksum(bytes: Buffer, bits: number, polynomial: number): number {
  const table = tableOf(bits, polynomial)
  const mask = 0xffffffff >>> (32 - bits)
  let crc = 0
  for (const byte of bytes) {
    const index = ((crc >>> (bits - 8)) ^ byte) & 0xff
    crc = (((bits === 8 ? 0 : crc << 8) ^ (table[index] ?? 0)) & mask) >>> 0
  }
  return crc
}

const tables = new Map<string, Uint32Array>()

function tableOf(bits: number, polynomial: number): Uint32Array {
  const key = `${bits}/${polynomial}`
  const known = tables.get(key)
  if (known !== undefined) return known
  const top = 2 ** (bits - 1)
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = (byte << (bits - 8)) >>> 0
    for (let step = 0; step < 8; step += 1) crc = ((crc & top) !== 0 ? (crc << 1) ^ polynomial : crc << 1) >>> 0
    return crc
  })
  tables.set(key, table)
  return table
}
