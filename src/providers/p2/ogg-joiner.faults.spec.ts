import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import {
  audio,
  chunkSizes,
  head,
  join,
  link,
  NO_POSITION,
  pageBytes,
  pagesOf,
  stream,
  tags,
} from '../../../test/support/ogg-links.js'
import { GatewayError } from '../../core/gateway-error.js'

function refusalOf(act: () => unknown): GatewayError {
  try {
    act()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was refused')
}

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
    expect(details.attempt).toEqual({ phase: 'answered', channelFault: true })
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
})
