import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { type Frame, FrameFault, FrameReader, frameStart } from './protocol.js'

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
      head: fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
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
