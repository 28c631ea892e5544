import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { GatewayError } from '../core/gateway-error.js'
import { KEEP_ALIVE_MS } from '../upstream/sse-relay.js'
import { estimateSpeechUsage, SpeechEventSource } from './speech-response.js'

const USAGE = { input_tokens: 3, output_tokens: 5, total_tokens: 8 }

function started(): { source: ManualSource; sink: RecordingSink; events: SpeechEventSource } {
  const source = new ManualSource()
  const sink = new RecordingSink()
  const events = new SpeechEventSource(source, () => USAGE)
  events.start(sink)
  return { source, sink, events }
}

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  expect(jest.getTimerCount()).toBe(0)
  jest.useRealTimers()
})

describe('Speech events built from raw audio', () => {
  it('carry each piece as base64 of its own, then the usage, then the terminator, all framed with CRLF', () => {
    const { source, sink } = started()
    source.data(Buffer.from([1]), Buffer.from([2, 3, 4, 5]))
    source.end()
    expect(sink.chunks.map(String)).toEqual([
      'data: {"type":"speech.audio.delta","audio":"AQ=="}\r\n\r\n',
      'data: {"type":"speech.audio.delta","audio":"AgMEBQ=="}\r\n\r\n',
      'data: {"type":"speech.audio.done","usage":{"input_tokens":3,"output_tokens":5,"total_tokens":8,"estimated":true}}' +
        '\r\n\r\ndata: [DONE]\r\n\r\n',
    ])
    expect(sink.ending).toBe('end')
  })

  it('fail without a done event when the audio breaks off', () => {
    const { source, sink } = started()
    source.data('abc')
    source.fail(new GatewayError('upstream_failed', 'reset'))
    expect(sink.text).not.toContain('done')
    expect(sink.failure).toBe('upstream_failed')
  })

  it('fail when the upstream sent no audio at all, as nobody may be billed for silence', () => {
    const { source, sink } = started()
    source.end()
    expect(sink.ending).toMatchObject({ kind: 'upstream_failed', details: { attempt: { channelFault: true } } })
    expect(sink.text).toBe('')
  })

  it('are kept alive by comments in silence, and no longer once they are cancelled', () => {
    const { source, sink, events } = started()
    source.data('a')
    jest.advanceTimersByTime(KEEP_ALIVE_MS)
    expect(sink.chunks.at(-1)?.toString()).toBe(': keep-alive\r\n\r\n')
    events.pause()
    events.resume()
    events.cancel()
    expect(source.asked).toEqual(['pause', 'resume', 'cancel'])
    jest.advanceTimersByTime(KEEP_ALIVE_MS)
    expect(sink.chunks).toHaveLength(2)
  })
})

describe('estimateSpeechUsage', () => {
  it('counts characters as code points', () => {
    expect(estimateSpeechUsage('🎉🎉🎉🎉')).toEqual(estimateSpeechUsage('abcd'))
    expect(estimateSpeechUsage('a'.repeat(900))).toEqual({
      input_tokens: 225,
      output_tokens: 1000,
      total_tokens: 1225,
      input_characters: 900,
    })
  })

  it('prefers what the provider said itself: its characters and its milliseconds', () => {
    expect(estimateSpeechUsage('abcd', { characters: 8, audioMs: 60_000 })).toEqual({
      input_tokens: 1,
      output_tokens: 1000,
      total_tokens: 1001,
      input_characters: 8,
    })
  })
})
