import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { jpegHeader, jpegSegment, pngHeader } from '../../test/support/images.js'
import { Base64Payload } from './base64-payload.js'
import type { ByteReader } from './byte-reader.js'
import { formatOf, type ImageSize, sizeOf } from './image-rules.js'

/** Counts what is read, as reading is what an image costs. */
class CountingReader implements ByteReader {
  reads = 0
  bytes = 0
  private readonly payload: Base64Payload

  constructor(image: Buffer) {
    this.payload = new Base64Payload(image.toString('base64'))
  }

  read(position: number, length: number): Buffer {
    const piece = this.payload.read(position, length)
    this.reads++
    this.bytes += piece.length
    return piece
  }
}

function judged(image: Buffer): ImageSize | 'no image' | 'no size' {
  const reader = new CountingReader(image)
  const format = formatOf(reader)
  return format === undefined ? 'no image' : (sizeOf(reader, format) ?? 'no size')
}

function costOf(image: Buffer): { reads: number; bytes: number } {
  const reader = new CountingReader(image)
  const format = formatOf(reader)
  if (format !== undefined) sizeOf(reader, format)
  return { reads: reader.reads, bytes: reader.bytes }
}

const exif = jpegSegment(0xe1, Buffer.alloc(65_533, 'x'))

describe('The size of a PNG', () => {
  it('is read from its header', () => {
    expect(judged(pngHeader(300, 750))).toEqual({ width: 300, height: 750 })
  })

  it('of 30,000 x 30,000 pixels costs 33 bytes, however much follows', () => {
    const image = Buffer.concat([pngHeader(30_000, 30_000), Buffer.alloc(5_000_000)])
    expect(judged(image)).toEqual({ width: 30_000, height: 30_000 })
    expect(costOf(image)).toEqual({ reads: 2, bytes: 33 })
  })

  it.each([
    ['is cut off', pngHeader(300, 300).subarray(0, 32)],
    [
      'begins with another chunk',
      Buffer.concat([pngHeader(300, 300).subarray(0, 12), Buffer.from('CgBI'), Buffer.alloc(30)]),
    ],
    ['has a chunk of another length', Buffer.from(pngHeader(300, 300)).fill(14, 11, 12)],
    ['has no width', pngHeader(0, 300)],
    ['has no height', pngHeader(300, 0)],
    ['is larger than the format allows', pngHeader(0x8000_0000, 300)],
  ])('is unknown when its header %s', (_case, image) => {
    expect(judged(image)).toBe('no size')
  })
})

describe('The size of a JPEG', () => {
  it.each([0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf])(
    'is read from the frame header %i',
    (frame) => {
      expect(judged(jpegHeader(640, 480, [], frame))).toEqual({ width: 640, height: 480 })
    },
  )

  it('is found behind tables, metadata and fill bytes', () => {
    const before = [
      jpegSegment(0xe0, Buffer.from('JFIF\0')),
      Buffer.from([0xff, 0xff]),
      jpegSegment(0xc4, Buffer.alloc(20)),
      jpegSegment(0xc8, Buffer.alloc(20)),
      jpegSegment(0xcc, Buffer.alloc(4)),
      jpegSegment(0xfe, Buffer.alloc(0)),
    ]
    expect(judged(jpegHeader(300, 750, before))).toEqual({ width: 300, height: 750 })
  })

  it('behind 40 segments of metadata costs 9 bytes for each of them', () => {
    const image = jpegHeader(300, 300, Array<Buffer>(40).fill(exif))
    expect(judged(image)).toEqual({ width: 300, height: 300 })
    expect(costOf(image)).toEqual({ reads: 42, bytes: 8 + 41 * 9 })
  })

  it('is given up after a thousand segments, of which nothing is kept', () => {
    const image = jpegHeader(300, 300, Array<Buffer>(1_024).fill(jpegSegment(0xfe, Buffer.alloc(0))))
    expect(judged(image)).toBe('no size')
    expect(costOf(image).bytes).toBeLessThan(10_000)
    expect(judged(jpegHeader(300, 300, Array<Buffer>(1_023).fill(jpegSegment(0xfe, Buffer.alloc(0)))))).not.toBe(
      'no size',
    )
  })

  it('is unknown wherever the file is cut off before the end of the frame header, which costs no more', () => {
    const image = jpegHeader(300, 300, [exif])
    const frameStart = 2 + exif.length
    for (const length of [3, 4, 5, 20, frameStart, frameStart + 1, frameStart + 4, frameStart + 8]) {
      expect(judged(image.subarray(0, length))).toBe('no size')
      expect(costOf(image.subarray(0, length)).bytes).toBeLessThanOrEqual(8 + 2 * 9)
    }
    expect(judged(image.subarray(0, frameStart + 9))).toEqual({ width: 300, height: 300 })
  })

  it.each([
    ['its scan', jpegSegment(0xda, Buffer.alloc(8))],
    ['its end', Buffer.from([0xff, 0xd9, 0, 2])],
    ['a restart', Buffer.from([0xff, 0xd0, 0, 2])],
    ['a second beginning', Buffer.from([0xff, 0xd8, 0, 2])],
    ['a stuffed byte', Buffer.from([0xff, 0x00, 0, 2])],
    ['a segment without room for its own length', Buffer.from([0xff, 0xe0, 0, 1, 0xff])],
    ['a segment of no length at all', Buffer.from([0xff, 0xe0, 0, 0])],
    ['something that is no segment', Buffer.from('rubbish')],
  ])('is unknown when %s comes before the frame header', (_case, rubbish) => {
    expect(judged(jpegHeader(300, 300, [rubbish]))).toMatch(/^no /)
  })

  it('is unknown when the frame header leaves it to the scan', () => {
    expect(judged(jpegHeader(300, 0))).toBe('no size')
    expect(judged(jpegHeader(0, 300))).toBe('no size')
  })
})

describe('What is neither', () => {
  it.each([
    ['a GIF', Buffer.from('GIF89a, and so on')],
    ['a WebP', Buffer.from('RIFF\0\0\0\0WEBPVP8 ')],
    ['a damaged PNG', Buffer.from(pngHeader(300, 300)).fill(0x0a, 4, 5)],
    ['nothing', Buffer.alloc(0)],
    ['two bytes', Buffer.from([0xff, 0xd8])],
  ])('is no image: %s', (_case, image) => {
    expect(judged(image)).toBe('no image')
  })

  it('never costs more than a few kilobytes, nor an exception, whatever the bytes are', () => {
    const begun = fc.constantFrom(Buffer.from([0xff, 0xd8, 0xff]), pngHeader(1, 1).subarray(0, 8), Buffer.alloc(0))
    fc.assert(
      fc.property(begun, fc.uint8Array({ maxLength: 400 }), (start, rest) => {
        expect(costOf(Buffer.concat([start, rest])).bytes).toBeLessThan(10_000)
      }),
      { numRuns: 2_000 },
    )
  })
})
