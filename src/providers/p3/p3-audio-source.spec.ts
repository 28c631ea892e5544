import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ManualSource, piecesOf, RecordingSink } from '../../../test/support/byte-streams.js'
import { GatewayError } from '../../common/errors/gateway-error.js'
import { P3AudioSource } from './p3-audio-source.js'
import type { P3Envelope } from './p3-envelope.js'

const audioOf = (text: string): string => Buffer.from(text).toString('hex')

const json = (audio: string, status: number | undefined, more: object = {}): string =>
  JSON.stringify({ data: { audio: audioOf(audio), status, ced: '' }, trace_id: 't', ...more })

const event = (audio: string, status = 1, more: object = {}): string => `data: ${json(audio, status, more)}\n\n`

interface Heard {
  readonly audio: string
  /** `end`, or what went wrong. */
  readonly ending: string | undefined
  readonly envelopes: readonly P3Envelope[]
  readonly asked: readonly string[]
  readonly error?: GatewayError
}

const REFUSED = new GatewayError('rate_limited', 'refused')

/** Hears an answer that arrives in these pieces and, unless it is left open, ends. */
function hear(pieces: readonly (string | Buffer)[], ending: 'end' | 'open' | GatewayError = 'end'): Heard {
  const body = new ManualSource()
  const sink = new RecordingSink()
  const envelopes: P3Envelope[] = []
  const source = new P3AudioSource(body, (envelope) => {
    envelopes.push(envelope)
    if (envelope.code !== 0) throw REFUSED
  })
  source.start(sink)
  body.data(...pieces)
  if (ending === 'end') body.end()
  else if (ending !== 'open') body.fail(ending)
  const isEnd = sink.ending === 'end' || sink.ending === undefined
  const heard = { audio: sink.text, envelopes, asked: body.asked }
  return isEnd
    ? { ...heard, ending: sink.ending as string | undefined }
    : { ...heard, ending: (sink.ending as GatewayError).message, error: sink.ending as GatewayError }
}

