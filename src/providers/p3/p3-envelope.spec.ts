import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../../core/gateway-error.js'
import { readEnvelope } from './p3-envelope.js'

const withVerdict = (verdict: unknown): string =>
  JSON.stringify({ data: { audio: 'https://files.example.com/a.mp3', status: 2 }, base_resp: verdict })

const UNREADABLE = { kind: 'upstream_failed', details: { attempt: { phase: 'answered', channelFault: true } } }

function failureOf(text: string): unknown {
  try {
    return readEnvelope(text)
  } catch (error) {
    return error
  }
}

describe('what P3 says around the audio', () => {
  it('is read from where it stands', () => {
    const extra_info = { usage_characters: 34, audio_length: 1240, audio_size: 4096 }
    const data = { audio: 'https://files.example.com/a.mp3', status: 2, subtitle_file: 'https://files.example.com/s' }
    const base_resp = { status_code: 1002, status_msg: 'slow down' }
    expect(readEnvelope(JSON.stringify({ data, extra_info, trace_id: 't', base_resp }))).toEqual({
      code: 1002,
      message: 'slow down',
      audio: data.audio,
      status: 2,
      subtitleFile: data.subtitle_file,
      billedCharacters: 34,
      audioMs: 1240,
      audioBytes: 4096,
      traceId: 't',
    })
  })

  it('is no figure where it is none', () => {
    const extra_info = { usage_characters: 0, audio_length: '1240', audio_size: -1 }
    expect(readEnvelope(JSON.stringify({ extra_info }))).toEqual({ code: 0, message: '', audio: '' })
  })

  it.each(['', '[]', 'null', '7', '"x"', '{"data":', '{} {}'])('is broken in %j', (text) => {
    expect(failureOf(text)).toMatchObject(UNREADABLE)
  })
})

describe('the verdict of P3', () => {
  it('is success where there is none: then the audio decides', () => {
    for (const verdict of [undefined, null]) expect(readEnvelope(withVerdict(verdict)).code).toBe(0)
    expect(readEnvelope(withVerdict({ status_code: 0 })).code).toBe(0)
  })

  it.each([-1, 1004, 20132])('is a failure with the code %s', (code) => {
    expect(readEnvelope(withVerdict({ status_code: code, status_msg: 5 }))).toMatchObject({ code, message: '' })
  })

  it.each([
    {},
    [],
    'failed',
    0,
    true,
    { status_code: null },
    { status_code: '0' },
    { status_code: '1004' },
    { status_code: 0.5 },
  ])('is no success where it cannot be read: %j', (verdict) => {
    const failure = failureOf(withVerdict(verdict))
    expect(failure).toBeInstanceOf(GatewayError)
    expect(failure).toMatchObject(UNREADABLE)
  })
})
