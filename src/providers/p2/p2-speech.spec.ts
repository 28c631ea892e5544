import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { decodeFrame, encodeRequest } from './p2-frames.js'

const hex = (text: string): Buffer => Buffer.from(text.replace(/[\s|]/g, ''), 'hex')
const word = (value: number): string => (value >>> 0).toString(16).padStart(8, '0')

interface Parts {
  readonly type: number
  readonly flags: number
  readonly packing?: string
  /** Words of header extension. */
  readonly extension?: number
  /** The sequence number or the error code. */
  readonly number?: number
  readonly payload: Buffer
}

/** Written from the protocol's description, so that the decoder is not judged by its own arithmetic. */
function frame({ type, flags, packing = '00', extension = 0, number, payload }: Parts): Buffer {
  const header = `1${(1 + extension).toString(16)}${type.toString(16)}${flags.toString(16)}${packing}00`
  const fields = `${'ee'.repeat(4 * extension)}${number === undefined ? '' : word(number)}${word(payload.length)}`
  return Buffer.from(header + fields + payload.toString('hex'), 'hex')
}

const bytes = (maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))
const extension = fc.integer({ min: 0, max: 13 })
const positive = fc.integer({ min: 1, max: 0x7fffffff })
const negative = fc.integer({ min: -0x80000000, max: -1 })

describe('a request frame', () => {
  it('is the example of the protocol, byte for byte', () => {
    expect(encodeRequest(Buffer.from('{"request":{"reqid":"r1"}}'))).toEqual(
      hex('11 10 10 00 | 00 00 00 1a | 7b22 7265 7175 6573 7422 3a7b 2272 6571 6964 223a 2272 3122 7d7d'),
    )
  })

  it('carries any payload behind its size', () => {
    fc.assert(
      fc.property(bytes(300), (payload) => {
        const header = hex(`11101000 ${word(payload.length)}`)
        expect(encodeRequest(payload)).toEqual(Buffer.concat([header, payload]))
      }),
    )
  })
})