describe('the audio of an event stream', () => {
  it('is passed on in order, without the repetition in the last event', () => {
    expect(hear([event('one '), event('two '), event('three'), event('one two three', 2)])).toMatchObject({
      audio: 'one two three',
      ending: 'end',
    })
  })

  it('is that of the last event when nothing was said before it', () => {
    expect(hear([event('everything', 2)])).toMatchObject({ audio: 'everything', ending: 'end' })
    expect(hear([event('', 1), event('everything', 2)])).toMatchObject({ audio: 'everything', ending: 'end' })
  })

  it('is whole behind a byte-order mark and empty lines', () => {
    const stream = Buffer.from(`\ufeff\r\n\n${event('one')}${event('', 2)}`)
    for (const cut of [1, 2, 3, 5]) {
      expect(hear(piecesOf(stream, [cut]))).toMatchObject({ audio: 'one', ending: 'end' })
    }
  })

  it('leaves before its own event has ended, as long as nothing was said before it', () => {
    const head = event('soon').slice(0, -30)
    const tail = event('soon').slice(-30)
    expect(hear([head], 'open').audio).toBe('soon')
    expect(hear([head, tail, head], 'open').audio).toBe('soon')
    expect(hear([head, tail, head, tail], 'open').audio).toBe('soonsoon')
  })

  it.each([
    ['', 'The upstream answered with something that is not speech.'],
    ['<html><body>data: x</body></html>', 'The upstream answered with something that is not speech.'],
    ['data: [DONE]\n\n', 'The upstream answered with something that is not speech.'],
    [event('', 2), 'The upstream answered without audio.'],
    [event('one'), 'The upstream ended its answer before it was complete.'],
    [event('one') + event('two', 2).slice(0, -10), 'The upstream ended its answer before it was complete.'],
    ['data: {"data":{"audio":"fg","status":2}}\n\n', 'The upstream sent audio that is not hexadecimal.'],
    ['data: {"data":{"audio":"fff","status":2}}\n\n', 'The upstream sent half a byte of audio.'],
    ['data: {"data":{"\\u0061udio":"ff","status":2}}\n\n', 'The upstream sent audio that cannot be read.'],
    ['data: {"data":{"audio":"ff","status":2},}\n\n', 'The upstream answered with broken JSON.'],
    ['data: {"data":{"audio":"ff\n\n', 'The upstream answered with broken JSON.'],
    ['data: 7\n\n', 'The upstream answered with broken JSON.'],
    [
      event('one', 2, { base_resp: { status_code: '1004' } }),
      'The upstream answered without a status that can be read.',
    ],
  ])('is broken in %j', (stream, message) => {
    const heard = hear([stream])
    expect(heard.ending).toBe(message)
    expect(heard.error).toMatchObject({ kind: 'upstream_failed', details: { attempt: { channelFault: true } } })
  })

  it('ends with the failure that an event reports, and the upstream call with it', () => {
    const refusal = 'data: {"data":null,"base_resp":{"status_code":1002,"status_msg":"slow down"}}\n\n'
    expect(hear([refusal, event('late', 2)])).toMatchObject({ audio: '', error: REFUSED, asked: ['cancel'] })
    expect(hear([event('one') + refusal + event('one', 2)])).toMatchObject({ audio: 'one', error: REFUSED })
  })

  it('is whole once its last event has come, whatever happens afterwards', () => {
    const whole = event('one') + event('', 2)
    const cut = new GatewayError('upstream_failed', 'cut')
    expect(hear([whole], cut)).toMatchObject({ audio: 'one', ending: 'end' })
    expect(hear([whole + 'data: {"base_resp":{"status_code":1000}}\n\nrubbish'])).toMatchObject({ ending: 'end' })
    expect(hear([event('one')], cut)).toMatchObject({ audio: 'one', error: cut })
  })

  it('ends with the event that completes it, without waiting for the upstream to hang up', () => {
    const body = new ManualSource()
    const sink = new RecordingSink()
    new P3AudioSource(body, () => undefined).start(sink)
    body.data(event('one') + event('', 2))
    expect(sink.ending).toBe('end')
    body.end()
    expect(sink.text).toBe('one')
  })

  it('tells what each event says besides', () => {
    const figures = { extra_info: { usage_characters: 34, audio_length: 1240 }, base_resp: { status_code: 0 } }
    expect(hear([event('one') + event('', 2, figures)]).envelopes).toEqual([
      { code: 0, message: '', audio: '', status: 1, traceId: 't' },
      { code: 0, message: '', audio: '', status: 2, traceId: 't', billedCharacters: 34, audioMs: 1240 },
    ])
  })

  it('is dropped in any length where it is a repetition, and refused where it is not', () => {
    const large = 'x'.repeat(4 * 1024 * 1024 + 1)
    expect(hear([event('one'), event(large, 2)])).toMatchObject({ audio: 'one', ending: 'end' })
    expect(hear([event('one'), event(large, 1)]).ending).toBe('The upstream sent too much audio in one event.')
    expect(hear([event('one'), event(large.slice(1), 1), event('', 2)]).audio).toHaveLength(large.length + 2)
    expect(hear([event(large, 1), event('', 2)]).audio).toHaveLength(large.length)
  })

  it('is given up by whoever listens, and nothing comes after that', () => {
    const body = new ManualSource()
    const source = new P3AudioSource(body, () => undefined)
    const sink = new RecordingSink()
    source.start({
      data: (chunk) => {
        sink.data(chunk)
        source.cancel()
        body.fail(new GatewayError('caller_left', 'left'))
      },
      end: () => {
        sink.end()
      },
      fail: (error) => {
        sink.fail(error)
      },
    })
    body.data(event('one') + event('two') + event('', 2))
    expect([sink.text, sink.failure, body.asked]).toEqual(['one', 'caller_left', ['cancel']])
  })

  it('is slowed down where it comes from', () => {
    const body = new ManualSource()
    const source = new P3AudioSource(body, () => undefined)
    source.pause()
    source.resume()
    expect(body.asked).toEqual(['pause', 'resume'])
  })

  it('holds no connection once it is whole, whether its reader paused before its end or pauses after it', () => {
    for (const pausesAt of ['data', 'end'] as const) {
      const body = new ManualSource()
      const source = new P3AudioSource(body, () => undefined)
      source.start({
        data: () => {
          if (pausesAt === 'data') source.pause()
        },
        end: () => {
          if (pausesAt === 'end') source.pause()
        },
        fail: () => undefined,
      })
      body.data(event('one') + event('', 2))
      expect(body.asked.at(-1)).toBe('resume')
      source.pause()
      expect(body.asked.at(-1)).toBe('resume')
    }
  })
})

describe('the audio of one JSON object in place of events', () => {
  it.each([2, undefined])('is passed on while it arrives, with the status %s', (status) => {
    const whole = json('everything', status)
    expect(hear([whole.slice(0, 30)], 'open').audio).not.toBe('')
    expect(hear([whole])).toMatchObject({ audio: 'everything', ending: 'end' })
    expect(hear(['\n \ufeff', whole, '\r\n'])).toMatchObject({ audio: 'everything', ending: 'end' })
  })

  it('is incomplete when it says so, and broken when it is cut', () => {
    expect(hear([json('some', 1)]).ending).toBe('The upstream ended its answer before it was complete.')
    expect(hear([json('some', 2).slice(0, -1)]).ending).toBe('The upstream answered with broken JSON.')
    expect(hear([json('some', 2) + json('some', 2)]).ending).toBe('The upstream answered with broken JSON.')
    expect(hear(['{}']).ending).toBe('The upstream answered without audio.')
  })

  it('is a failure when the object reports one', () => {
    expect(hear(['{"data":null,"base_resp":{"status_code":1004}}'])).toMatchObject({ audio: '', error: REFUSED })
  })
})

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
