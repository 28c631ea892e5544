import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ManualSource, piecesOf, RecordingSink } from '../../../test/support/byte-streams.js'
import { GatewayError } from '../../core/gateway-error.js'
import { P3AudioSource } from './p3-stream.js'

describe('any answer', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 30 }), { minLength: 1, maxLength: 6 })
  const style = fc.record({
    newline: fc.constantFrom('\n', '\r\n'),
    comment: fc.constantFrom('', ': keep-alive', 'event: x'),
    repeats: fc.boolean(),
    ending: fc.constantFrom('full', 'done', 'no empty line', 'no line end'),
    form: fc.constantFrom('events', 'status first', 'one line each', 'object'),
    indent: fc.boolean(),
  })

  interface Sample {
    readonly audio: Buffer
    readonly stream: Buffer
    /** Position behind the last byte without which the answer is not complete. */
    readonly needed: number
  }

  const sample = fc.tuple(pieces, style).map(([parts, how]): Sample => {
    const buffers = parts.map((part) => Buffer.from(part))
    const audio = Buffer.concat(buffers)
    const object = (bytes: Buffer, status: number): string => {
      const hex = bytes.toString('hex')
      const data = how.form === 'status first' ? { status, audio: hex } : { audio: hex, status }
      return JSON.stringify({ data, base_resp: { status_code: 0, status_msg: '' } }, null, how.indent ? 1 : 0)
    }
    if (how.form === 'object') {
      const stream = Buffer.from(object(audio, 2))
      return { audio, stream, needed: stream.length }
    }
    const lines = (text: string): string => `data: ${text.replaceAll('\n', `${how.newline}data: `)}${how.newline}`
    const empty = how.form === 'one line each' ? '' : how.newline
    const begun = buffers.map(
      (bytes) => `${lines(object(bytes, 1))}${how.comment}${how.comment && how.newline}${empty}`,
    )
    const last = lines(object(how.repeats ? audio : Buffer.alloc(0), 2))
    const needed = Buffer.byteLength(begun.join('') + last.trimEnd())
    const tail = { full: empty, done: `${empty}data: [DONE]\n\n`, 'no empty line': '', 'no line end': '' }[how.ending]
    const whole = begun.join('') + (how.ending === 'no line end' ? last.trimEnd() : last + tail)
    return { audio, stream: Buffer.from(whole), needed }
  })

  function heardBytes(stream: Buffer, cuts: readonly number[]): { bytes: Buffer; ending: RecordingSink['ending'] } {
    const body = new ManualSource()
    const sink = new RecordingSink()
    new P3AudioSource(body, () => undefined).start(sink)
    body.data(...piecesOf(stream, cuts))
    body.end()
    return { bytes: Buffer.concat(sink.chunks), ending: sink.ending }
  }

  const cuts = fc.array(fc.nat(1500))

  it('is the same audio wherever its bytes were cut', () => {
    fc.assert(
      fc.property(sample, cuts, ({ audio, stream }, at) => {
        const { bytes, ending } = heardBytes(stream, at)
        expect(bytes).toEqual(audio)
        if (audio.length > 0) expect(ending).toBe('end')
      }),
      { numRuns: 400 },
    )
  })

  it('is never taken for complete when it breaks off anywhere, and what was heard until then is true', () => {
    fc.assert(
      fc.property(sample, cuts, fc.nat(), ({ audio, stream, needed }, at, length) => {
        const { bytes, ending } = heardBytes(stream.subarray(0, length % needed), at)
        expect(ending).toBeInstanceOf(GatewayError)
        expect(bytes).toEqual(audio.subarray(0, bytes.length))
      }),
      { numRuns: 400 },
    )
  })
})
