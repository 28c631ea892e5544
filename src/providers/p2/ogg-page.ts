/** Pages of Ogg (RFC 3533 section 6), kept as their bytes. */

const HEADER_BYTES = 27
const LARGEST_PAGE_BYTES = HEADER_BYTES + 255 + 255 * 255
const FULL_SEGMENT = 255
const AT_FLAGS = 5
const AT_GRANULE_POSITION = 6
const AT_SERIAL = 14
const AT_SEQUENCE = 18
const AT_CHECKSUM = 22
const AT_SEGMENT_COUNT = 26

export const CONTINUED = 0x01
export const BEGINS_STREAM = 0x02
export const ENDS_STREAM = 0x04
/** The granule position of a page on which no packet ends. */
export const NO_POSITION = 0xffffffffffffffffn

/** What a joined stream changes on a page. */
export interface PageHeader {
  readonly flags: number
  readonly granulePosition: bigint
  readonly serial: number
  readonly sequence: number
}

/** A packet, or as much of it as the page holds. */
export interface PagePacket {
  readonly bytes: Buffer
  /** It goes on on the next page. */
  readonly isOpen: boolean
}

export function readPageHeader(page: Buffer): PageHeader {
  return {
    flags: page.readUInt8(AT_FLAGS),
    granulePosition: page.readBigUInt64LE(AT_GRANULE_POSITION),
    serial: page.readUInt32LE(AT_SERIAL),
    sequence: page.readUInt32LE(AT_SEQUENCE),
  }
}

/** Changes the page in place, its checksum too. */
export function writePageHeader(page: Buffer, { flags, granulePosition, serial, sequence }: PageHeader): Buffer {
  page.writeUInt8(flags, AT_FLAGS)
  page.writeBigUInt64LE(granulePosition, AT_GRANULE_POSITION)
  page.writeUInt32LE(serial, AT_SERIAL)
  page.writeUInt32LE(sequence, AT_SEQUENCE)
  page.writeUInt32LE(0, AT_CHECKSUM)
  page.writeUInt32LE(checksum(page), AT_CHECKSUM)
  return page
}

/** A page without any segment, for what only a header can say. */
export function emptyPage(header: PageHeader): Buffer {
  const page = Buffer.alloc(HEADER_BYTES)
  page.write('OggS', 'latin1')
  return writePageHeader(page, header)
}

export function pagePackets(page: Buffer): PagePacket[] {
  const packets: PagePacket[] = []
  const segments = page.readUInt8(AT_SEGMENT_COUNT)
  let start = HEADER_BYTES + segments
  let end = start
  for (let segment = 0; segment < segments; segment++) {
    const length = page.readUInt8(HEADER_BYTES + segment)
    end += length
    const isOpen = length === FULL_SEGMENT
    if (isOpen && segment < segments - 1) continue
    packets.push({ bytes: page.subarray(start, end), isOpen })
    start = end
  }
  return packets
}

/** Finds pages in bytes that arrive cut anywhere; holds one unfinished page at most. */
export class OggPageReader {
  private readonly page = Buffer.allocUnsafe(LARGEST_PAGE_BYTES)
  private filled = 0
  /** The page's length as far as it can be told from what is there. */
  private known = HEADER_BYTES

  /** Whether the bytes so far end within a page. */
  get isWithinPage(): boolean {
    return this.filled > 0
  }

  /** The pages that `chunk` completes, each a copy of its own; stops with undefined where no page begins. */
  *read(chunk: Buffer): Generator<Buffer | undefined, void, undefined> {
    for (let taken = 0; taken < chunk.length;) {
      const copied = chunk.copy(this.page, this.filled, taken, taken + this.known - this.filled)
      this.filled += copied
      taken += copied
      // The length of a page becomes known in three steps: its header, its segment table, its content.
      if (this.filled === this.known) this.known = this.knownLength()
      if (this.filled >= HEADER_BYTES && this.page.toString('latin1', 0, 4) !== 'OggS') return yield undefined
      if (this.filled < this.known) continue
      yield Buffer.from(this.page.subarray(0, this.filled))
      this.filled = 0
      this.known = HEADER_BYTES
    }
  }

  private knownLength(): number {
    const content = HEADER_BYTES + this.page.readUInt8(AT_SEGMENT_COUNT)
    if (this.filled < content) return content
    return this.page.subarray(HEADER_BYTES, content).reduce((length, segment) => length + segment, content)
  }
}

/** CRC-32 from the highest bit down, starting at zero, inverting nothing. */
const POLYNOMIAL = 0x04c11db7
const REMAINDERS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte << 24
  for (let bit = 0; bit < 8; bit++) remainder = remainder < 0 ? (remainder << 1) ^ POLYNOMIAL : remainder << 1
  return remainder
})

function checksum(bytes: Buffer): number {
  let remainder = 0
  for (const byte of bytes) remainder = (remainder << 8) ^ (REMAINDERS[(remainder >>> 24) ^ byte] ?? 0)
  return remainder >>> 0
}
