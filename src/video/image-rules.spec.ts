import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import { afterEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../test/support/arbitraries.js'
import { jpegHeader, jpegSegment, pngHeader, pngText } from '../../test/support/byte-streams.js'
import {
  MULTI_IMAGE_PATH,
  multiImageBody,
  StandInChannel,
  startVideoApplication,
  TEXT_PATH,
  VIDEO_HEADERS,
  type VideoApplication,
} from '../../test/support/video-application.js'
import {
  Base64Payload,
  type ByteReader,
  formatOf,
  image,
  type ImageSize,
  MAXIMUM_IMAGE_BYTES,
  sizeOf,
} from './image-rules.js'

describe('A body with images', () => {
  let application: VideoApplication
  afterEach(() => application.close())
  const sections = {
    limits: { jsonBodyBytes: 1_000, imageBodyBytes: 20_000 },
    admission: { bytesInFlight: 30_000, callerShare: 1 },
  }
  /** Valid JSON of exactly this length. */
  const bodyOf = (bytes: number): string => {
    const body = multiImageBody()
    return body + ' '.repeat(bytes - body.length)
  }

  it('may be larger than other bodies, up to its own limit', async () => {
    application = await startVideoApplication([new StandInChannel('first')], sections)
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(200)
    expect(await application.post(MULTI_IMAGE_PATH, bodyOf(20_001))).toMatchObject({
      status: 413,
      body: { code: 1200 },
    })
    expect(await application.post(TEXT_PATH, '{"prompt":"x"}'.padEnd(1_001))).toMatchObject({
      status: 413,
      body: { code: 1200 },
    })
  })

  it('is refused before it is read while too many bytes are under way, and admitted when they are done', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel], sections)
    let open: () => void = () => undefined
    channel.heldUntil = new Promise((done) => {
      open = done
    })
    const first = application.post(MULTI_IMAGE_PATH, bodyOf(20_000))
    while (channel.bodies.length === 0) await new Promise((done) => setImmediate(done))

    // It announces its body and never sends it: the answer needs none.
    const second = announce({ 'content-length': '10001' })
    const [answer] = (await once(second, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(503)
    expect(answer.headers['retry-after']).toBe('5')
    second.destroy()
    const third = application.post(MULTI_IMAGE_PATH, bodyOf(10_000))
    while (channel.bodies.length < 2) await new Promise((done) => setImmediate(done))

    open()
    expect([(await first).status, (await third).status]).toEqual([200, 200])
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(200)
  })

  it.each([
    [413, { 'content-length': '20001' }],
    [415, { 'content-length': '20', 'content-encoding': 'gzip' }],
    [415, { 'content-length': '20', 'content-type': 'text/plain' }],
  ])('is refused with %i by its headers alone: %j', async (status, further) => {
    application = await startVideoApplication([new StandInChannel('first')], sections)
    const request = announce(further)
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(status)
    request.destroy()
  })

  it('of unknown length counts with as much as it may have until it has arrived, then with its own length', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel], sections)
    let open: () => void = () => undefined
    channel.heldUntil = new Promise((done) => {
      open = done
    })
    const chunked = announce({ 'transfer-encoding': 'chunked' })
    chunked.write(multiImageBody().slice(0, 10))
    while (application.calls.length < 1) await new Promise((done) => setImmediate(done))
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(10_001))).status).toBe(503)
    chunked.end(multiImageBody().slice(10))
    while (channel.bodies.length === 0) await new Promise((done) => setImmediate(done))
    const other = application.post(MULTI_IMAGE_PATH, bodyOf(20_000))
    while (channel.bodies.length < 2) await new Promise((done) => setImmediate(done))
    open()
    expect((await other).status).toBe(200)
    chunked.destroy()
  })

  it('whose sender leaves makes room for others', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel], sections)
    const stalled = announce({ 'content-length': '20000' })
    stalled.write('{')
    while (application.calls.length < 1) await new Promise((done) => setImmediate(done))
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(503)
    stalled.destroy()
    while (application.calls[0]?.disconnect.aborted !== true) await new Promise((done) => setImmediate(done))
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(200)
  })

  function announce(further: Record<string, string>): ClientRequest {
    const request = httpRequest(`${application.url}${MULTI_IMAGE_PATH}`, {
      method: 'POST',
      headers: { ...VIDEO_HEADERS, ...further },
    })
    request.on('error', () => undefined)
    request.flushHeaders()
    return request
  }
})

