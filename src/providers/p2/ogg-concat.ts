import type { GatewayError } from '../../core/gateway-error.js'
import { malformedAnswer } from '../../upstream/upstream-response.js'
import {
  BEGINS_STREAM,
  CONTINUED,
  emptyPage,
  ENDS_STREAM,
  NO_POSITION,
  OggPageReader,
  type PageHeader,
  pagePackets,
  readPageHeader,
  writePageHeader,
} from './ogg-page.js'
import { opusSamples } from './opus-packet.js'

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

const malformed = (): GatewayError => malformedAnswer('The upstream sent audio that is not a whole Ogg Opus stream.')