describe('a server frame', () => {
  it.each([
    ['11 b0 00 00 | 00 00 00 00', { kind: 'acknowledgement' }],
    ['11 b0 00 00', { kind: 'acknowledgement' }],
    ['11 b0 10 00 | 00 00 00 02 | 7b 7d', { kind: 'acknowledgement' }],
    ['12 b0 00 00 | ee ee ee ee', { kind: 'acknowledgement' }],
    ['11 b0 00 00 | 00 00 00 01 | aa', { kind: 'audio', last: false, audio: hex('aa') }],
    ['11 b1 00 00 | 00 00 00 01 | 00 00 00 04 | ff f3 64 c4', { kind: 'audio', last: false, audio: hex('fff364c4') }],
    ['11 b1 00 00 | ff ff ff fe | 00 00 00 01 | aa', { kind: 'audio', last: true, audio: hex('aa') }],
    ['11 b3 00 00 | ff ff ff fe | 00 00 00 02 | aa bb', { kind: 'audio', last: true, audio: hex('aabb') }],
    ['11 b3 00 00 | ff ff ff fd | 00 00 00 00', { kind: 'audio', last: true, audio: hex('') }],
    ['11 b3 00 00 | 00 00 00 02 | 00 00 00 01 | aa', { kind: 'audio', last: false, audio: hex('aa') }],
    ['11 b3 01 00 | ff ff ff fd | 00 00 00 00', { kind: 'audio', last: true, audio: hex('') }],
    ['11 b2 00 00 | ff ff ff fd | 00 00 00 01 | aa', { kind: 'audio', last: true, audio: hex('aa') }],
    ['11 b2 00 00 | 00 00 00 01 | aa', { kind: 'audio', last: true, audio: hex('aa') }],
    ['11 b2 00 00 | 00 00 00 00', { kind: 'audio', last: true, audio: hex('') }],
    ['11 b2 00 00 | 00 00 00 05 | 00 00 00 01 aa', { kind: 'audio', last: true, audio: hex('00000001aa') }],
    ['11 c0 10 00 | 00 00 00 02 | 7b 7d', { kind: 'frontEnd' }],
    ['11 c1 10 00 | 00 00 00 01 | 00 00 00 02 | 7b 7d', { kind: 'frontEnd' }],
    [
      '11 f0 10 00 | 00 00 0b ea | 00 00 00 14 | 766f69636520 7479706520 6e6f7420 6578697374',
      { kind: 'error', code: 3050, text: 'voice type not exist' },
    ],
    ['11 f3 00 00 | 00 00 0b bd | 00 00 00 00', { kind: 'error', code: 3005, text: '' }],
  ])('%s is read as %j', (text, expected) => {
    expect(decodeFrame(hex(text))).toEqual(expected)
  })

  it.each([
    ['nothing at all', ''],
    ['half a header', '11 b0 00'],
    ['another version', '21 b0 00 00 | 00 00 00 00'],
    ['no header size', '10 b0 00 00 | 00 00 00 00'],
    ['the header size without a size', `1f b0 00 00 ${'00'.repeat(60)}`],
    ['a header longer than the message', '13 b0 00 00 | 00 00 00 00'],
    ['a client request', '11 10 10 00 | 00 00 00 02 | 7b 7d'],
    ['a full server response', '11 90 10 00 | 00 00 00 02 | 7b 7d'],
    ['the flag of another version', '11 b4 00 00 | 00 00 01 60 | 00 00 00 00'],
    ['an unknown serialization', '11 b1 30 00 | 00 00 00 01 | 00 00 00 01 | aa'],
    ['an unknown compression', '11 b1 0f 00 | 00 00 00 01 | 00 00 00 01 | aa'],
    ['audio without a size', '11 b1 00 00 | 00 00 00 01'],
    ['a last packet without a size', '11 b2 00 00'],
    ['left-over bytes', '11 b1 00 00 | 00 00 00 01 | 00 00 00 01 | aa bb'],
    ['left-over bytes in an acknowledgement', '11 b0 00 00 | 00 00 00 00 | aa'],
    ['a size beyond the message', '11 b1 00 00 | 00 00 00 01 | 7f ff ff ff | aa'],
    ['audio that is not the gzip it says it is', '11 b1 01 00 | 00 00 00 01 | 00 00 00 02 | aa bb'],
    ['an error that is not the gzip it says it is', '11 f0 11 00 | 00 00 0b ea | 00 00 00 02 | aa bb'],
    ['an error without a size', '11 f0 10 00 | 00 00 0b ea'],
    ['an error with unknown flags', '11 ff 10 00 | 00 00 0b ea | 00 00 00 00'],
    ['a front-end result without a size', '11 c0 10 00'],
  ])('with %s is malformed', (_, text) => {
    expect(decodeFrame(hex(text))).toBeUndefined()
  })

  it('yields the audio it was built from, whatever its header and compression', () => {
    fc.assert(
      fc.property(
        bytes(500),
        extension,
        positive,
        negative,
        fc.boolean(),
        fc.boolean(),
        (audio, words, up, down, last, isGzip) => {
          const message = frame({
            type: 0xb,
            flags: last ? 3 : 1,
            packing: isGzip ? '01' : '00',
            extension: words,
            number: last ? down : up,
            payload: isGzip ? gzipSync(audio) : audio,
          })
          expect(decodeFrame(message)).toEqual({ kind: 'audio', last, audio })
        },
      ),
    )
  })

  it('with the ambiguous flag is the last one with and without its sequence number', () => {
    fc.assert(
      fc.property(bytes(300), extension, fc.option(negative, { nil: undefined }), (audio, words, number) => {
        const parts = { type: 0xb, flags: 2, extension: words, payload: audio }
        const message = frame(number === undefined ? parts : { ...parts, number })
        expect(decodeFrame(message)).toEqual({ kind: 'audio', last: true, audio })
      }),
    )
  })

  it('yields the words of an error, plain or JSON, compressed or not', () => {
    const code = fc.integer({ min: 0, max: 0xffffffff })
    const words = fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => `# ${text}`)
    fc.assert(
      fc.property(code, words, extension, fc.boolean(), fc.boolean(), (number, message, size, isGzip, isJson) => {
        const text = Buffer.from(isJson ? JSON.stringify({ reqid: 'r1', code: number, message }) : message)
        const packing = isGzip ? '11' : '10'
        const payload = isGzip ? gzipSync(text) : text
        const decoded = decodeFrame(frame({ type: 0xf, flags: 0, packing, extension: size, number, payload }))
        expect(decoded).toEqual({ kind: 'error', code: number, text: message })
      }),
    )
  })

  it.each(['{"message":""}', '{"message":7}', 'null', '[]', '"voice"', '{"code":3001}'])(
    'shows the JSON itself when %s has no words',
    (text) => {
      const payload = Buffer.from(text)
      expect(decodeFrame(frame({ type: 0xf, flags: 0, packing: '10', number: 3001, payload }))).toEqual({
        kind: 'error',
        code: 3001,
        text,
      })
    },
  )

  it.each([
    ['an error', 0xf, '11', 64 * 1024],
    ['audio', 0xb, '01', 8 * 1024 * 1024],
  ])('of %s may hold so much decompressed and no byte more', (_, type, packing, maximum) => {
    const message = (size: number): Buffer =>
      frame({ type, flags: 1, packing, number: 1, payload: gzipSync(Buffer.alloc(size, 0x20)) })
    expect(decodeFrame(message(maximum))).toBeDefined()
    expect(decodeFrame(message(maximum + 1))).toBeUndefined()
  })

  it('is never half read: no beginning of a frame is a frame, but a bare acknowledgement', () => {
    const parts = fc.oneof(
      fc.record({
        type: fc.constantFrom(0xb, 0xc),
        flags: fc.constantFrom(1, 3),
        number: fc.oneof(positive, negative),
      }),
      fc.record({ type: fc.constant(0xf), flags: fc.constant(0), number: positive }),
      fc.record({ type: fc.constant(0xb), flags: fc.constant(2), number: negative }),
      fc.record({ type: fc.constantFrom(0xb, 0xc), flags: fc.constant(0) }),
    )
    fc.assert(
      fc.property(parts, extension, bytes(40), fc.boolean(), (known, words, content, isGzip) => {
        const payload = isGzip ? gzipSync(content) : content
        const message = frame({ ...known, packing: isGzip ? '01' : '00', extension: words, payload })
        expect(decodeFrame(message)).toBeDefined()
        for (let length = 0; length < message.length; length++) {
          const isBare = known.type === 0xb && known.flags === 0 && length === 4 + 4 * words
          expect(decodeFrame(message.subarray(0, length))).toEqual(isBare ? { kind: 'acknowledgement' } : undefined)
        }
        expect(decodeFrame(Buffer.concat([message, Buffer.from([0])]))).toBeUndefined()
      }),
    )
  })

  it('of arbitrary bytes is a known frame or malformed, never an exception', () => {
    const header = fc.tuple(
      fc.constantFrom(0x11, 0x12, 0x1f, 0x10),
      fc.constantFrom(0xb0, 0xb1, 0xb2, 0xb3, 0xc0, 0xf0, 0xf1),
      fc.constantFrom(0x00, 0x01, 0x10, 0x11),
      fc.constant(0),
    )
    const nearFrames = fc.tuple(header, bytes(40)).map(([head, rest]) => Buffer.concat([Buffer.from(head), rest]))
    fc.assert(
      fc.property(fc.oneof(bytes(64), nearFrames), (message) => {
        const decoded = decodeFrame(message)
        if (decoded !== undefined) expect(['acknowledgement', 'audio', 'frontEnd', 'error']).toContain(decoded.kind)
      }),
      { numRuns: 3000 },
    )
  })
})
