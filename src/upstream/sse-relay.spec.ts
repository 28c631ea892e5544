import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { ManualSource, piecesOf, RecordingSink } from '../../test/support/byte-streams.js'
import { GatewayError } from '../core/errors.js'
import { DeltaCounter } from '../core/token-counter.js'
import { CHAT_EVENTS, SPEECH_EVENTS, TRANSCRIPTION_EVENTS } from '../dialects/openai-wire.js'
import { KEEP_ALIVE_MS, READ_ON_MS, type FramesFilter, type SseDialect, SseRelay } from './sse-relay.js'

const MESSAGES_EVENTS: SseDialect = { completionMarks: ['event: message_stop'], errorMark: 'event: error' }

const CHUNK = 'data: {"choices":[{"index":0,"delta":{"content":"Grüße 🎉 日本"},"finish_reason":null}]}\n\n'
const STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
const DONE = 'data: [DONE]\n\n'
const SPOKEN = 'data: {"type":"speech.audio.delta","audio":"UklGRg=="}\r\n\r\n'
const SPEECH_DONE = 'data: {"type":"speech.audio.done","usage":{"input_tokens":1}}\r\n\r\n'

function relayOf(dialect: SseDialect, filter?: FramesFilter) {
  const source = new ManualSource()
  const sink = new RecordingSink()
  const relay = new SseRelay(source, dialect, filter)
  relay.start(sink)
  return { source, sink, relay }
}

function relayed(dialect: SseDialect, ...pieces: readonly (string | Buffer)[]) {
  const { source, sink } = relayOf(dialect)
  source.data(...pieces)
  source.end()
  return { source, sink }
}

const reset = (): GatewayError => new GatewayError('upstream_failed', 'reset', { attempt: { phase: 'sent' } })

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  expect(jest.getTimerCount()).toBe(0)
  jest.useRealTimers()
})

const SECRETS = 'Visit "https://api.openai.com/x" with sk-abcdefgh of org-secret1'
const CLEAN = 'Visit "[address]" with [key] of [account]'
const errorFrame = (message: string): string =>
  `data: ${JSON.stringify({ error: { message, type: 'server_error', param: null, code: null } })}\n\n`

/** What the caller gets: the stream, then the frame with which its failure is shown. */
function shown({ text, ending }: RecordingSink): string {
  if (ending === undefined || ending === 'end') return text
  return text + (ending.details.frame ?? '')
}

