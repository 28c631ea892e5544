import { expect } from '@jest/globals'
import fc from 'fast-check'
import { OggJoiner } from '../../src/providers/p2/ogg-concat.js'
import { AudioFault, checksum, type FramedAudio } from './audio-frames.js'

/** Flags of a page (RFC 3533 section 6). */
export const BEGINS = 2
export const ENDS = 4
/** Of a page on which no packet ends. */
export const NO_POSITION = 0xffffffffffffffffn

export interface Page {
  readonly flags: number
  readonly position: bigint
  readonly serial: number
  readonly sequence: number
  readonly lacing: readonly number[]
  readonly content: Buffer
}

/** Bit by bit, as RFC 3533 describes it. */
function crc(bytes: Buffer): number {
  let remainder = 0
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      const isOdd = ((remainder >>> 31) ^ ((byte >> bit) & 1)) === 1
      remainder = isOdd ? (remainder << 1) ^ 0x04c11db7 : remainder << 1
    }
  }
  return remainder >>> 0
}

/** A page with the checksum it must have. */
export function pageBytes({ flags, position, serial, sequence, lacing, content }: Page): Buffer {
  const header = Buffer.alloc(27)
  header.write('OggS', 'latin1')
  header[5] = flags
  header.writeBigUInt64LE(position, 6)
  header.writeUInt32LE(serial, 14)
  header.writeUInt32LE(sequence, 18)
  header[26] = lacing.length
  const page = Buffer.concat([header, Buffer.from(lacing), content])
  page.writeUInt32LE(crc(page), 22)
  return page
}

/** All pages of a stream; every one must be whole and its checksum right. */
export function pagesOf(bytes: Buffer): Page[] {
  const pages: Page[] = []
  for (let start = 0; start < bytes.length;) {
    expect(bytes.toString('latin1', start, start + 4)).toBe('OggS')
    const content = start + 27 + bytes.readUInt8(start + 26)
    const lacing = [...bytes.subarray(start + 27, content)]
    const end = content + lacing.reduce((length, segment) => length + segment, 0)
    const page = {
      flags: bytes.readUInt8(start + 5),
      position: bytes.readBigUInt64LE(start + 6),
      serial: bytes.readUInt32LE(start + 14),
      sequence: bytes.readUInt32LE(start + 18),
      lacing,
      content: bytes.subarray(content, end),
    }
    expect(pageBytes(page).equals(bytes.subarray(start, end))).toBe(true)
    pages.push(page)
    start = end
  }
  return pages
}

/** The packets of these pages, wherever a page cuts them. */
export function packetsOf(pages: readonly Page[]): Buffer[] {
  const packets: Buffer[] = []
  let open = Buffer.alloc(0)
  for (const { lacing, content } of pages) {
    let start = 0
    for (const length of lacing) {
      open = Buffer.concat([open, content.subarray(start, start + length)])
      start += length
      if (length === 255) continue
      packets.push(open)
      open = Buffer.alloc(0)
    }
  }
  return packets
}

/** Pushes each link in chunks of the given sizes, taken in turn. */
export function join(links: readonly Buffer[], sizes: readonly number[] = [4096]): Buffer {
  const joiner = new OggJoiner()
  const joined: Buffer[] = []
  let chunk = 0
  for (const [index, link] of links.entries()) {
    for (let start = 0; start < link.length;) {
      const end = start + (sizes[chunk++ % sizes.length] ?? 1)
      joined.push(joiner.push(link.subarray(start, end)))
      start = end
    }
    joined.push(joiner.endOfLink(index === links.length - 1))
  }
  return Buffer.concat(joined)
}

/** 20 ms of silence in mono: a packet whose samples are known from its first byte. */
export const SILENCE = Buffer.from([0xf8, 0xff, 0xfe])
export const head = (serial: number): Page => {
  const content = Buffer.from('OpusHead\u0001\u0001\u0000\u0000\u0080\u00bb\u0000\u0000\u0000\u0000\u0000', 'latin1')
  return { flags: BEGINS, position: 0n, serial, sequence: 0, lacing: [content.length], content }
}
export const tags = (serial: number): Page => {
  const content = Buffer.from('OpusTags\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000', 'latin1')
  return { flags: 0, position: 0n, serial, sequence: 1, lacing: [content.length], content }
}
export const audio = (serial: number, sequence: number, position: bigint, flags = 0): Page => ({
  flags,
  position,
  serial,
  sequence,
  lacing: [3, 3],
  content: Buffer.concat([SILENCE, SILENCE]),
})
export const stream = (...pages: readonly Page[]): Buffer => Buffer.concat(pages.map(pageBytes))
/** Four packets on two pages; the last `trimmed` samples are not to be heard. */
export const link = (serial: number, trimmed = 0n): Buffer =>
  stream(head(serial), tags(serial), audio(serial, 2, 1920n), audio(serial, 3, 3840n - trimmed, ENDS))

export const chunkSizes = fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 8 })

