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

const FORMAT_CHUNK_BYTES = 16
const PCM_FORMAT_TAG = 1
const BYTES_PER_SAMPLE = 2
/** What a streaming writer puts where the length is not known yet. */
const UNKNOWN_SIZE = 0xffffffff

/** The 44 bytes before the samples of a streamed mono 16-bit WAV file; both sizes say "unknown" (FF FF FF FF). */
export function streamedWavHeader(sampleRate: number): Buffer {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(UNKNOWN_SIZE, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(FORMAT_CHUNK_BYTES, 16)
  header.writeUInt16LE(PCM_FORMAT_TAG, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(sampleRate, 24)
  header.writeUInt32LE(sampleRate * BYTES_PER_SAMPLE, 28)
  header.writeUInt16LE(BYTES_PER_SAMPLE, 32)
  header.writeUInt16LE(BYTES_PER_SAMPLE * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(UNKNOWN_SIZE, 40)
  return header
}

/** Opus counts time in samples of a 48 kHz clock for any source rate (RFC 7845 section 4). */
const SAMPLES_PER_PACKET = 960
const PACKETS_PER_PAGE = 6
const SERIAL_NUMBER = 0x53414e44
const FIRST_PAGE = 0x02
const LAST_PAGE = 0x04
const PAGE_HEADER_BYTES = 27
const MAXIMUM_LACING_VALUE = 255
const oggCrc = createCrc(32, 0x04c11db7)

/**
 * Wraps mono Opus packets of 20 ms into Ogg pages (RFC 3533, RFC 7845): the head page, the tags page, then one page for
 * every six packets (120 ms), the last one marked as the end of the stream. The first packet is for the decoder to come
 * to rest and is not heard (pre-skip). Packets are shorter than 10,000 bytes.
 */
export function* writeOggOpus(packets: Iterable<Buffer>, sourceSampleRate: number): Generator<Buffer, void, undefined> {
  yield oggPage([opusHead(sourceSampleRate)], 0, 0, FIRST_PAGE)
  yield oggPage([opusTags()], 1, 0, 0)
  let sequence = 2
  let granulePosition = 0
  let waiting: Buffer[] = []
  for (const packet of packets) {
    if (waiting.length === PACKETS_PER_PAGE) {
      yield oggPage(waiting, sequence, granulePosition, 0)
      sequence += 1
      waiting = []
    }
    waiting.push(packet)
    granulePosition += SAMPLES_PER_PACKET
  }
  yield oggPage(waiting, sequence, granulePosition, LAST_PAGE)
}

/** RFC 7845 section 5.1; the pre-skip makes players drop the first packet. */
function opusHead(sourceSampleRate: number): Buffer {
  const head = Buffer.alloc(19)
  head.write('OpusHead', 0, 'latin1')
  head.writeUInt8(1, 8)
  head.writeUInt8(1, 9)
  head.writeUInt16LE(SAMPLES_PER_PACKET, 10)
  head.writeUInt32LE(sourceSampleRate, 12)
  return head
}

/** RFC 7845 section 5.2: the vendor string and an empty list of comments. */
function opusTags(): Buffer {
  const vendor = Buffer.from('multi-model-gateway sandbox', 'latin1')
  const vendorLength = Buffer.alloc(4)
  vendorLength.writeUInt32LE(vendor.length)
  return Buffer.concat([Buffer.from('OpusTags', 'latin1'), vendorLength, vendor, Buffer.alloc(4)])
}

function oggPage(packets: readonly Buffer[], sequence: number, granulePosition: number, flags: number): Buffer {
  const lacing = packets.flatMap((packet) => lacingValues(packet.length))
  const header = Buffer.alloc(PAGE_HEADER_BYTES)
  header.write('OggS', 0, 'latin1')
  header.writeUInt8(flags, 5)
  header.writeBigUInt64LE(BigInt(granulePosition), 6)
  header.writeUInt32LE(SERIAL_NUMBER, 14)
  header.writeUInt32LE(sequence, 18)
  header.writeUInt8(lacing.length, 26)
  const page = Buffer.concat([header, Buffer.from(lacing), ...packets])
  // The checksum covers the page with its own field still zero.
  page.writeUInt32LE(oggCrc(page), 22)
  return page
}

/** A packet's length as full segments of 255 and one shorter segment that ends it, which may be empty. */
function lacingValues(packetBytes: number): number[] {
  const full = new Array<number>(Math.floor(packetBytes / MAXIMUM_LACING_VALUE)).fill(MAXIMUM_LACING_VALUE)
  return [...full, packetBytes % MAXIMUM_LACING_VALUE]
}
