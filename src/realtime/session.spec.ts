import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { SECRET, startSessions, type TestSession, type TestSessions } from '../../test/support/realtime-session.js'

let sessions: TestSessions
beforeEach(async () => {
  sessions = await startSessions()
})
afterEach(() => sessions.close())

const AUDIO = Buffer.alloc(4800, 7).toString('base64')
const APPEND = { type: 'input_audio_buffer.append', audio: AUDIO }
const DONE = {
  type: 'response.done',
  event_id: 'event_9',
  response: {
    status: 'completed',
    usage: {
      total_tokens: 253,
      input_tokens: 132,
      input_token_details: { cached_tokens_details: { text_tokens: 64 } },
    },
  },
}
const TRANSCRIBED = {
  type: 'conversation.item.input_audio_transcription.completed',
  item_id: 'item_1',
  transcript: 'Hello',
  usage: { type: 'duration', seconds: 2 },
}

describe('An event of the client', () => {
  it('reaches an upstream of its dialect as the very bytes it came in, as text and in order', async () => {
    const { client, upstream } = await sessions.open({ clientDialect: 'ga', upstreamDialect: 'ga' })
    const kinds: boolean[] = []
    upstream.socket.on('message', (_data, isBinary) => kinds.push(isBinary))
    const texts = Array.from(
      { length: 100 },
      (_, index) => `{ "audio":"${AUDIO}","event_id":"${index}",  "type":"input_audio_buffer.append"}`,
    )
    for (const text of texts) client.send(text)
    await upstream.count(100)
    expect(upstream.received.map(String)).toEqual(texts)
    expect(new Set(kinds)).toEqual(new Set([false]))
  })

  it('reaches an upstream of the other dialect translated', async () => {
    const { client, upstream } = await sessions.open({ upstreamDialect: 'ga' })
    client.send({ type: 'session.update', session: { modalities: ['text', 'audio'], voice: 'alloy' } })
    await upstream.count(1)
    expect(upstream.events()).toMatchObject([
      { type: 'session.update', session: { type: 'realtime', output_modalities: ['audio'] } },
    ])
  })

  it.each<[string, string, object]>([
    ['is no JSON', '{"type":', { code: 'invalid_json', event_id: null }],
    ['has an unknown type', '{"type":"session.destroy","event_id":"ev_1"}', { param: 'type', event_id: 'ev_1' }],
    ['is one of the server', '{"type":"session.created","event_id":"ev_2"}', { param: 'type', event_id: 'ev_2' }],
    ['has a wrong member', '{"type":"session.update","event_id":"ev_3","session":1}', { event_id: 'ev_3' }],
    [
      'holds bad base64',
      '{"type":"input_audio_buffer.append","audio":"@@@@","event_id":"a"}',
      { param: 'audio', event_id: 'a' },
    ],
  ])('that %s is answered by an error event, and goes no further', async (_name, text, error) => {
    const { client, upstream } = await sessions.open()
    client.send(text)
    client.send(APPEND)
    await Promise.all([client.count(1), upstream.count(1)])
    expect(client.events()).toMatchObject([{ type: 'error', error: { type: 'invalid_request_error', ...error } }])
    expect(client.events()[0]).toHaveProperty('event_id')
    expect(upstream.events()).toEqual([APPEND])
  })

  it('with more audio than allowed is refused, and the session lives on', async () => {
    const { client, upstream } = await sessions.open({ limits: { realtimeAudioBytes: 4799 } })
    client.send({ ...APPEND, event_id: 'ev_4' })
    client.send({ type: 'input_audio_buffer.commit' })
    await Promise.all([client.count(1), upstream.count(1)])
    expect(client.events()).toMatchObject([{ error: { param: 'audio', event_id: 'ev_4' } }])
    expect(upstream.events()).toEqual([{ type: 'input_audio_buffer.commit' }])
  })

  it('in a binary message is refused whatever it holds', async () => {
    const { client, upstream } = await sessions.open()
    client.socket.send(Buffer.from(JSON.stringify(APPEND)))
    client.send({ type: 'input_audio_buffer.clear' })
    await Promise.all([client.count(1), upstream.count(1)])
    expect(client.events()).toMatchObject([{ error: { type: 'invalid_request_error', code: 'invalid_event' } }])
    expect(upstream.events()).toEqual([{ type: 'input_audio_buffer.clear' }])
  })
})

