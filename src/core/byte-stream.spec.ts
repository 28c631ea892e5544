import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { collect, peek, joinedPieces } from './byte-stream.js'
import { GatewayError } from './errors.js'
import { clientDisconnected } from './request-context.js'
import { dataOf, FrameAssembler, framesOf, jsonOf, lastFrameEnd, StreamTail } from './sse.js'

const tooLarge = (): GatewayError => new GatewayError('upstream_failed', 'too large')

describe('collect', () => {
  it('resolves to the whole body in order', async () => {
    const source = new ManualSource()
    const whole = collect(source, 6, tooLarge)
    source.data('ab', '', 'cdef')
    source.end()
    expect((await whole).toString()).toBe('abcdef')
  })

  it('resolves to nothing for an empty body', async () => {
    const source = new ManualSource()
    const whole = collect(source, 0, tooLarge)
    source.end()
    expect(await whole).toHaveLength(0)
  })

  it('rejects with the failure of the body', async () => {
    const source = new ManualSource()
    const whole = collect(source, 10, tooLarge)
    source.data('abc')
    source.fail(new GatewayError('upstream_timeout', 'late'))
    await expect(whole).rejects.toMatchObject({ kind: 'upstream_timeout' })
  })

  it('gives up one byte over the maximum, and says so although the source reports its cancellation', async () => {
    class Reporting extends ManualSource {
      override cancel(): void {
        super.cancel()
        this.fail(clientDisconnected())
      }
    }
    const source = new Reporting()
    const whole = collect(source, 3, tooLarge)
    source.data('abc')
    expect(source.asked).toEqual([])
    source.data('d')
    expect(source.asked).toEqual(['cancel'])
    await expect(whole).rejects.toMatchObject({ kind: 'upstream_failed', message: 'too large' })
  })
})

describe('A held body', () => {
  const failure = (): GatewayError => new GatewayError('upstream_failed', 'reset')
  const settled = async (promise: Promise<unknown>): Promise<boolean> => {
    const pending = Symbol('pending')
    return (await Promise.race([promise.catch(() => undefined), Promise.resolve(pending)])) !== pending
  }

  let source: ManualSource
  beforeEach(() => {
    jest.useFakeTimers()
    source = new ManualSource()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  it('is handed over when enough bytes are there, and delivers them first, then the rest in order', async () => {
    const holding = peek(source, { bytes: 3 })
    source.data('ab')
    expect(await settled(holding)).toBe(false)
    source.data('c')
    const held = await holding
    source.data('d')
    expect(held.complete).toBeUndefined()
    const sink = new RecordingSink()
    held.start(sink)
    source.data('e')
    source.end()
    expect(sink.chunks.map(String)).toEqual(['ab', 'c', 'd', 'e'])
    expect(sink.ending).toBe('end')
  })

  it('is known as a whole when it ended in time, be it empty', async () => {
    const holding = peek(source, { bytes: 100 })
    source.data('ab', 'cd')
    source.end()
    const held = await holding
    expect(held.complete?.toString()).toBe('abcd')
    const sink = new RecordingSink()
    held.start(sink)
    expect([sink.text, sink.ending]).toEqual(['abcd', 'end'])
    const empty = new ManualSource()
    const holdingNothing = peek(empty, { bytes: 1 })
    empty.end()
    expect((await holdingNothing).complete).toHaveLength(0)
  })

  it('rejects when it fails before it was handed over', async () => {
    const holding = peek(source, { bytes: 100, graceMs: 1000 })
    source.data('ab')
    source.fail(failure())
    await expect(holding).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(jest.getTimerCount()).toBe(0)
  })

  it('rejects when it fails in the turn that brought enough bytes: none of them has left yet', async () => {
    const holding = peek(source, { bytes: 1 })
    source.data('ab')
    source.fail(failure())
    await expect(holding).rejects.toMatchObject({ kind: 'upstream_failed' })
  })

  it('reports a failure between the handing over and the start after what had arrived', async () => {
    const holding = peek(source, { bytes: 1 })
    source.data('ab')
    const held = await holding
    source.fail(failure())
    expect(held.complete).toBeUndefined()
    const sink = new RecordingSink()
    held.start(sink)
    expect([sink.text, sink.failure]).toEqual(['ab', 'upstream_failed'])
  })

  it('is handed over after the grace time although nothing came, and works from then on', async () => {
    const holding = peek(source, { bytes: 1, graceMs: 1000 })
    jest.advanceTimersByTime(999)
    expect(await settled(holding)).toBe(false)
    jest.advanceTimersByTime(1)
    const held = await holding
    const sink = new RecordingSink()
    held.start(sink)
    source.data('late')
    source.fail(failure())
    expect([sink.text, sink.failure]).toEqual(['late', 'upstream_failed'])
  })

  it('pauses an upstream that sends far more than was asked for, and resumes it at the start', async () => {
    const holding = peek(source, { bytes: 10 })
    source.data(Buffer.alloc(10 + 65_536))
    expect(source.asked).toEqual([])
    source.data('x')
    expect(source.asked).toEqual(['pause'])
    const held = await holding
    held.start(new RecordingSink())
    expect(source.asked).toEqual(['pause', 'resume'])
  })

  it('carries back-pressure and cancellation to the upstream', async () => {
    const holding = peek(source, { bytes: 1 })
    source.data('x')
    const held = await holding
    held.pause()
    held.resume()
    held.cancel()
    expect(source.asked).toEqual(['pause', 'resume', 'cancel'])
  })
})

const SMALL = Buffer.alloc(4_095, 's')
const LARGE = Buffer.alloc(4_096, 'L')

describe('The pieces of a body', () => {
  it('are the same bytes in the same order, however they are cut', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 4_090, max: 4_100 })))
    fc.assert(
      fc.property(sizes, (lengths) => {
        const pieces = lengths.map((length, index) => Buffer.alloc(length, index))
        const joined = joinedPieces(pieces)
        expect(Buffer.concat(joined).equals(Buffer.concat(pieces))).toBe(true)
        expect(joined.length).toBeLessThanOrEqual(pieces.length)
      }),
    )
  })

  it('become one while they are small', () => {
    expect(joinedPieces([SMALL, SMALL, SMALL])).toEqual([Buffer.concat([SMALL, SMALL, SMALL])])
  })

  it('are not copied when they are large, nor when they stand alone', () => {
    const joined = joinedPieces([SMALL, LARGE, LARGE, SMALL, SMALL])
    expect(joined.map(({ length }) => length)).toEqual([4_095, 4_096, 4_096, 8_190])
    expect(joined[0]).toBe(SMALL)
    expect(joined[1]).toBe(LARGE)
    expect(joined[2]).toBe(LARGE)
  })
})

