import type { GatewayError } from '../../core/errors.js'
import { malformedResponse } from '../../upstream/upstream-response.js'

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

const CONTINUED = 0x01
const BEGINS_STREAM = 0x02
const ENDS_STREAM = 0x04
/** The granule position of a page on which no packet ends. */
const NO_POSITION = 0xffffffffffffffffn

/** What a joined stream changes on a page. */
interface PageHeader {
  readonly flags: number
  readonly granulePosition: bigint
  readonly serial: number
  readonly sequence: number
}

/** A packet, or as much of it as the page holds. */
interface PagePacket {
  readonly bytes: Buffer
  /** It goes on on the next page. */
  readonly isOpen: boolean
}

function readPageHeader(page: Buffer): PageHeader {
  return {
    flags: page.readUInt8(AT_FLAGS),
    granulePosition: page.readBigUInt64LE(AT_GRANULE_POSITION),
    serial: page.readUInt32LE(AT_SERIAL),
    sequence: page.readUInt32LE(AT_SEQUENCE),
  }
}

/** Changes the page in place, its checksum too. */
function writePageHeader(page: Buffer, { flags, granulePosition, serial, sequence }: PageHeader): Buffer {
  page.writeUInt8(flags, AT_FLAGS)
  page.writeBigUInt64LE(granulePosition, AT_GRANULE_POSITION)
  page.writeUInt32LE(serial, AT_SERIAL)
  page.writeUInt32LE(sequence, AT_SEQUENCE)
  page.writeUInt32LE(0, AT_CHECKSUM)
  page.writeUInt32LE(checksum(page), AT_CHECKSUM)
  return page
}

/** A page without any segment, for what only a header can say. */
function emptyPage(header: PageHeader): Buffer {
  const page = Buffer.alloc(HEADER_BYTES)
  page.write('OggS', 'latin1')
  return writePageHeader(page, header)
}