describe('A relayed event stream', () => {
  it.each([
    ['LF', CHAT_EVENTS, `: hello\n\n${CHUNK}${CHUNK}${STOP}${DONE}`],
    ['CRLF', SPEECH_EVENTS, `${SPOKEN}${SPOKEN}${SPEECH_DONE}data: [DONE]\r\n\r\n`],
    ['named events', MESSAGES_EVENTS, 'event: ping\ndata: {}\n\nevent: message_stop\ndata: {"é":1}\n\n'],
  ])('arrives byte for byte however it was cut into pieces (%s)', (_name, dialect, text) => {
    const bytes = Buffer.from(text)
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 40 }), (cuts) => {
        const { sink } = relayed(dialect, ...piecesOf(bytes, cuts))
        expect(sink.text).toBe(text)
        expect(sink.ending).toBe('end')
      }),
    )
    expect(relayed(dialect, ...piecesOf(bytes, [...bytes.keys()])).sink.text).toBe(text)
  })

  it('passes each frame on as soon as it is whole, never a part of one', () => {
    const { source, sink, relay } = relayOf(CHAT_EVENTS)
    source.data(CHUNK.slice(0, 20))
    expect(sink.chunks).toEqual([])
    source.data(CHUNK.slice(20) + CHUNK.slice(0, 5))
    expect(sink.text).toBe(CHUNK)
    relay.cancel()
  })

  it.each([
    ['nothing at all', CHAT_EVENTS, ''],
    ['a chunk', CHAT_EVENTS, CHUNK],
    ['half a frame', CHAT_EVENTS, CHUNK + STOP.slice(0, 30)],
    ['speech without its done event', SPEECH_EVENTS, `${SPOKEN}data: [DONE]\r\n\r\n`],
    ['a transcript delta', TRANSCRIPTION_EVENTS, 'data: {"type":"transcript.text.delta","delta":"a"}\r\n\r\n'],
    ['a message without its stop', MESSAGES_EVENTS, 'event: message_delta\ndata: {}\n\n'],
  ])('fails when the upstream stops politely after %s', (_name, dialect, text) => {
    const { sink } = relayed(dialect, text)
    expect(sink.ending).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
    })
    expect(text.startsWith(sink.text)).toBe(true)
    expect(sink.text).toMatch(/^$|\n\r?\n$/)
  })

  it.each([
    [CHAT_EVENTS, CHUNK, STOP + DONE],
    [SPEECH_EVENTS, SPOKEN, `${SPEECH_DONE}data: [DONE]\r\n\r\n`],
    [MESSAGES_EVENTS, 'event: ping\ndata: {}\n\n', 'event: message_stop\ndata: {}\n\n'],
  ])('is complete when the connection breaks after its last event, and failed before it', (dialect, before, last) => {
    const broken = relayOf(dialect)
    broken.source.data(before)
    broken.source.fail(reset())
    expect(broken.sink.failure).toBe('upstream_failed')
    const whole = relayOf(dialect)
    whole.source.data(before, last)
    whole.source.fail(reset())
    expect(whole.sink.ending).toBe('end')
    expect(whole.sink.text).toBe(before + last)
  })

  it.each([
    [CHAT_EVENTS, { choices: [{ delta: { content: 'data: [DONE]\n\ndata: [DONE]\n\n' }, finish_reason: null }] }],
    [CHAT_EVENTS, { choices: [{ delta: { content: '"finish_reason":"stop"' }, finish_reason: null }] }],
    [CHAT_EVENTS, { choices: [{ delta: { content: 'finish_reason' } }] }],
    [SPEECH_EVENTS, { type: 'speech.audio.delta', audio: '"speech.audio.done"' }],
    [TRANSCRIPTION_EVENTS, { type: 'transcript.text.delta', delta: '"transcript.text.done" data: [DONE]' }],
    [MESSAGES_EVENTS, { type: 'content_block_delta', delta: { text: '\nevent: message_stop\n' } }],
  ])('is not complete because the text of a model says so', (dialect, event) => {
    expect(relayed(dialect, `data: ${JSON.stringify(event)}\n\n`).sink.failure).toBe('upstream_failed')
  })

  it('counts a last frame without its empty line, and closes it', () => {
    const { sink } = relayed(CHAT_EVENTS, CHUNK, 'data: [DONE]')
    expect(sink.text).toBe(`${CHUNK}data: [DONE]\n\n`)
    expect(sink.ending).toBe('end')
  })

  it('gains the terminator of its dialect when the upstream left it out, and only then', () => {
    expect(relayed(SPEECH_EVENTS, SPOKEN, SPEECH_DONE).sink.text).toBe(`${SPOKEN}${SPEECH_DONE}data: [DONE]\r\n\r\n`)
    expect(relayed(SPEECH_EVENTS, SPOKEN, SPEECH_DONE, 'data: [DONE]\r\n\r\n').sink.text.match(/DONE/g)).toHaveLength(1)
    expect(relayed(CHAT_EVENTS, CHUNK, STOP).sink.text).toBe(CHUNK + STOP)
  })

  it('is given up when one frame grows beyond 16 MiB', () => {
    const { source, sink } = relayOf(CHAT_EVENTS)
    source.data(CHUNK, 'data: ', Buffer.alloc(16 * 1024 * 1024, 'x'))
    expect(sink.failure).toBe('upstream_failed')
    expect(source.asked).toEqual(['cancel'])
    source.data('more')
    expect(sink.text).toBe(CHUNK)
  })

  it('carries back-pressure and cancellation to the upstream', () => {
    const { source, relay } = relayOf(CHAT_EVENTS)
    relay.pause()
    relay.resume()
    relay.cancel()
    expect(source.asked).toEqual(['pause', 'resume', 'cancel'])
  })

  it('leaves out what its filter leaves out', () => {
    const { source, sink } = relayOf(CHAT_EVENTS, (region) => (region.includes('usage') ? Buffer.alloc(0) : region))
    source.data(CHUNK)
    source.data('data: {"usage":1}\n\n')
    source.data(DONE)
    source.end()
    expect(sink.chunks.map(String)).toEqual([CHUNK, DONE])
  })
})

