import { describe, expect, it } from '@jest/globals'
import { synthesizeSpeech } from '@multi-model-gateway/sandbox/audio/speech-synthesizer.js'
import fc from 'fast-check'
import { parseBuffer } from 'music-metadata'
import {
  audio,
  BEGINS,
  chunkSizes,
  ENDS,
  head,
  join,
  link,
  NO_POSITION,
  packetsOf,
  pageBytes,
  pagesOf,
  SILENCE,
  stream,
  tags,
} from '../../../test/support/ogg-pages.js'
import { GatewayError } from '../../core/errors.js'
import { OggJoiner } from './ogg-concat.js'

function refusalOf(act: () => unknown): GatewayError {
  try {
    act()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

const spoken = (text: string): Buffer => Buffer.concat([...synthesizeSpeech(text, { format: 'opus', speed: 1 })])

const hex = (bytes: Buffer): string => bytes.toString('hex')

describe('the joined stream', () => {
  it.each<[string, Buffer[]]>([
    ['other audio', [Buffer.alloc(4096, 0xff)]],
    ['other audio behind a page', [Buffer.concat([pageBytes(head(7)), Buffer.alloc(64, 0xff)])]],
    ['nothing', [Buffer.alloc(0)]],
    ['a link that is cut within a page', [link(7).subarray(0, -1), link(8)]],
    ['a link that is cut within a page header', [link(7).subarray(0, 10)]],
    ['a header without audio pages to come', [pageBytes(head(7))]],
    ['a link without a head', [link(7), pageBytes(audio(8, 2, 1920n))]],
    ['a head in the middle of nowhere', [pageBytes({ ...head(7), flags: 0 })]],
    ['another codec', [pageBytes({ ...head(7), content: Buffer.alloc(19, 'vorbis') })]],
    ['pages of two streams mixed', [stream(head(7), tags(7), audio(8, 2, 1920n))]],
  ])("is refused as the channel's fault when it gets %s", (_, links) => {
    const { kind, details } = refusalOf(() => join(links))
    expect(kind).toBe('upstream_failed')
    expect(details.attempt).toEqual({ phase: 'answered', channelError: true })
  })

  it('of arbitrary bytes and pages is refused or made, never anything else', () => {
    const page = fc
      .record({
        flags: fc.nat(7),
        position: fc.bigInt({ min: 0n, max: NO_POSITION }),
        serial: fc.constantFrom(7, 8),
        sequence: fc.nat(0xffffffff),
        lacing: fc.array(fc.constantFrom<number>(0, 1, 3, 255), { maxLength: 4 }),
      })
      .map((parts) => {
        const length = parts.lacing.reduce((sum, segment) => sum + segment, 0)
        return pageBytes({ ...parts, content: Buffer.alloc(length, 0xfb) })
      })
    const part = fc.oneof(
      page,
      fc.constant(link(7)),
      fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
    )
    const anyLink = fc.array(part, { maxLength: 4 }).map((parts) => Buffer.concat([stream(head(7), tags(7)), ...parts]))
    fc.assert(
      fc.property(fc.array(anyLink, { minLength: 1, maxLength: 3 }), chunkSizes, (links, sizes) => {
        try {
          pagesOf(join(links, sizes))
        } catch (error) {
          if (!(error instanceof GatewayError)) throw error
        }
      }),
      { numRuns: 500 },
    )
  })

  it('of a single link is that link, byte for byte, wherever it is cut', () => {
    const whole = spoken('One sentence that is spoken alone.')
    fc.assert(
      fc.property(chunkSizes, (sizes) => {
        expect(join([whole], sizes).equals(whole)).toBe(true)
      }),
    )
  })

  it('of any links is one stream with all their packets, wherever they are cut', () => {
    const texts = fc.array(fc.string({ minLength: 1, maxLength: 30 }), { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(texts, chunkSizes, (spokenTexts, sizes) => {
        const links = spokenTexts.map(spoken)
        const pages = pagesOf(join(links, sizes))
        const [first, ...others] = links.map((bytes) => packetsOf(pagesOf(bytes)))
        const expected = [...(first ?? []), ...others.flatMap((packets) => packets.slice(2))]
        expect(packetsOf(pages).map(hex)).toEqual(expected.map(hex))
        expect(new Set(pages.map(({ serial }) => serial)).size).toBe(1)
        expect(pages.map(({ sequence }) => sequence)).toEqual(Array.from(pages.keys()))
        expect(pages.map(({ flags }) => flags)).toEqual([BEGINS, ...Array<number>(pages.length - 2).fill(0), ENDS])
        let samples = 0
        for (const { position, lacing } of pages.slice(2)) {
          samples += 960 * lacing.filter((length) => length < 255).length
          expect(position).toBe(BigInt(samples))
        }
      }),
      { numRuns: 50 },
    )
  })

  it('lasts as long as its links together', async () => {
    const links = ['First sentence.', 'A second, longer sentence.', 'Third.'].map(spoken)
    const durationOf = async (bytes: Buffer): Promise<number> =>
      (await parseBuffer(bytes, { mimeType: 'audio/ogg' }, { duration: true })).format.duration ?? 0
    const durations = await Promise.all(links.map(durationOf))
    // The 20 ms for the decoder to come to rest are silent at the beginning of a stream only.
    const expected = durations.reduce((sum, duration) => sum + duration, 0.02 * (links.length - 1))
    expect(await durationOf(join(links))).toBeCloseTo(expected, 5)
  })

  it('counts samples a link would have cut off, because only the end of a stream can cut', () => {
    const pages = pagesOf(join([link(7, 500n), link(7, 600n)]))
    expect(pages.map(({ position }) => position)).toEqual([0n, 0n, 1920n, 3840n, 5760n, 7080n])
    expect(pages.map(({ flags }) => flags)).toEqual([BEGINS, 0, 0, 0, 0, ENDS])
  })

  it('has the serial number of the first link and goes on from its sequence', () => {
    const late = stream(head(7), tags(7), { ...audio(7, 0xfffffffe, 1920n), flags: ENDS })
    const pages = pagesOf(join([late, link(8), link(9)]))
    expect(pages.map(({ serial }) => serial)).toEqual([7, 7, 7, 7, 7, 7, 7])
    expect(pages.slice(2).map(({ sequence }) => sequence)).toEqual([0xfffffffe, 0xffffffff, 0, 1, 2])
  })

  it('keeps packets that go on over pages, and counts them where they end', () => {
    const long = Buffer.concat([Buffer.from([0xf8]), Buffer.alloc(599, 0x80)])
    const split = (serial: number): Buffer =>
      stream(
        head(serial),
        tags(serial),
        { ...audio(serial, 2, NO_POSITION), lacing: [255, 255], content: long.subarray(0, 510) },
        { ...audio(serial, 3, 700n, ENDS | 1), lacing: [90, 3], content: Buffer.concat([long.subarray(510), SILENCE]) },
      )
    const pages = pagesOf(join([split(1), split(2)]))
    expect(pages.map(({ position }) => position)).toEqual([0n, 0n, NO_POSITION, 1920n, NO_POSITION, 2620n])
    expect(pages.map(({ flags }) => flags)).toEqual([BEGINS, 0, 0, 1, 0, 1 | ENDS])
    expect(packetsOf(pages).slice(2)).toEqual([long, SILENCE, long, SILENCE])
  })

  it('loses tags of later links that fill several pages', () => {
    const long = { ...tags(8), lacing: Array<number>(255).fill(255), content: Buffer.alloc(255 * 255, 'OpusTags') }
    const rest = { ...tags(8), flags: 1, position: 0n, sequence: 2 }
    const second = stream(head(8), long, rest, audio(8, 3, 1920n, ENDS))
    expect(packetsOf(pagesOf(join([link(7), second]))).slice(2)).toEqual(Array<Buffer>(6).fill(SILENCE))
  })

  it('joins the links of a stream that was already chained', () => {
    const chained = Buffer.concat([link(7, 500n), link(8)])
    expect(join([chained, link(9)])).toEqual(join([link(7, 500n), link(8), link(9)]))
  })

  it('goes on from the samples of a link whose last page says too few and marks no end', () => {
    const open = stream(head(7), tags(7), audio(7, 2, 1000n))
    expect(pagesOf(join([open, link(8)])).map(({ position }) => position)).toEqual([0n, 0n, 1000n, 3840n, 5760n])
  })

  it('is ended by a page without content where no link marked its end', () => {
    const open = stream(head(7), tags(7), audio(7, 2, 1920n))
    const end = { flags: ENDS, position: NO_POSITION, serial: 7, sequence: 3, lacing: [], content: Buffer.alloc(0) }
    expect(join([open])).toEqual(Buffer.concat([open, pageBytes(end)]))
    expect(pagesOf(join([link(7), open])).at(-1)).toEqual({ ...end, sequence: 5 })
  })

  it.each([
    ['one 2.5 ms frame', [0x80], 120n],
    ['one 20 ms music frame', [0x98], 960n],
    ['two 10 ms speech frames', [0x01], 960n],
    ['two 60 ms speech frames of different sizes', [0x1a], 5760n],
    ['one 10 ms hybrid frame', [0x60], 480n],
    ['one 20 ms hybrid frame', [0x6c], 960n],
    ['three 40 ms speech frames', [0x13, 0x03], 5760n],
    ['a count that is missing', [0x13], 0n],
    ['nothing', [], 0n],
  ])('counts the samples of a packet with %s', (_, packet, samples) => {
    const whole = { lacing: [packet.length], content: Buffer.from(packet) }
    const first = stream(head(1), tags(1), { ...audio(1, 2, 0n, ENDS), ...whole })
    expect(pagesOf(join([first, link(2)]))[2]?.position).toBe(samples)
  })

  it('leaves page by page: only what may be its end is held', () => {
    const joiner = new OggJoiner()
    const [first, second] = [audio(7, 2, 1920n), audio(7, 3, 3840n, ENDS)].map(pageBytes)
    const header = stream(head(7), tags(7))
    expect(joiner.push(header)).toEqual(header)
    expect(joiner.push(first ?? header)).toEqual(first)
    expect(joiner.push(second ?? header)).toHaveLength(0)
    expect(joiner.endOfLink(true)).toEqual(second)
  })
})
