import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { WebSocket } from 'ws'
import {
  SECRET,
  type SocketPairs,
  startSessions,
  startSocketPairs,
  type TestSession,
  type TestSessions,
} from '../../test/support/realtime-session.js'
import { EventPace, MessageQueue, RateLimit, SocketSide } from './socket.js'

describe('A realtime session', () => {
  const FRAGMENTS = 16

  let sessions: TestSessions
  beforeEach(async () => {
    sessions = await startSessions({ maxFragments: FRAGMENTS })
  })
  afterEach(() => sessions.close())

  const COMMIT = { type: 'input_audio_buffer.commit' }

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

  const TRANSCRIBING = {
    clientDialect: 'ga',
    upstreamDialect: 'ga',
    opening: { kind: 'transcription', model: undefined },
  } as const
  const settingsWith = (model: string, type = 'session.updated'): object => ({
    type,
    session: { type: 'transcription', audio: { input: { transcription: { model } } } },
  })
  const committed = (itemId: string): object => ({ type: 'input_audio_buffer.committed', item_id: itemId })

  describe('A client that sends too much', () => {
    it('in pings is closed with 1008', async () => {
      const { client, session, upstream } = await sessions.open({ limits: { realtimePingsPerSecond: 20 } })
      for (let pings = 0; pings < 50; pings++) client.socket.ping()
      expect(await client.closed).toEqual({ code: 1008, reason: 'too many pings per second' })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      await session.ended
    })

    it('in pongs that the gateway did not ask for is closed with 1008', async () => {
      const { client } = await sessions.open({ limits: { realtimePingsPerSecond: 20 } })
      for (let pongs = 0; pongs < 50; pongs++) client.socket.pong()
      expect(await client.closed).toMatchObject({ code: 1008 })
    })

    it('in pings, and reads none of the answers, costs no memory', async () => {
      const { client, near, session } = await sessions.open()
      client.socket.pause()
      for (let pings = 0; pings < 100_000; pings++) client.socket.ping(Buffer.alloc(125))
      await session.ended
      expect(near.client.bufferedAmount).toBeLessThan(10_000)
    })

    it.each([
      ['that are sound', JSON.stringify(COMMIT)],
      ['that are refused', '{}'],
      ['that are empty', ''],
    ])('in events %s for long is closed with 1008', async (_name, text) => {
      const limits = { realtimeEventsPerSecond: 50, realtimeBurstMs: 300 }
      const { client, session, upstream } = await sessions.open({ limits })
      for (let events = 0; events < 200; events++) client.send(text)
      expect(await client.closed).toEqual({ code: 1008, reason: 'too many events per second' })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      await session.ended
      expect(session.endCause).toBe('too_many_events')
      const passed = upstream.received.length + client.received.length
      expect(passed).toBeGreaterThanOrEqual(50)
      expect(passed).toBeLessThan(100)
    })

    it('in fragments of one message is closed with 1008', async () => {
      const { client, session, upstream } = await sessions.open()
      for (let fragments = 0; fragments < 100; fragments++) client.socket.send('"', { fin: false })
      expect(await client.closed).toMatchObject({ code: 1008 })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      await session.ended
      expect(session.endCause).toBe('client_broke_protocol')
    })

    it('but no more than is allowed is left in peace', async () => {
      const { client, upstream } = await sessions.open({ limits: { realtimePingsPerSecond: 20 } })
      for (let pings = 0; pings < 20; pings++) client.socket.ping()
      client.send(COMMIT)
      await upstream.count(1)
    })
  })

  describe('A thousand clients that vanish', () => {
    const BATCHES = 20
    const BATCH = 50
    const EVENTS = ['message', 'ping', 'pong', 'close', 'error', 'open', 'upgrade', 'unexpected-response']

    const resources = (): Record<string, number> => {
      const counts: Record<string, number> = {}
      for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1
      return counts
    }

    async function vanish({ call, client, near, session, upstream }: TestSession, index: number): Promise<void> {
      client.send(COMMIT)
      await upstream.count(1)
      if (index % 2 === 0) client.socket.terminate()
      else (Reflect.get(client.socket, '_socket') as { resetAndDestroy(): void }).resetAndDestroy()
      await Promise.all([session.ended, upstream.closed, client.closed])
      expect(call.disconnect.aborted).toBe(true)
      for (const socket of [near.client, near.upstream]) {
        expect(socket.readyState).toBe(socket.CLOSED)
        expect(EVENTS.map((name) => socket.listenerCount(name))).toEqual(EVENTS.map(() => 0))
      }
    }

    it('leave no upstream socket, timer or listener behind', async () => {
      const before = resources()
      for (let batch = 0; batch < BATCHES; batch++) {
        const opened = await Promise.all(Array.from({ length: BATCH }, () => sessions.open()))
        expect(resources()['Timeout']).toBeGreaterThanOrEqual(BATCH)
        await Promise.all(opened.map(vanish))
      }
      const after = resources()
      for (const name of ['Timeout', 'TCPSocketWrap', 'TCPWRAP'])
        expect(after[name] ?? 0).toBeLessThanOrEqual(before[name] ?? 0)
    })
  })

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

    it('that is unknown reaches the client unchanged', async () => {
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
        { ...common, kind: 'input_transcription', sessionModel: 'gpt-realtime', units: { seconds: 2 } },
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

    it.each([
      ['session.created', { input_audio_transcription: { model: 'whisper-1' } }],
      ['session.updated', { audio: { input: { transcription: { model: 'whisper-1' } } } }],
    ])('is recorded for the model that makes transcriptions, as the upstream names it in %s', async (type, session) => {
      const { client, entries, upstream } = await sessions.open()
      for (const event of [TRANSCRIBED, { type, session }, TRANSCRIBED, DONE, { type, session: {} }, TRANSCRIBED])
        upstream.send(event)
      await client.count(6)
      const models = entries.map(({ kind, model }) => [kind, model])
      expect(models).toEqual([
        ['input_transcription', 'gpt-realtime'],
        ['input_transcription', 'whisper-1'],
        ['response', 'gpt-realtime'],
        ['input_transcription', 'gpt-realtime'],
      ])
    })

    it.each([
      ['gpt-4o-transcribe', 'stt-generation', { total_tokens: 20, input_tokens: 20 }],
      ['gpt-live-transcribe', 'stt-realtime', { seconds: 2 }],
      ['house-whisper', 'stt-generation', { total_tokens: 20, input_tokens: 20 }],
    ] as const)(
      'is an estimate for what %s (%s) had not transcribed when the client left',
      async (model, modelClass, units) => {
        const { client, entries, session, upstream } = await sessions.open({
          ...TRANSCRIBING,
          opening: { ...TRANSCRIBING.opening, transcriptionModel: () => ({ isServed: true, modelClass }) },
        })
        upstream.send(settingsWith(model))
        await client.count(1)
        for (let pieces = 0; pieces < 20; pieces++) client.send(APPEND)
        await upstream.count(20)
        upstream.send(committed('item_1'))
        await client.count(2)
        client.socket.close()
        await session.ended
        expect(entries).toMatchObject([
          { kind: 'input_transcription', model, estimated: true, outcome: 'caller_left', units },
        ])
      },
    )

    it('is an estimate for audio that was written down before it was committed, and for no other', async () => {
      const { client, entries, session, upstream } = await sessions.open(TRANSCRIBING)
      upstream.send(settingsWith('whisper-1'))
      await client.count(1)
      for (let pieces = 0; pieces < 20; pieces++) client.send(APPEND)
      await upstream.count(20)
      upstream.send({ type: 'conversation.item.input_audio_transcription.delta', item_id: 'item_1', delta: 'Hi' })
      await client.count(2)
      client.socket.close()
      await session.ended
      expect(entries).toMatchObject([{ kind: 'input_transcription', estimated: true, units: { seconds: 2 } }])
    })

    it('is an estimate for audio that was written down and cleared, and not for what came after it', async () => {
      const { client, entries, session, upstream } = await sessions.open(TRANSCRIBING)
      upstream.send(settingsWith('whisper-1'))
      await client.count(1)
      for (let pieces = 0; pieces < 20; pieces++) client.send(APPEND)
      await upstream.count(20)
      upstream.send({ type: 'conversation.item.input_audio_transcription.delta', item_id: 'item_1', delta: 'Hi' })
      upstream.send({ type: 'input_audio_buffer.cleared' })
      await client.count(3)
      for (let pieces = 0; pieces < 10; pieces++) client.send(APPEND)
      await upstream.count(30)
      client.socket.close()
      await session.ended
      expect(entries).toMatchObject([{ kind: 'input_transcription', estimated: true, units: { seconds: 2 } }])
    })

    it('is an estimate in a conversation, too, by the class of a model that the channel need not serve', async () => {
      const { client, entries, session, upstream } = await sessions.open({
        opening: { transcriptionModel: () => ({ isServed: false, modelClass: 'stt-standard' }) },
      })
      upstream.send({
        ...settingsWith('whisper-1'),
        session: { audio: { input: { transcription: { model: 'whisper-1' } } } },
      })
      await client.count(1)
      for (let pieces = 0; pieces < 20; pieces++) client.send(APPEND)
      await upstream.count(20)
      upstream.send(committed('item_1'))
      await client.count(2)
      client.socket.close()
      await session.ended
      expect(entries).toMatchObject([{ kind: 'input_transcription', model: 'whisper-1', units: { seconds: 2 } }])
    })

    it('is no estimate for audio that nothing was written of', async () => {
      const { client, entries, session, upstream } = await sessions.open(TRANSCRIBING)
      upstream.send(settingsWith('whisper-1'))
      upstream.send(committed('item_1'))
      upstream.send({ type: 'conversation.item.input_audio_transcription.delta', item_id: 'item_1', delta: 'Hi' })
      upstream.send({ type: 'conversation.item.deleted', item_id: 'item_1' })
      await client.count(4)
      for (let pieces = 0; pieces < 20; pieces++) client.send(APPEND)
      await upstream.count(20)
      client.socket.close()
      await session.ended
      expect(entries).toEqual([])
    })

    it('is no estimate for what was transcribed, or failed to be', async () => {
      const { call, client, entries, session, upstream } = await sessions.open(TRANSCRIBING)
      upstream.send(settingsWith('whisper-1'))
      for (const item of ['item_1', 'item_2']) upstream.send(committed(item))
      upstream.send(TRANSCRIBED)
      upstream.send({ type: 'conversation.item.input_audio_transcription.failed', item_id: 'item_2', error: {} })
      await client.count(5)
      client.socket.close()
      await session.ended
      expect(entries).toMatchObject([{ kind: 'input_transcription', model: 'whisper-1', estimated: false }])
      expect(entries[0]).toHaveProperty('sessionModel', undefined)
      expect(call.log.model).toBe('whisper-1')
    })

    it('is recorded without a model where neither side has named one', async () => {
      const { client, entries, upstream } = await sessions.open(TRANSCRIBING)
      upstream.send(TRANSCRIBED)
      await client.count(1)
      expect(entries).toMatchObject([{ kind: 'input_transcription', units: { seconds: 2 } }])
      expect(entries[0]).toHaveProperty('model', undefined)
    })

    it('is recorded for the model as the client has named it, where the channel has another name', async () => {
      const { client, entries, upstream } = await sessions.open({
        ...TRANSCRIBING,
        opening: { ...TRANSCRIBING.opening, modelMap: { ours: 'whisper-1' } },
      })
      client.send(settingsWith('ours', 'session.update'))
      await upstream.count(1)
      expect(upstream.events()).toEqual([settingsWith('whisper-1', 'session.update')])
      upstream.send(settingsWith('whisper-1'))
      upstream.send(TRANSCRIBED)
      await client.count(2)
      expect(client.events()[0]).toEqual(settingsWith('ours'))
      expect(entries).toMatchObject([{ model: 'ours' }])
    })

    it('is not by a model that its channel does not serve', async () => {
      const { client, upstream } = await sessions.open({
        ...TRANSCRIBING,
        opening: {
          ...TRANSCRIBING.opening,
          transcriptionModel: (model) => ({ isServed: model === 'whisper-1', modelClass: 'stt-standard' }),
        },
      })
      client.send(settingsWith('gpt-4o-transcribe', 'session.update'))
      client.send(settingsWith('whisper-1', 'session.update'))
      await upstream.count(1)
      expect(upstream.events()).toEqual([settingsWith('whisper-1', 'session.update')])
      expect(client.events()).toEqual([
        expect.objectContaining({ error: expect.objectContaining({ code: 'model_not_allowed' }) }),
      ])
    })

    it('is waited for when the gateway drains', async () => {
      const { client, entries, session, upstream } = await sessions.open(TRANSCRIBING)
      upstream.send(settingsWith('whisper-1'))
      upstream.send(committed('item_1'))
      await client.count(2)
      session.finish()
      upstream.send(TRANSCRIBED)
      expect(await client.closed).toMatchObject({ code: 1001 })
      await session.ended
      expect(entries).toMatchObject([{ estimated: false, units: { seconds: 2 } }])
      expect(client.events()).toContainEqual(TRANSCRIBED)
    })

    it('is waited for no longer than the grace time, and estimated then', async () => {
      const { client, entries, session, upstream } = await sessions.open(TRANSCRIBING)
      upstream.send(settingsWith('whisper-1'))
      client.send(APPEND)
      await upstream.count(1)
      upstream.send(committed('item_1'))
      await client.count(2)
      session.finish()
      expect(session.endCause).toBeUndefined()
      session.drain()
      expect(await client.closed).toMatchObject({ code: 1001 })
      await session.ended
      expect(entries).toMatchObject([{ kind: 'input_transcription', estimated: true }])
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

    it('is recorded for an answer that is on its way when the gateway drains, though no client hears it', async () => {
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
})

describe('The messages of a client', () => {
  let pairs: SocketPairs
  beforeEach(async () => {
    pairs = await startSocketPairs()
  })
  afterEach(() => pairs.close())

  /** A client whose messages that begin with `wait` are waited for until they are let go. */
  class Lab {
    readonly handled: string[] = []
    readonly failures: unknown[] = []
    letGo: () => void = () => undefined
    fail: (error: Error) => void = () => undefined
    readonly order: MessageQueue

    private constructor(
      readonly client: WebSocket,
      readonly near: WebSocket,
    ) {
      const handle = (data: Buffer, isBinary: boolean): Promise<void> | undefined => this.handle(data, isBinary)
      const onFailure = (error: unknown): void => void this.failures.push(error)
      const handler = { handle, onFailure, onTooFast: () => undefined }
      this.order = new MessageQueue(new SocketSide(near, 1_000_000), new EventPace(1000, 1000), handler)
      near.on('message', (data, isBinary) => {
        this.order.take(data as Buffer, isBinary)
      })
      near.resume()
    }

    static async open(): Promise<Lab> {
      const { client, server } = await pairs.open({ near: 'server' })
      return new Lab(client, server)
    }

    async until(count: number): Promise<void> {
      while (this.handled.length < count) await once(this.near, 'message')
    }

    private handle(data: Buffer, isBinary: boolean): Promise<void> | undefined {
      const text = `${data.toString()}${isBinary ? '!' : ''}`
      if (text === 'bad') throw new Error('bad')
      this.handled.push(text)
      if (!text.startsWith('wait')) return undefined
      return new Promise((resolve, reject) => {
        this.letGo = resolve
        this.fail = reject
      })
    }
  }

  it('are handled as they come while none is waited for', async () => {
    const lab = await Lab.open()
    for (const text of ['one', 'two']) lab.client.send(text)
    lab.client.send(Buffer.from('three'))
    await lab.until(3)
    expect(lab.handled).toEqual(['one', 'two', 'three!'])
    expect(lab.near.isPaused).toBe(false)
  })

  it('behind one that is waited for stay behind it, unread, and in order', async () => {
    const lab = await Lab.open()
    // In one piece, so that the library has read all of them when the first is handled.
    const socket = Reflect.get(lab.client, '_socket') as { cork(): void; uncork(): void }
    socket.cork()
    for (const text of ['wait 1', 'two', 'wait 3', 'four']) lab.client.send(text)
    lab.client.send(Buffer.from('five'))
    socket.uncork()
    await lab.until(1)
    await nextTurn()
    expect(lab.handled).toEqual(['wait 1'])
    expect(lab.near.isPaused).toBe(true)
    lab.letGo()
    await nextTurn()
    expect(lab.handled).toEqual(['wait 1', 'two', 'wait 3'])
    expect(lab.near.isPaused).toBe(true)
    lab.letGo()
    await nextTurn()
    expect(lab.handled).toEqual(['wait 1', 'two', 'wait 3', 'four', 'five!'])
    expect(lab.near.isPaused).toBe(false)
    lab.client.send('six')
    await lab.until(6)
    expect(lab.handled.at(-1)).toBe('six')
    expect(lab.failures).toEqual([])
  })

  it('are not handled any more once their queue is stopped', async () => {
    const lab = await Lab.open()
    lab.order.take(Buffer.from('wait'), false)
    lab.order.take(Buffer.from('late'), false)
    lab.order.stop()
    lab.letGo()
    await nextTurn()
    expect(lab.handled).toEqual(['wait'])
  })

  it('are handled no more once what one waits for has failed, and the failure is told', async () => {
    const lab = await Lab.open()
    lab.order.take(Buffer.from('wait'), false)
    lab.order.take(Buffer.from('next'), false)
    lab.fail(new Error('lost'))
    await nextTurn()
    expect(lab.handled).toEqual(['wait'])
    expect(lab.failures).toEqual([new Error('lost')])
  })

  it('that cannot be handled are told of, also behind one that was waited for', async () => {
    const lab = await Lab.open()
    lab.order.take(Buffer.from('bad'), false)
    lab.order.take(Buffer.from('wait'), false)
    lab.order.take(Buffer.from('bad'), false)
    lab.letGo()
    await nextTurn()
    expect(lab.failures).toEqual([new Error('bad'), new Error('bad')])
  })
})

describe('A rate limit', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  const taken = (rate: RateLimit, tries: number): number =>
    Array.from({ length: tries }, () => rate.take()).filter((isTaken) => isTaken).length

  it('lets one second’s worth through at once, then only what time brings', () => {
    const rate = new RateLimit(20)
    expect(taken(rate, 100)).toBe(20)
    jest.advanceTimersByTime(500)
    expect(taken(rate, 100)).toBe(10)
  })

  it('saves up no more than one second’s worth', () => {
    const rate = new RateLimit(20)
    jest.advanceTimersByTime(60_000)
    expect(taken(rate, 100)).toBe(20)
  })
})
