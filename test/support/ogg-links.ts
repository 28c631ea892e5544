import { expect } from '@jest/globals'
import fc from 'fast-check'
import { OggJoiner } from '../../src/providers/p2/ogg-concat.js'

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