describe('An event of the upstream', () => {
  it('reaches a client of its dialect as the very bytes it came in, in order', async () => {
    const { call, client, upstream } = await sessions.open({ clientDialect: 'beta' })
    const texts = Array.from(
      { length: 100 },
      (_, index) => `{ "type":"response.audio.delta", "delta":"${AUDIO}", "n":${index}.0}`,
    )
    for (const text of texts) upstream.send(text)
    await client.count(100)
    expect(client.received.map(String)).toEqual(texts)
    expect(call.log.bytesOut).toBe(texts.join('').length)
  })

  it('reaches a client of the other dialect translated', async () => {
    const { client, upstream } = await sessions.open({ clientDialect: 'beta', upstreamDialect: 'ga' })
    upstream.send({ type: 'response.output_audio.delta', delta: AUDIO })
    await client.count(1)
    expect(client.events()).toEqual([{ type: 'response.audio.delta', delta: AUDIO }])
  })

  it('that nobody knows reaches the client unchanged', async () => {
    const { client, upstream } = await sessions.open({ clientDialect: 'beta', upstreamDialect: 'ga' })
    upstream.send('{"type":"something.new","big":12345678901234567890}')
    await client.count(1)
    expect(String(client.received[0])).toBe('{"type":"something.new","big":12345678901234567890}')
  })

  it.each<[string, string | Buffer]>([
    ['is no JSON', '{"type":'],
    ['is no object', '[1]'],
    ['is a response that no parser reads', '{"type":"response.done","response":{"usage":nope}}'],
    ['is binary', Buffer.from('{"type":"response.created"}')],
  ])('that %s is dropped with one warning, and the session lives on', async (_name, message) => {
    const { client, upstream, warnings } = await sessions.open({ clientDialect: 'beta', upstreamDialect: 'ga' })
    upstream.socket.send(message)
    upstream.socket.send(message)
    upstream.send({ type: 'input_audio_buffer.cleared' })
    await client.count(1)
    expect(client.events()).toEqual([{ type: 'input_audio_buffer.cleared' }])
    expect(warnings).toMatchObject([{ requestId: 'req_1', channel: 'p1-main' }])
  })

  it.each<[string, (message: string) => object]>([
    [
      'an error',
      (message) => ({ type: 'error', error: { type: 'invalid_request_error', code: 'invalid_api_key', message } }),
    ],
    [
      'a failed response',
      (message) => ({ type: 'response.done', response: { status_details: { error: { message } } } }),
    ],
    [
      'a failed transcription',
      (message) => ({ type: 'conversation.item.input_audio_transcription.failed', error: { message } }),
    ],
  ])('that reports %s shows neither the key of the channel nor its account', async (_name, event) => {
    const { client, upstream } = await sessions.open({ clientDialect: 'beta' })
    upstream.send(event(`Key ${SECRET} of org-abc123 is wrong, see https://upstream.example/keys`))
    await client.count(1)
    expect(client.events()).toEqual([event('Key [key] of [account] is wrong, see [address]')])
  })
})

describe('What a session uses', () => {
  it('is recorded once per response and input transcription, and summed for the log', async () => {
    const { call, client, entries, upstream } = await sessions.open()
    for (const event of [DONE, TRANSCRIBED, DONE, { ...DONE, response: { status: 'failed', usage: null } }])
      upstream.send(event)
    await client.count(4)
    const common = { call, channelId: 'p1-main', model: 'gpt-realtime', estimated: false }
    const { usage } = DONE.response
    expect(entries).toEqual([
      { ...common, kind: 'response', units: usage },
      { ...common, kind: 'input_transcription', units: { seconds: 2 } },
      { ...common, kind: 'response', units: usage },
    ])
    expect(call.log.usage).toEqual({
      estimated: false,
      units: {
        total_tokens: 506,
        input_tokens: 264,
        input_token_details: { cached_tokens_details: { text_tokens: 128 } },
        input_transcription: { seconds: 2 },
      },
    })
  })

  it.each<[string, (socket: TestSession['client']['socket']) => void]>([
    [
      'without a word',
      (socket) => {
        socket.terminate()
      },
    ],
    [
      'with a close',
      (socket) => {
        socket.close(1000)
      },
    ],
  ])('is recorded for an answer that is on its way when the client leaves %s', async (_name, leave) => {
    const { call, client, entries, near, session, upstream } = await sessions.open()
    // The upstream has not heard of it yet.
    near.client.once('close', () => {
      upstream.send(DONE)
    })
    leave(client.socket)
    await session.ended
    expect(entries).toMatchObject([{ kind: 'response', units: DONE.response.usage }])
    expect(call.log.usage?.units).toEqual(DONE.response.usage)
    expect(near.upstream.listenerCount('message')).toBe(0)
  })

  it('is recorded for an answer that is on its way when the gateway drains, though nobody hears it', async () => {
    const { client, entries, session, upstream } = await sessions.open()
    upstream.send(DONE)
    session.drain()
    await Promise.all([session.ended, client.closed])
    expect(entries).toHaveLength(1)
    expect(client.received).toEqual([])
  })

  it('never ends the session when it cannot be recorded', async () => {
    const record = (): never => {
      throw new Error('the database is gone')
    }
    const { call, client, upstream, warnings } = await sessions.open({ record })
    upstream.send(DONE)
    upstream.send({ type: 'input_audio_buffer.cleared' })
    await client.count(2)
    expect(client.events().map(({ type }) => type)).toEqual(['response.done', 'input_audio_buffer.cleared'])
    expect(warnings).toMatchObject([{ requestId: 'req_1', err: new Error('the database is gone') }])
    expect(call.log.usage?.units).toMatchObject({ total_tokens: 253 })
  })
})