const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Mostly base64, so that what is wrong is one character and not all of them. */
const nearlyBase64 = fc
  .tuple(
    fc.uint8Array({ maxLength: 40 }),
    fc.array(fc.tuple(fc.nat(), fc.string({ unit: codePoint, minLength: 1, maxLength: 1 })), { maxLength: 2 }),
    fc.nat(3),
  )
  .map(([bytes, changes, dropped]) => {
    let text = Buffer.from(bytes).toString('base64')
    for (const [place, character] of changes) {
      const at = text.length === 0 ? 0 : place % text.length
      text = text.slice(0, at) + character + text.slice(at + 1)
    }
    return text.slice(0, Math.max(0, text.length - dropped))
  })

const alphabetSoup = fc.string({
  unit: fc.constantFrom('A', '/', '+', '=', '-', '_', ' ', '\n', '.', '\u0141', '\u00c1'),
  maxLength: 12,
})

describe('A Base64 payload', () => {
  it('is strict exactly where a plain regular expression says so', () => {
    fc.assert(
      fc.property(fc.oneof(nearlyBase64, alphabetSoup), (text) => {
        expect(new Base64Payload(text).isStrict()).toBe(STRICT.test(text))
      }),
      { numRuns: 5_000 },
    )
  })

  it.each(['A', 'AAA', 'A===', '====', 'AA==AAAA', 'AA-_', 'AA A', 'AAAA\n', 'AAA\u0141', 'AAA\u00c1'])(
    'is not strict as %j',
    (text) => {
      expect(new Base64Payload(text).isStrict()).toBe(false)
    },
  )

  it('is judged to its last character, however long it is', () => {
    const good = 'A'.repeat(200_000)
    expect(new Base64Payload(good).isStrict()).toBe(true)
    for (const place of [0, 65_535, 65_536, 131_072, 199_999]) {
      for (const wrong of ['!', '-', '_', ' ', '\u0141']) {
        expect(new Base64Payload(good.slice(0, place) + wrong + good.slice(place + 1)).isStrict()).toBe(false)
      }
    }
    expect(new Base64Payload(`${'A'.repeat(65_535)}=AAAA`).isStrict()).toBe(false)
  })

  it('has the length and, in every place, the bytes that decoding it would give', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(70), fc.nat(20), (content, position, length) => {
        const bytes = Buffer.from(content)
        const payload = new Base64Payload(bytes.toString('base64'))
        expect(payload.byteLength).toBe(bytes.length)
        expect(payload.read(position, length)).toEqual(bytes.subarray(position, position + length))
      }),
    )
  })
})

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

const PATH = 'image_list[2].image'

const verdict = (value: unknown): string | undefined => image(value, PATH)?.message
const ofBytes = (bytes: Buffer): string | undefined => verdict(bytes.toString('base64'))

/** A good image, filled up to a size. */
const padded = (bytes: number): Buffer => {
  const whole = Buffer.alloc(bytes)
  pngHeader(300, 300).copy(whole)
  return whole
}

