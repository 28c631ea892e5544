import { describe, expect, it } from '@jest/globals'
import { ManualSource, piecesOf, RecordingSink } from '../../../test/support/byte-streams.js'
import { event, hear, json, REFUSED } from '../../../test/support/p3-heard.js'
import { GatewayError } from '../../core/gateway-error.js'
import { P3AudioSource } from './p3-stream.js'

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
