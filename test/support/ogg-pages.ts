import { AudioFault } from './audio-fault.js'
import { checksum } from './checksums.js'

/** One page of RFC 3533 section 6, its checksum found right. */
export interface OggPage {
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
export function oggPages(bytes: Buffer): OggPage[] {
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