describe('Keep-alive comments', () => {
  it('are sent after each 15 s of silence, between frames only', () => {
    const { source, sink, relay } = relayOf(CHAT_EVENTS)
    source.data(CHUNK, CHUNK.slice(0, 10))
    jest.advanceTimersByTime(KEEP_ALIVE_MS)
    jest.advanceTimersByTime(KEEP_ALIVE_MS)
    source.data(CHUNK.slice(10))
    expect(sink.text).toBe(`${CHUNK}: keep-alive\n\n: keep-alive\n\n${CHUNK}`)
    relay.cancel()
  })

  it('wait anew after each frame, and stop with the stream', () => {
    const { source, sink } = relayOf(CHAT_EVENTS)
    jest.advanceTimersByTime(KEEP_ALIVE_MS - 1)
    source.data(STOP)
    jest.advanceTimersByTime(KEEP_ALIVE_MS - 1)
    source.end()
    jest.advanceTimersByTime(10 * KEEP_ALIVE_MS)
    expect(sink.text).toBe(STOP)
  })
})

describe('A stream whose caller has left', () => {
  const FIGURES = 'data: {"choices":[],"usage":{"total_tokens":9}}\n\n'

  /** Whose figures are next once it is finished. */
  function figuredRelay() {
    let areKnown = false
    const figures = { areKnown: () => areKnown, areNext: (tail: Buffer) => tail.includes('"finish_reason":"stop"') }
    const made = relayOf({ ...CHAT_EVENTS, figures }, (frames) => {
      if (frames.includes('total_tokens')) areKnown = true
      return frames
    })
    return { ...made, knowsFigures: () => areKnown }
  }

  it.each([
    ['before it was finished', CHUNK, false],
    ['when its figures have come', STOP + FIGURES, false],
    ['when it is over', STOP + DONE, true],
  ])('is not read on %s', (_when, frames, isOver) => {
    const { relay, source } = figuredRelay()
    source.data(frames)
    if (isOver) source.end()
    expect(relay.readOn()).toBe(false)
    relay.cancel()
  })

  it('is not read on where its dialect has no figures at its end', () => {
    const { relay, source } = relayOf(CHAT_EVENTS)
    source.data(STOP)
    expect(relay.readOn()).toBe(false)
    relay.cancel()
  })

  it('is read to its end for them, though its caller had read too slowly, and none of it is delivered', () => {
    const { relay, source, sink, knowsFigures } = figuredRelay()
    source.data(CHUNK + STOP)
    relay.pause()
    expect(relay.readOn()).toBe(true)
    expect(source.asked).toEqual(['pause', 'resume'])
    source.data(FIGURES, DONE)
    expect(knowsFigures()).toBe(true)
    source.end()
    expect(sink).toMatchObject({ text: CHUNK + STOP, failure: 'caller_left' })
  })

  it.each([
    ['an upstream that falls silent', READ_ON_MS, undefined],
    ['one that says other things', 0, `: ${'x'.repeat(70_000)}\n\n`],
    ['one that fails', 0, errorFrame('Overloaded')],
    ['one whose connection breaks', 0, reset()],
  ])('ends without them with %s', (_how, afterMs, said) => {
    const { relay, source, sink, knowsFigures } = figuredRelay()
    source.data(STOP)
    relay.readOn()
    jest.advanceTimersByTime(READ_ON_MS - 1)
    expect(sink.ending).toBeUndefined()
    jest.advanceTimersByTime(Math.min(1, afterMs))
    if (typeof said === 'string') source.data(said)
    else if (said !== undefined) source.fail(said)
    expect([sink.failure, sink.text, knowsFigures()]).toEqual(['caller_left', STOP, false])
  })

  it('ends without them beyond 64 KiB, although they could still be next', () => {
    const { relay, source, sink } = figuredRelay()
    source.data(STOP)
    relay.readOn()
    source.data(STOP.repeat(Math.floor(65_536 / STOP.length)))
    expect(sink.ending).toBeUndefined()
    source.data(STOP)
    expect(sink).toMatchObject({ text: STOP, failure: 'caller_left' })
    expect(source.asked).toEqual(['resume', 'cancel'])
  })
})

describe('White space', () => {
  it.each([
    ['data:{"error":{"message":"m"}}\n\n', CHAT_EVENTS],
    ['data: { "error" : {"message":"m"}}\n\n', CHAT_EVENTS],
    ['event:error\ndata:{"type":"error","error":{"message":"m"}}\n\n', MESSAGES_EVENTS],
  ])('is as optional in a failure as in any event (%s)', (frame, dialect) => {
    expect(relayed(dialect, frame).sink.ending).toMatchObject({ kind: 'upstream_failed', message: 'm' })
  })

  it('is optional in the events that complete a stream', () => {
    const stream = 'event:message_stop\ndata:{"type":"message_stop"}\n\n'
    expect(relayed(MESSAGES_EVENTS, stream).sink).toMatchObject({ text: stream, ending: 'end' })
  })
})