function pagePackets(page: Buffer): PagePacket[] {
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
class OggPageReader {
  private readonly page = Buffer.allocUnsafe(LARGEST_PAGE_BYTES)
  private filled = 0
  /** The page's length as far as the present bytes show it. */
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

/** Samples of one frame by the low bits of the configuration, on the 48 kHz clock Ogg counts with (RFC 6716, 3.1). */
const SPEECH_FRAMES = [480, 960, 1920, 2880] as const
const HYBRID_FRAMES = [480, 960] as const
const MUSIC_FRAMES = [120, 240, 480, 960] as const
const FIRST_HYBRID = 12
const FIRST_MUSIC = 16

/** How long an Opus packet sounds, in samples at 48 kHz; 0 for an empty one. Its first two bytes are enough. */
function opusSamples(packet: Buffer): number {
  const [contents, count] = packet
  return contents === undefined ? 0 : frameSamples(contents >> 3) * frameCount(contents & 3, count)
}

function frameSamples(configuration: number): number {
  if (configuration >= FIRST_MUSIC) return MUSIC_FRAMES[configuration & 3] ?? 0
  return (configuration >= FIRST_HYBRID ? HYBRID_FRAMES[configuration & 1] : SPEECH_FRAMES[configuration & 3]) ?? 0
}

function frameCount(code: number, count = 0): number {
  if (code === 0) return 1
  return code === 3 ? count & 0x3f : 2
}

/** A stream whose pages are arriving. */
interface Link {
  readonly serial: number
  readonly isFirst: boolean
  /** What its granule positions are counted from in the joined stream. */
  readonly offset: bigint
  /** The head and the tags come first, each on pages of its own (RFC 7845 section 3). */
  expects: 'tags' | 'audio'
  /** Samples of the packet that goes on on the next page. */
  openSamples: number
}

/**
 * Joins complete Ogg Opus streams, each one spoken from a piece of the text, into one: a chained stream would be legal
 * too, but many players stop at the end of its first link. The first link's pages pass as they are. Later links lose
 * their two header packets; their pages go on with the first link's serial number and the joined stream's sequence and
 * granule positions. A single link leaves as it came. Holds an unfinished page and a link's last page, no more.
 */
export class OggJoiner {
  private readonly reader = new OggPageReader()
  private link: Link | undefined
  /** The last page that belongs to the joined stream. */
  private last: PageHeader | undefined
  /** A link's last page as it would end the joined stream: whether it does, only the next page can tell. */
  private held: Buffer | undefined
  /** Samples in the joined stream so far. */
  private position = 0n

  /** The joined stream's pages that `chunk` completes, maybe none. Throws `upstream_failed` if it is not Ogg Opus. */
  push(chunk: Buffer): Buffer {
    const pages: Buffer[] = []
    for (const page of this.reader.read(chunk)) {
      if (page === undefined) throw malformed()
      pages.push(...this.joined(page))
    }
    return Buffer.concat(pages)
  }

  /** To be called behind each link; returns the end of the joined stream. Throws if the link is cut off or empty. */
  endOfLink(isLast: boolean): Buffer {
    if (this.reader.isWithinPage || this.link?.expects === 'tags' || this.last === undefined) throw malformed()
    this.link = undefined
    if (!isLast) return Buffer.alloc(0)
    // Where the upstream marked no end, a page without content does.
    const { serial, sequence } = this.last
    const end = { flags: ENDS_STREAM, granulePosition: NO_POSITION, serial, sequence: following(sequence) }
    return this.held ?? emptyPage(end)
  }

  private joined(page: Buffer): readonly Buffer[] {
    const header = readPageHeader(page)
    if (this.link === undefined || (header.flags & BEGINS_STREAM) !== 0) return this.begin(page, header)
    if (header.serial !== this.link.serial) throw malformed()
    return this.link.expects === 'tags' ? this.tags(page, header, this.link) : this.audio(page, header, this.link)
  }

  private begin(page: Buffer, header: PageHeader): readonly Buffer[] {
    const [head] = pagePackets(page)
    const isOpusHead = head?.bytes.toString('latin1', 0, 8) === 'OpusHead'
    if (!isOpusHead || (header.flags & BEGINS_STREAM) === 0) throw malformed()
    const isFirst = this.last === undefined
    this.link = { serial: header.serial, isFirst, offset: this.position, expects: 'tags', openSamples: 0 }
    return this.headerPage(page, header, this.link)
  }

  private tags(page: Buffer, header: PageHeader, link: Link): readonly Buffer[] {
    if (pagePackets(page).some(({ isOpen }) => !isOpen)) link.expects = 'audio'
    return this.headerPage(page, header, link)
  }

  private headerPage(page: Buffer, header: PageHeader, link: Link): readonly Buffer[] {
    if (!link.isFirst) return []
    this.last = { ...header, flags: header.flags & ~ENDS_STREAM }
    return [rewritten(page, header, this.last)]
  }

  private audio(page: Buffer, header: PageHeader, link: Link): readonly Buffer[] {
    const released = this.release()
    const target = this.target(header, link)
    const samples = endedSamples(page, header, link)
    this.last = target
    const placed = rewritten(page, header, target)
    // The end of a stream may cut samples off its last packet; within the joined stream they are heard and count.
    const counted = sum(this.position, BigInt(samples))
    const said = target.granulePosition === NO_POSITION ? counted : target.granulePosition
    this.position = said > counted ? said : counted
    if ((header.flags & ENDS_STREAM) === 0) return [...released, placed]
    this.held = placed
    return released
  }

  private target(header: PageHeader, link: Link): PageHeader {
    const { flags, granulePosition } = header
    if (this.last === undefined || link.isFirst) return header
    return {
      flags,
      granulePosition: granulePosition === NO_POSITION ? NO_POSITION : sum(link.offset, granulePosition),
      serial: this.last.serial,
      sequence: following(this.last.sequence),
    }
  }

  /** The held page, now known not to be the joined stream's last one. */
  private release(): readonly Buffer[] {
    if (this.held === undefined) return []
    const header = readPageHeader(this.held)
    const granulePosition = header.granulePosition === NO_POSITION ? NO_POSITION : this.position
    const page = writePageHeader(this.held, { ...header, flags: header.flags & ~ENDS_STREAM, granulePosition })
    this.held = undefined
    return [page]
  }
}

/** Samples of the packets that end on this page. */
function endedSamples(page: Buffer, { flags }: PageHeader, link: Link): number {
  let samples = 0
  let continued = (flags & CONTINUED) === 0 ? undefined : link.openSamples
  for (const { bytes, isOpen } of pagePackets(page)) {
    link.openSamples = continued ?? opusSamples(bytes)
    continued = undefined
    if (!isOpen) samples += link.openSamples
  }
  return samples
}

function rewritten(page: Buffer, header: PageHeader, target: PageHeader): Buffer {
  const isSame =
    header.flags === target.flags &&
    header.granulePosition === target.granulePosition &&
    header.serial === target.serial &&
    header.sequence === target.sequence
  return isSame ? page : writePageHeader(page, target)
}

/** Positions are 64 bits wide and go round; sequence numbers have 32. */
const sum = (position: bigint, more: bigint): bigint => BigInt.asUintN(64, position + more)
const following = (sequence: number): number => (sequence + 1) >>> 0

const malformed = (): GatewayError => malformedResponse('The upstream sent audio that is not a whole Ogg Opus stream.')