describe('An image in Base64', () => {
  it('is accepted as PNG and as JPEG', () => {
    expect(ofBytes(pngHeader(300, 300))).toBeUndefined()
    expect(ofBytes(jpegHeader(300, 300))).toBeUndefined()
  })

  it.each([0, 1, 2])('may have 10 MB and not a byte more, whatever its padding (%i bytes off)', (less) => {
    expect(ofBytes(padded(MAXIMUM_IMAGE_BYTES - less))).toBeUndefined()
    expect(ofBytes(padded(MAXIMUM_IMAGE_BYTES + 1 + less))).toBe(
      `Invalid '${PATH}': the image is larger than 10485760 bytes.`,
    )
  })

  it.each([
    [300, 300],
    [300, 750],
    [750, 300],
    [301, 752],
    [30_000, 30_000],
  ])('may be %i x %i pixels large', (width, height) => {
    expect(ofBytes(pngHeader(width, height))).toBeUndefined()
    expect(ofBytes(jpegHeader(width, height))).toBeUndefined()
  })

  it.each([
    [299, 300, 'pixels'],
    [300, 299, 'pixels'],
    [1, 1, 'pixels'],
    [300, 751, 'ratio'],
    [751, 300, 'ratio'],
    [301, 753, 'ratio'],
    [30_000, 11_999, 'ratio'],
  ])('may not be %i x %i pixels large: %s', (width, height, what) => {
    expect(ofBytes(pngHeader(width, height))).toContain(what)
    expect(ofBytes(jpegHeader(width, height))).toContain(`${width} x ${height}`)
  })

  it.each(['data:image/png;base64,', 'DATA:image/png;base64,', 'data:,'])('is refused behind %s', (prefix) => {
    expect(verdict(prefix + pngText())).toBe(`Invalid '${PATH}': expected raw Base64 without a data: prefix.`)
  })

  it.each([
    ['in the alphabet of URLs', pngText().replaceAll('+', '-').replaceAll('/', '_').replace(/^./, '-')],
    ['with a line break', `${pngText().slice(0, 40)}\n${pngText().slice(40)}`],
    ['with half a group', pngText().slice(0, -1)],
    ['as another address', 'ftp://example.com/image.png'],
    ['as a path', '/images/image.png'],
    ['with blanks around it', ` ${pngText()} `],
  ])('is refused %s', (_case, value) => {
    expect(verdict(value)).toBe(`Invalid '${PATH}': expected an http or https URL or raw Base64.`)
  })

  it('is refused in another format, whatever it calls itself', () => {
    expect(ofBytes(Buffer.from('GIF89a, and so on'))).toBe(
      `Invalid '${PATH}': supported formats are jpg, jpeg and png.`,
    )
  })

  it('is refused with a header that is cut off or garbled', () => {
    expect(ofBytes(pngHeader(300, 300).subarray(0, 20))).toBe(`Invalid '${PATH}': the png header is broken or cut off.`)
    expect(ofBytes(jpegHeader(300, 300).subarray(0, 8))).toBe(
      `Invalid '${PATH}': the jpeg header is broken or cut off.`,
    )
  })

  it.each([undefined, null, 5, {}, '', ' \n'])('is refused as %p', (value) => {
    expect(verdict(value)).toContain(PATH)
  })
})

describe('An image at a URL', () => {
  const url = (characters: number): string => 'https://example.com/'.padEnd(characters, 'a')

  it.each(['https://example.com/a.png', 'HTTP://example.com', 'http://10.0.0.1/a?b=c#d', url(2_048)])(
    'is passed on unfetched: %s',
    (value) => {
      expect(verdict(value)).toBeUndefined()
    },
  )

  it.each([
    ['is too long', url(2_049)],
    ['has no host', 'https://'],
    ['has no such port', 'https://example.com:99999/'],
    ['holds a user', 'https://user@example.com/a.png'],
    ['holds a password', 'https://:secret@example.com/a.png'],
    ['holds a line break', 'https://example.com/a\n.png'],
    ['holds a blank', 'https://example.com/a .png'],
  ])('is refused when it %s, without repeating it', (_case, value) => {
    expect(verdict(value)).toContain(`Invalid '${PATH}'`)
    expect(verdict(value)).not.toContain('example.com')
  })
})