describe('A stream in any chunks', () => {
  const frames = fc.array(
    fc.constantFrom('data: a\n\n', 'data: b\r\n\r\n', ': c\n\n', 'data: d\ndata: e\n\n', 'data: f'),
  )

  it('comes out whole, in regions that end with a frame', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 7 })), (parts, sizes) => {
        const stream = parts.join('')
        const assembler = new FrameAssembler()
        let out = ''
        for (let position = 0, index = 0; position < stream.length; index++) {
          const size = sizes[index % Math.max(1, sizes.length)] ?? 3
          const region = assembler.add(Buffer.from(stream.slice(position, position + size)))
          if (region !== undefined) expect(region.toString()).toMatch(/\n\r?\n$/)
          out += region?.toString() ?? ''
          position += size
        }
        expect(assembler.waitingBytes).toBe(stream.length - out.length)
        expect(out + assembler.takeRest().toString()).toBe(stream)
        expect(assembler.waitingBytes).toBe(0)
      }),
    )
  })
})

const frames = (text: string): string[] => [...framesOf(Buffer.from(text))].map(String)

describe('lastFrameEnd', () => {
  it.each([
    ['', 0],
    ['data: a', 0],
    ['data: a\n', 0],
    ['data: a\r\n\r', 0],
    ['data: a\n\n', 9],
    ['data: a\r\n\r\n', 11],
    ['data: a\r\n\n', 10],
    ['data: a\n\r\n', 10],
    ['data: a\n\ndata: b\n', 9],
    ['data: a\n\ndata: b\n\ndata', 18],
    ['\ndata: a', 0],
  ])('finds where the last whole frame of %j ends', (text, end) => {
    expect(lastFrameEnd(Buffer.from(text))).toBe(end)
  })
})

describe('framesOf', () => {
  it('parts LF, CRLF and mixed frames, each with its empty line', () => {
    expect(frames('data: a\n\ndata: b\r\n\r\nevent: c\ndata: c\n\r\n')).toEqual([
      'data: a\n\n',
      'data: b\r\n\r\n',
      'event: c\ndata: c\n\r\n',
    ])
  })

  it('loses no byte, whatever lines there are', () => {
    const text = '\n\ndata: a\n\n\n\r\n: note\n\n\r\n\r\ndata: b\n\nrest'
    expect(frames(text).join('')).toBe(text)
  })
})

describe('dataOf', () => {
  it.each([
    ['data: a\n\n', 'a'],
    ['data:a\n\n', 'a'],
    ['data:  a\r\n\r\n', ' a'],
    ['event: x\r\ndata: a\r\ndata: b\r\n\r\n', 'a\nb'],
    [': note\n\n', undefined],
    ['event: x\n\n', undefined],
    ['database: a\n\n', undefined],
  ])('reads the data of %j', (frame, data) => {
    expect(dataOf(Buffer.from(frame))).toBe(data)
  })
})

describe('jsonOf', () => {
  it.each(['data: [DONE]\n\n', 'data: {"a":\n\n', 'data: [1]\n\n', 'data: null\n\n', ': note\n\n'])(
    'is undefined for %j',
    (frame) => {
      expect(jsonOf(Buffer.from(frame))).toBeUndefined()
    },
  )

  it('reads an object, over several data lines too', () => {
    expect(jsonOf(Buffer.from('data: {"a":\ndata: "ü"}\n\n'))).toEqual({ a: 'ü' })
  })
})

const TAIL_BYTES = 4096

const frameOf = (length: number, index: number): string => `event: e${index}\ndata: ${'x'.repeat(length)}\n\n`

function tailOf(regions: readonly (readonly string[])[]): string {
  const tail = new StreamTail()
  for (const frames of regions) {
    const region = Buffer.from(frames.join(''))
    tail.add(region)
    // The owner of the region may use its memory again.
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