/** One page of RFC 3533 section 6, its checksum found right. */
interface OggPage {
  readonly isContinued: boolean
  readonly isFirst: boolean
  readonly isLast: boolean
  /** Undefined on a page on which no packet ends. */
  readonly granule: number | undefined
  readonly serial: number
  readonly sequence: number
  readonly segments: readonly Buffer[]
}

const HEADER_BYTES = 27
const CHECKSUM_AT = 22

/** The pages that fill these bytes without a gap. Throws an AudioFault. */
function oggPages(bytes: Buffer): OggPage[] {
  const pages: OggPage[] = []
  for (let at = 0; at < bytes.length;) {
    const length = pageLength(bytes, at)
    pages.push(readPage(bytes.subarray(at, at + length)))
    at += length
  }
  if (pages.length === 0) throw new AudioFault('there is not one page in it')
  return pages
}

function pageLength(bytes: Buffer, at: number): number {
  if (bytes.toString('latin1', at, at + 4) !== 'OggS' || bytes[at + 4] !== 0)
    throw new AudioFault(`no page begins at byte ${at} of ${bytes.length}`)
  const segments = bytes[at + HEADER_BYTES - 1]
  if (segments === undefined) throw new AudioFault(`the page at byte ${at} breaks off`)
  const lacing = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + segments)
  const length = HEADER_BYTES + segments + lacing.reduce((sum, size) => sum + size, 0)
  if (at + length > bytes.length) throw new AudioFault(`the page at byte ${at} breaks off`)
  return length
}

function readPage(page: Buffer): OggPage {
  const blanked = Buffer.from(page)
  blanked.writeUInt32LE(0, CHECKSUM_AT)
  if (checksum(blanked, 32, 0x04c11db7) !== page.readUInt32LE(CHECKSUM_AT))
    throw new AudioFault(`page ${page.readUInt32LE(18)} has a wrong checksum`)
  const flags = page.readUInt8(5)
  const granule = page.readBigInt64LE(6)
  return {
    isContinued: (flags & 1) !== 0,
    isFirst: (flags & 2) !== 0,
    isLast: (flags & 4) !== 0,
    granule: granule < 0n ? undefined : Number(granule),
    serial: page.readUInt32LE(14),
    sequence: page.readUInt32LE(18),
    segments: segmentsOf(page),
  }
}

function segmentsOf(page: Buffer): Buffer[] {
  const lacing = page.subarray(HEADER_BYTES, HEADER_BYTES + page.readUInt8(HEADER_BYTES - 1))
  let at = HEADER_BYTES + lacing.length
  return [...lacing].map((size) => page.subarray(at, (at += size)))
}

/** Opus counts its samples on this clock, whatever was encoded (RFC 7845 section 4). */
const CLOCK_HZ = 48_000

export interface OggOpusStream extends FramedAudio {
  /** Samples of the decoder's delay at the beginning. */
  readonly preSkip: number
}

/** One Ogg Opus stream from its first page to its last. Throws an AudioFault; a chain of several is one, too. */
export function oggOpusStream(bytes: Buffer): OggOpusStream {
  const pages = oggPages(bytes)
  assertOneStream(pages)
  const [head, tags, ...frames] = opusPacketsOf(pages)
  if (head === undefined || head.length < 19 || head.toString('latin1', 0, 8) !== 'OpusHead')
    throw new AudioFault('it does not begin with OpusHead')
  if (tags?.toString('latin1', 0, 8) !== 'OpusTags') throw new AudioFault('OpusTags does not follow OpusHead')
  const preSkip = head.readUInt16LE(10)
  const granules = pages.map(({ granule }) => granule).filter((granule) => granule !== undefined)
  if (granules.some((granule, index) => granule < (granules[index - 1] ?? 0)))
    throw new AudioFault('granule positions run backwards')
  const samples = (granules.at(-1) ?? 0) - preSkip
  return { frames, sampleRateHz: CLOCK_HZ, channels: head.readUInt8(9), samples, preSkip, warnings: [] }
}

function assertOneStream(pages: readonly OggPage[]): void {
  pages.forEach((page, index) => {
    if (page.isFirst !== (index === 0)) throw new AudioFault(`page ${index} is wrong about being the first`)
    if (page.isLast !== (index === pages.length - 1))
      throw new AudioFault(`page ${index} is wrong about being the last`)
    if (page.sequence !== index) throw new AudioFault(`page ${index} says that it is page ${page.sequence}`)
    if (page.serial !== pages[0]?.serial) throw new AudioFault(`page ${index} belongs to another stream`)
  })
}

/** Packets end with the first segment shorter than 255 bytes and may lie on several pages (RFC 3533 section 5). */
function opusPacketsOf(pages: readonly OggPage[]): Buffer[] {
  const packets: Buffer[] = []
  let open: Buffer[] = []
  for (const page of pages) {
    if (page.isContinued !== open.length > 0) throw new AudioFault('a packet is torn between two pages')
    for (const segment of page.segments) {
      open.push(segment)
      if (segment.length === 255) continue
      packets.push(Buffer.concat(open))
      open = []
    }
  }
  if (open.length > 0) throw new AudioFault('the last packet breaks off')
  return packets
}
