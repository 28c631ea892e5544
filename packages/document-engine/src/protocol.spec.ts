import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../../test/support/arbitraries.js'
import { EngineFault, type EngineOutput, faultBehind, NO_METADATA } from './model/document.js'
import { faultAnswer, type Frame, FrameFault, FrameReader, frameStart, readAnswer } from './protocol.js'

describe('What a library throws', () => {
  it('is the document’s fault, with what was thrown as its cause', () => {
    const thrown = new TypeError('no such part')
    const fault = faultBehind(thrown, 'broken', 'The file is damaged.')
    expect(fault).toBeInstanceOf(EngineFault)
    expect(fault).toMatchObject({ fault: 'broken', message: 'The file is damaged.', cause: thrown })
  })

  it.each([new RangeError('Array buffer allocation failed'), new EngineFault('too_large', 'Too many elements.')])(
    'stays what it is when it is %s',
    (thrown) => {
      expect(faultBehind(thrown, 'broken', 'The file is damaged.')).toBe(thrown)
    },
  )
})

const ROOMY = { headBytes: 1_000_000, payloadBytes: 1_000_000 }

function readerInto(frames: Frame[], limits = ROOMY): FrameReader {
  return new FrameReader(
    () => limits,
    (frame) => {
      frames.push(frame)
    },
  )
}

describe('Frames', () => {
  it('arrive as they were sent, however the bytes between are cut', () => {
    const frame = fc.record({
      head: fc.dictionary(fc.string({ unit: codePoint }), fc.jsonValue({ stringUnit: codePoint })),
      payload: fc.uint8Array(),
    })
    fc.assert(
      fc.property(fc.array(frame), fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sent, cuts) => {
        const wire = Buffer.concat(sent.flatMap(({ head, payload }) => [frameStart(head, payload.length), payload]))
        const received: Frame[] = []
        const reader = readerInto(received)
        for (let at = 0, turn = 0; at < wire.length; turn += 1) {
          const bytes = cuts[turn % cuts.length] ?? 1
          reader.push(wire.subarray(at, at + bytes))
          at += bytes
        }
        expect(received.map(({ head, payload }) => ({ head, payload: [...payload] }))).toEqual(
          sent.map(({ head, payload }) => ({
            head: JSON.parse(JSON.stringify(head)) as unknown,
            payload: [...payload],
          })),
        )
      }),
    )
  })

  it('own the memory of their payload alone', () => {
    const frames: Frame[] = []
    readerInto(frames).push(Buffer.concat([frameStart({}, 3), Buffer.from('abc')]))
    expect(frames[0]?.payload.buffer.byteLength).toBe(3)
  })

  it.each([
    ['a head', { headBytes: 1, payloadBytes: 10 }],
    ['a payload', { headBytes: 10, payloadBytes: 4 }],
  ])('that declare %s beyond the limit are refused before anything of it came', (_what, limits) => {
    const reader = readerInto([], limits)
    expect(() => {
      reader.push(frameStart({}, 5).subarray(0, 8))
    }).toThrow(FrameFault)
  })

  it('at the limit are taken', () => {
    const frames: Frame[] = []
    readerInto(frames, { headBytes: 2, payloadBytes: 5 }).push(Buffer.concat([frameStart({}, 5), Buffer.from('hello')]))
    expect(frames.map(({ payload }) => payload.toString())).toEqual(['hello'])
  })

  it('whose head is no JSON are refused', () => {
    const wire = frameStart({ a: 1 }, 0)
    wire.write('x', 8)
    expect(() => {
      readerInto([]).push(wire)
    }).toThrow(FrameFault)
  })
})

const output = (parts: Partial<EngineOutput> = {}): EngineOutput => ({
  kind: 'html',
  metadata: NO_METADATA,
  html: '',
  markdown: '',
  pages: 1,
  ...parts,
})

describe('The answer with a document', () => {
  it('carries the content as two members of JSON text, in UTF-8 whatever the strings hold', () => {
    const { head, payload } = readAnswer(output({ html: '<p>\u2028"é"</p>', markdown: 'lone \ud800 \u0000' }), 1000)
    expect(head).toEqual({ outcome: 'read', kind: 'html', metadata: NO_METADATA, pages: 1 })
    expect(JSON.parse(`{${payload.toString()}}`)).toEqual({ html: '<p>\u2028"é"</p>', markdown: 'lone \ud800 \u0000' })
    expect(payload.toString()).toContain('\\ud800')
  })

  it('is a fault of the document when the content is longer than the gateway takes', () => {
    const text = '"html":"","markdown":"äß"'
    const bytes = Buffer.byteLength(text)
    expect(readAnswer(output({ markdown: 'äß' }), bytes).payload.toString()).toBe(text)
    expect(readAnswer(output({ markdown: 'äß' }), bytes - 1)).toMatchObject({
      head: { outcome: 'fault', fault: 'too_large' },
      payload: Buffer.alloc(0),
    })
  })

  it('has a head of bounded length, whatever the document says of itself', () => {
    const pages = Array.from({ length: 100_000 }, (_, page) => page + 1)
    const warning = { code: 'pages_unread', message: 'm'.repeat(100_000), pages } as const
    const warnings = Array.from({ length: 100 }, () => warning)
    const metadata = { ...NO_METADATA, title: 't'.repeat(1_000_000), keywords: 'k', warnings }
    const { head } = readAnswer(output({ metadata }), 1000)
    expect(JSON.stringify(head).length).toBeLessThan(100_000)
    expect(head).toMatchObject({ metadata: { keywords: 'k' } })
  })
})

function stackOverflow(): unknown {
  const dive = (): number => dive() + 1
  try {
    return dive()
  } catch (error) {
    return error
  }
}

function thrownBy(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

describe('The answer to a failure', () => {
  it.each([
    [
      'a fault of the document',
      new EngineFault('encrypted', 'Locked.'),
      { outcome: 'fault', fault: 'encrypted', message: 'Locked.' },
    ],
    ['a stack that is full', stackOverflow(), { outcome: 'fault', fault: 'too_large' }],
    [
      'a buffer over the maximum',
      new RangeError('Invalid typed array length: 4503599627370496'),
      { outcome: 'out_of_memory' },
    ],
    ['a string over the maximum', thrownBy(() => 'x'.repeat(2 ** 30)), { outcome: 'out_of_memory' }],
    ['memory the system refused', new RangeError('Array buffer allocation failed'), { outcome: 'out_of_memory' }],
    ['any other range', new RangeError('toFixed() digits argument must be between 0 and 100'), { outcome: 'failed' }],
    ['anything thrown', 'a word', { outcome: 'failed', reason: 'a word' }],
  ])('%s', (_what, error, head) => {
    expect(faultAnswer(error)).toMatchObject({ head, payload: Buffer.alloc(0) })
  })
})
