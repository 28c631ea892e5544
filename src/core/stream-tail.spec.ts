import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { StreamTail } from './stream-tail.js'

const TAIL_BYTES = 4096

const frameOf = (length: number, index: number): string => `event: e${index}\ndata: ${'x'.repeat(length)}\n\n`

function tailOf(regions: readonly (readonly string[])[]): string {
  const tail = new StreamTail()
  for (const frames of regions) {
    const region = Buffer.from(frames.join(''))
    tail.add(region)
    // Whoever gave the region may use its memory again.
    region.fill(0)
  }
  return tail.bytes.toString()
}

/** Streams of frames, most of them short, cut into regions of whole frames. */
const streams = fc.array(
  fc.array(fc.oneof({ weight: 8, arbitrary: fc.nat(400) }, { weight: 1, arbitrary: fc.nat(20_000) }), {
    minLength: 1,
    maxLength: 12,
  }),
  { minLength: 1, maxLength: 30 },
)

describe('The tail of a stream', () => {
  it('is its end, with the last frame whole and four KiB of lines, wherever the regions were cut', () => {
    fc.assert(
      fc.property(streams, (lengths) => {
        let index = 0
        const regions = lengths.map((frames) => frames.map((length) => frameOf(length, index++)))
        const all = regions.flat()
        const stream = all.join('')
        const tail = tailOf(regions)
        expect(stream.endsWith(tail)).toBe(true)
        expect(tail.endsWith(all.at(-1) ?? '')).toBe(true)
        const cutLine = stream.length > tail.length ? stream.slice(0, -tail.length).split('\n').at(-1) : ''
        expect(cutLine).toBe('')
        // All lines that begin within the last 4 KiB.
        const first = stream.indexOf('\n', Math.max(0, stream.length - TAIL_BYTES - 1)) + 1
        if (stream.length > TAIL_BYTES) expect(tail.length).toBeGreaterThanOrEqual(stream.length - first)
        else expect(tail).toBe(stream)
      }),
      { numRuns: 300 },
    )
  })

  it('stays small, however long the stream and whatever was large in it', () => {
    const tail = new StreamTail()
    tail.add(Buffer.from(frameOf(1_000_000, 0)))
    expect(tail.bytes.length).toBeGreaterThan(1_000_000)
    for (let index = 0; index < 1_000; index++) {
      tail.add(Buffer.from(frameOf(200, index)))
      expect(tail.bytes.length).toBeLessThanOrEqual(2 * TAIL_BYTES)
    }
    expect(tail.bytes.buffer.byteLength).toBe(2 * TAIL_BYTES)
  })
})
