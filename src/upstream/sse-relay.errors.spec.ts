import { describe, expect, it } from '@jest/globals'
import { ManualSource, RecordingSink } from '../../test/support/byte-streams.js'
import { CHAT_EVENTS, SPEECH_EVENTS } from '../dialects/audio-events.js'
import { type SseDialect, SseRelay } from './sse-relay.js'

const MESSAGES_EVENTS: SseDialect = { completionMarks: ['event: message_stop'], errorMark: 'event: error' }
const CHUNK = 'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n'
const SECRETS = 'Visit "https://api.openai.com/x" with sk-abcdefgh of org-secret1'
const CLEAN = 'Visit "[address]" with [key] of [account]'
const errorFrame = (message: string): string =>
  `data: ${JSON.stringify({ error: { message, type: 'server_error', param: null, code: null } })}\n\n`

function relayed(dialect: SseDialect, ...pieces: string[]): { source: ManualSource; sink: RecordingSink } {
  const source = new ManualSource()
  const sink = new RecordingSink()
  new SseRelay(source, dialect).start(sink)
  source.data(...pieces)
  source.end()
  return { source, sink }
}

/** What the caller gets: the stream, then the frame with which its failure is shown. */
function shown({ text, ending }: RecordingSink): string {
  if (ending === undefined || ending === 'end') return text
  return text + (ending.details.frame ?? '')
}

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
      details: { attempt: { phase: 'answered', channelFault: true } },
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