describe('The credential that was sent', () => {
  it('is not named by a failure that quotes it back, whatever its shape', () => {
    const secret = 'opaque+channel.credential'
    const { sink } = relayed({ ...CHAT_EVENTS, secret }, CHUNK, errorFrame(`The key ${secret} is odd.`))
    expect(shown(sink)).toContain('The key [key] is odd.')
    expect(shown(sink)).not.toContain(secret)
  })
})

describe('An error frame of the upstream', () => {
  it.each([
    ['chat', CHAT_EVENTS, errorFrame(SECRETS)],
    ['speech', SPEECH_EVENTS, errorFrame(SECRETS).replaceAll('\n', '\r\n')],
    ['messages', MESSAGES_EVENTS, `event: error\n${errorFrame(SECRETS)}`],
    ['an error that is a text', CHAT_EVENTS, `data: {"error":${JSON.stringify(SECRETS)}}\n\n`],
    ['a last frame without its empty line', CHAT_EVENTS, errorFrame(SECRETS).trimEnd()],
  ])('that comes first is a failure, scrubbed, with nothing delivered (%s)', (_name, dialect, frame) => {
    const { source, sink } = relayed(dialect, frame)
    expect(sink.ending).toMatchObject({
      kind: 'upstream_failed',
      message: CLEAN,
      details: { attempt: { phase: 'answered', channelError: true } },
    })
    expect(sink.chunks).toEqual([])
    expect(shown(sink)).toBe('')
    expect(source.asked).toEqual(['cancel'])
  })

  it('that comes later is delivered scrubbed, is still JSON, and nothing follows it', () => {
    const { source, sink } = relayed(CHAT_EVENTS, CHUNK, errorFrame(SECRETS) + CHUNK, 'data: [DONE]\n\n')
    const [first, error, ...others] = shown(sink).split(/(?<=\n\n)/)
    expect(first).toBe(CHUNK)
    expect(JSON.parse(error?.slice(6) ?? '')).toEqual({
      error: { message: CLEAN, type: 'server_error', param: null, code: null },
    })
    expect(others).toEqual([])
    expect(sink.ending).toMatchObject({ kind: 'upstream_failed', message: CLEAN })
    expect(source.asked).toEqual(['cancel'])
  })

  it('in the same piece as good frames lets these through once', () => {
    expect(shown(relayed(CHAT_EVENTS, CHUNK + CHUNK + errorFrame('Overloaded')).sink)).toBe(
      CHUNK + CHUNK + errorFrame('Overloaded'),
    )
  })

  it.each([
    ['an error', errorFrame('Overloaded')],
    ['what only looks like one', `data: {"error":null}\n\n${DONE}`],
  ])('in the same piece as good frames has these counted once: %s', (_name, last) => {
    const deltas = new DeltaCounter()
    relayed({ ...CHAT_EVENTS, deltas }, CHUNK, CHUNK + CHUNK + last)
    expect(deltas.pieces).toBe(3)
  })

  it.each([
    [MESSAGES_EVENTS, 'event: error\n', 'event: ping\ndata: {"type": "ping"}\n\n'],
    [CHAT_EVENTS, 'event: error\n', CHUNK],
  ])('keeps its event name', (dialect, name, before) => {
    const { sink } = relayed(dialect, before, name + errorFrame('see https://host.example/x'))
    expect(shown(sink)).toBe(before + name + errorFrame('see [address]'))
  })

  it('keeps the line ends of its stream', () => {
    const spoken = 'data: {"type":"speech.audio.delta","audio":""}\r\n\r\n'
    const error = errorFrame('broken').replaceAll('\n', '\r\n')
    expect(shown(relayed(SPEECH_EVENTS, spoken, error).sink)).toBe(spoken + error)
  })

  it('is not what a text of a model makes look like one', () => {
    const text = `data: ${JSON.stringify({ choices: [{ delta: { content: '\n\ndata: {"error":{"message":"a"}}\n\n' } }] })}\n\n`
    const { sink } = relayed(CHAT_EVENTS, text, 'data: [DONE]\n\n')
    expect(sink.text).toBe(`${text}data: [DONE]\n\n`)
    expect(sink.ending).toBe('end')
  })

  it('is not a frame whose error is null, and no frame is delivered twice for it', () => {
    const frame = 'data: {"error":null,"choices":[]}\n\n'
    const { sink } = relayed(CHAT_EVENTS, `${CHUNK}${frame}data: [DONE]\n\n`)
    expect(sink.text).toBe(`${CHUNK}${frame}data: [DONE]\n\n`)
    expect(sink.ending).toBe('end')
  })
})
