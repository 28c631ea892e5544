import { createCrc } from './crc.js'

/** Opus counts time in samples of a 48 kHz clock whatever the source rate (RFC 7845 section 4). */
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
