import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { eventually, promised } from '../../test/support/eventually.js'
import {
  closes,
  drains,
  SECRET,
  type SessionAct,
  type SessionOptions,
  type SocketPair,
  type SocketPairs,
  startSessions,
  startSocketPairs,
  type TestSession,
  type TestSessions,
  vanishes,
} from '../../test/support/realtime-session.js'
import { Heartbeat, SessionTimers } from './session-close.js'
import { closeReason } from './session-endings.js'
import { SocketSide } from './socket.js'

describe('A realtime session', () => {
  let sessions: TestSessions
  beforeEach(async () => {
    sessions = await startSessions({ maxPayload: 100_000 })
  })
  afterEach(() => sessions.close())

  /** Within which the other side must be closed (design: Disconnect). */
  const ONE_SECOND_MS = 1000

  const LOST = { code: 1011, reason: 'upstream connection lost' }
  const UPSTREAM_FAILED = { type: 'error', error: { type: 'server_error', code: 'upstream_failed' } }
  const CREATE = { type: 'response.create', event_id: 'mine' }
  const CREATED = { type: 'response.created', response: { id: 'resp_1', output: [] } }
  const WORD = { type: 'response.output_text.delta', delta: 'Hello' }
  const USAGE = { total_tokens: 70, input_tokens: 40, output_tokens: 30 }
  const DONE = { type: 'response.done', response: { id: 'resp_1', status: 'completed', usage: USAGE } }
  const RESTARTING = { code: 1001, reason: 'the gateway is restarting' }

  const open = (options: SessionOptions = {}): Promise<TestSession> =>
    sessions.open({ clientDialect: 'ga', upstreamDialect: 'ga', ...options })

  /** The upstream says it, and the client has heard it. */
  async function say({ client, upstream }: TestSession, ...events: readonly object[]): Promise<void> {
    const heard = client.count(client.received.length + events.length)
    for (const event of events) upstream.send(event)
    await heard
  }

  /** The client says it, and the upstream has heard it. */
  async function ask({ client, upstream }: TestSession, event: object): Promise<void> {
    const heard = upstream.count(upstream.received.length + 1)
    client.send(event)
    await heard
  }

  /** Resolves when all that the client has sent has been judged. */
  async function judged({ client }: TestSession): Promise<void> {
    const refused = client.count(client.received.length + 1)
    client.send({ type: 'nothing' })
    await refused
  }

  const typesOf = (events: readonly Record<string, unknown>[]): unknown[] => events.map(({ type }) => type)

  const COMMIT = { type: 'input_audio_buffer.commit' }

  describe('A client that leaves', () => {
    it.each<[string, string, SessionAct]>([
      ['with a close', 'client_closed', closes('client', 1000)],
      ['with a close of its own code', 'client_closed', closes('client', 4001)],
      ['with a close without a code', 'client_closed', closes('client')],
      ['without a close', 'client_lost', vanishes('client')],
    ])('%s closes the upstream with 1000 within a second', async (_name, cause, leave) => {
      const opened = await sessions.open()
      const { call, session, upstream } = opened
      const leftAtMs = performance.now()
      leave(opened)
      expect(await upstream.closed).toEqual({ code: 1000, reason: '' })
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ONE_SECOND_MS))
      await session.ended
      expect(session.endCause).toBe(cause)
      expect(call.disconnect.aborted).toBe(cause === 'client_lost')
      expect(call.log.failure).toBeUndefined()
    })

    it('cuts an upstream that does not agree to the close', async () => {
      const { client, session, upstream } = await sessions.open()
      upstream.socket.pause()
      client.socket.terminate()
      await session.ended
      upstream.socket.resume()
      expect(await upstream.closed).toMatchObject({ code: 1000 })
    })

    it('before the session began closes the upstream', async () => {
      const { session, upstream } = await sessions.open({
        beforeStart: async ({ client }) => {
          const gone = once(client, 'close')
          client.terminate()
          await gone
        },
      })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      await session.ended
      expect(session.endCause).toBe('client_lost')
    })

    it.each<[string, number, Buffer]>([
      ['a message over the limit', 1009, Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0])],
      ['a bit it may not set', 1002, Buffer.from([0xf1, 0x80])],
      ['text that is not UTF-8', 1007, Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0xff])],
    ])('by sending %s is closed with %d, and so is the upstream', async (_name, code, bytes) => {
      const { client, session, upstream } = await sessions.open()
      const connection = Reflect.get(client.socket, '_socket') as { write(bytes: Buffer): void }
      connection.write(bytes)
      expect(await client.closed).toMatchObject({ code })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      await session.ended
      expect(session.endCause).toBe('client_broke_protocol')
    })

    it('with a close but keeps its connection is noticed before the connection ends', async () => {
      const { client, session, upstream } = await sessions.open({ limits: { realtimeStuckMs: 500 } })
      // The library ends the connection in answer to a close; this client never does.
      const connection = Reflect.get(client.socket, '_socket') as { write(bytes: Buffer): void; end: () => void }
      connection.end = () => undefined
      connection.write(Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]))
      client.socket.pause()
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      await session.ended
    })
  })

  describe('The end of a session', () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

    it.each<[string, SessionAct]>([
      ['a close of the upstream', closes('upstream', 1000)],
      ['a loss of the upstream', vanishes('upstream')],
      ['a close of the client', closes('client', 1000)],
      ['a drain', drains],
    ])('by %s leaves no timer', async (_name, end) => {
      const before = timers()
      const opened = await sessions.open()
      expect(timers()).toBeGreaterThan(before)
      end(opened)
      const { client, session, upstream } = opened
      await Promise.all([session.ended, client.closed, upstream.closed])
      expect(timers()).toBe(before)
    })
  })

  describe('An upstream that closes', () => {
    it.each([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 4000, 4999])(
      'with %d closes the client with the same code and reason',
      async (code) => {
        const { client, session, upstream } = await sessions.open()
        upstream.send({ type: 'input_audio_buffer.cleared' })
        upstream.socket.close(code, 'because of this')
        expect(await client.closed).toEqual({ code, reason: 'because of this' })
        await session.ended
        expect(session.endCause).toBe('upstream_closed')
        expect(client.events()).toEqual([{ type: 'input_audio_buffer.cleared' }])
      },
    )

    it('without a code closes the client with 1000', async () => {
      const { call, client, upstream } = await sessions.open()
      upstream.socket.close()
      expect(await client.closed).toEqual({ code: 1000, reason: '' })
      expect(call.log.failure).toBeUndefined()
    })

    it('with a code that tells of a fault is a failure in the log', async () => {
      const { call, client, upstream } = await sessions.open()
      upstream.socket.close(4000, 'beta')
      await client.closed
      expect(call.log.failure).toMatchObject({ kind: 'upstream_failed' })
    })

    it('shows no secret in its reason, which is cut where a character ends', async () => {
      const { client, upstream } = await sessions.open()
      upstream.socket.close(3000, `${SECRET} at https://a.b/c ${'é'.repeat(40)}`)
      const { reason } = await client.closed
      expect(reason).toBe(`[key] at [address] ${'é'.repeat(40)}`)
    })
  })

  describe('The loss of the upstream', () => {
    /** Bytes that the library would not send. */
    const upstreamWrites =
      (...bytes: readonly number[]): SessionAct =>
      ({ upstream }) => {
        const connection = Reflect.get(upstream.socket, '_socket') as { write(bytes: Buffer): void }
        connection.write(Buffer.from(bytes))
      }

    it.each<[string, SessionAct]>([
      ['by a cut', vanishes('upstream')],
      ['by a frame that breaks the protocol', upstreamWrites(0xf1, 0x00)],
      ['by a close code that does not exist', upstreamWrites(0x88, 0x02, 0x07, 0xd0)],
    ])('%s is told by an error event and 1011, after all that came before', async (_name, lose) => {
      const opened = await sessions.open()
      const { call, client, session, upstream } = opened
      upstream.send({ type: 'input_audio_buffer.cleared' })
      await client.count(1)
      lose(opened)
      expect(await client.closed).toEqual(LOST)
      expect(client.events().slice(1)).toMatchObject([UPSTREAM_FAILED])
      expect(session.endCause).toBe('upstream_lost')
      expect(call.log.failure).toMatchObject({ kind: 'upstream_failed' })
      expect(call.disconnect.aborted).toBe(false)
      await session.ended
    })

    it('before the session began is told all the same', async () => {
      const { client, session } = await sessions.open({
        beforeStart: async ({ upstream }) => {
          const gone = once(upstream, 'close')
          upstream.terminate()
          await gone
        },
      })
      expect(await client.closed).toEqual(LOST)
      await session.ended
    })
  })

  describe('A drain', () => {
    it('closes both sides with 1001 and without an error', async () => {
      const { call, client, session, upstream } = await sessions.open()
      session.drain()
      session.drain()
      expect(await client.closed).toMatchObject({ code: 1001 })
      expect(await upstream.closed).toMatchObject({ code: 1001 })
      await session.ended
      expect(client.received).toEqual([])
      expect(call.log.failure).toBeUndefined()
    })

    it('ends the session of a client that neither reads nor agrees', async () => {
      const { client, session } = await sessions.open()
      client.socket.pause()
      session.drain()
      await session.ended
    })

    it('drops what still comes from either side', async () => {
      const { client, session, upstream } = await sessions.open()
      session.drain()
      client.send({ type: 'input_audio_buffer.commit' })
      upstream.send({ type: 'input_audio_buffer.cleared' })
      await session.ended
      expect([client.received, upstream.received]).toEqual([[], []])
    })
  })

  describe('An upstream that is not read when the session ends, as the client takes nothing', () => {
    it('is heard to the end: it agrees to the close, and its last answer counts', async () => {
      const { client, entries, near, session, upstream } = await sessions.open({ clientDialect: 'beta' })
      client.socket.pause()
      const speech = { type: 'response.audio.delta', delta: 'A'.repeat(16_000_000) }
      upstream.send(speech)
      await eventually(() => near.upstream.isPaused)
      // More than Node reads of a connection that is paused.
      upstream.send(speech)
      upstream.send({ type: 'response.done', response: { usage: { total_tokens: 3 } } })
      const closed = once(near.upstream, 'close')
      session.drain()
      expect((await closed)[0]).toBe(1001)
      expect(entries).toMatchObject([{ units: { total_tokens: 3 } }])
      client.socket.resume()
      await session.ended
    })
  })

  describe('A session that is to finish', () => {
    it.each<[string, readonly object[]]>([
      ['in which the client has asked for nothing', []],
      ['that has its answer', [CREATED, WORD, DONE]],
      ['whose answer has failed', [CREATED, { type: 'response.done', response: { id: 'resp_1', status: 'failed' } }]],
    ])('%s is closed with 1001 at once, on both sides', async (_which, events) => {
      const opened = await open()
      await say(opened, ...events)
      opened.session.finish()
      expect(await Promise.all([opened.client.closed, opened.upstream.closed])).toEqual([
        RESTARTING,
        { code: 1001, reason: '' },
      ])
      await opened.session.ended
      expect(opened.session.endCause).toBe('drained')
      expect(opened.client.received).toHaveLength(events.length)
    })

    it('is closed when the answer that its client has asked for has ended, and has that answer whole', async () => {
      const opened = await open()
      const { client, entries, session } = opened
      await ask(opened, CREATE)
      session.finish()
      session.finish()
      await say(opened, CREATED, WORD, WORD)
      expect(session.endCause).toBeUndefined()
      opened.upstream.send(DONE)
      expect(await client.closed).toEqual(RESTARTING)
      await session.ended
      expect(client.events()).toEqual([CREATED, WORD, WORD, DONE])
      expect(entries).toMatchObject([{ units: USAGE, estimated: false }])
      expect(entries[0]?.outcome).toBeUndefined()
      expect(opened.call.log.failure).toBeUndefined()
    })

    it.each<[string, object]>([
      ['that it has begun by itself', CREATED],
      ['of which it has not said that it begins', WORD],
    ])('is not closed while its upstream is at an answer %s', async (_how, event) => {
      const opened = await open()
      await say(opened, event)
      opened.session.finish()
      await say(opened, WORD)
      expect(opened.session.endCause).toBeUndefined()
      opened.upstream.send(DONE)
      expect(await opened.client.closed).toEqual(RESTARTING)
      expect(typesOf(opened.client.events()).at(-1)).toBe('response.done')
    })

    it('is not closed before the last of several answers has ended', async () => {
      const opened = await open()
      const other = (event: object): object => JSON.parse(JSON.stringify(event).replace('resp_1', 'resp_2')) as object
      await say(opened, CREATED, other(CREATED))
      opened.session.finish()
      await say(opened, DONE)
      expect(opened.session.endCause).toBeUndefined()
      opened.upstream.send(other(DONE))
      expect(await opened.client.closed).toEqual(RESTARTING)
    })

    it('is closed when its upstream refuses the answer that was asked for', async () => {
      const opened = await open()
      await ask(opened, CREATE)
      opened.session.finish()
      const error = { type: 'invalid_request_error', code: 'invalid_value', message: 'No.', event_id: 'mine' }
      opened.upstream.send({ type: 'error', error })
      expect(await opened.client.closed).toEqual(RESTARTING)
      expect(typesOf(opened.client.events())).toEqual(['error'])
    })

    it('begins nothing more: only a cancel goes on to its upstream, and wrong events are answered as ever', async () => {
      const opened = await open()
      const { client, session, upstream } = opened
      await say(opened, CREATED)
      session.finish()
      client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
      client.send(CREATE)
      client.send({ type: 'session.update', session: { type: 'realtime' } })
      await judged(opened)
      await ask(opened, { type: 'response.cancel' })
      expect(typesOf(upstream.events())).toEqual(['response.cancel'])
      upstream.send({ type: 'response.done', response: { id: 'resp_1', status: 'cancelled', usage: USAGE } })
      expect(await client.closed).toEqual(RESTARTING)
      expect(typesOf(client.events())).toEqual(['response.created', 'error', 'response.done'])
      expect(opened.entries).toMatchObject([{ units: USAGE, estimated: false }])
    })

    it('ends in mid-answer once the grace time is over, with an estimate of what was said', async () => {
      const opened = await open()
      await say(opened, CREATED, WORD)
      opened.session.finish()
      await say(opened, WORD)
      opened.session.drain()
      expect(await opened.client.closed).toEqual(RESTARTING)
      await opened.session.ended
      expect(opened.entries).toMatchObject([{ units: { output_tokens: 2 }, estimated: true, outcome: 'refused' }])
    })

    it('ends when its client leaves, though the answer has not ended', async () => {
      const opened = await open()
      await say(opened, CREATED)
      opened.session.finish()
      opened.client.socket.close(1000)
      expect(await opened.upstream.closed).toEqual({ code: 1000, reason: '' })
      await opened.session.ended
      expect(opened.session.endCause).toBe('client_closed')
      expect(opened.entries).toMatchObject([{ outcome: 'caller_left' }])
    })

    it('ends when its upstream falls silent in the answer', async () => {
      const opened = await open({ limits: { realtimeIdleMs: 300 } })
      await say(opened, CREATED)
      opened.session.finish()
      expect(await opened.client.closed).toEqual({ code: 1001, reason: 'idle timeout' })
      expect(opened.session.endCause).toBe('idle')
    })

    it('ends with its upstream', async () => {
      const opened = await open()
      await say(opened, CREATED)
      opened.session.finish()
      const closed = once(opened.client.socket, 'close')
      opened.upstream.socket.close(1011, 'out of order')
      expect((await closed)[0]).toBe(1011)
      expect(opened.session.endCause).toBe('upstream_closed')
    })
  })

  describe('A silent side', () => {
    it('is cut off when it is the client, and the upstream closed', async () => {
      const { call, client, session, upstream } = await sessions.open({
        clientPongs: false,
        limits: { realtimePingMs: 30 },
      })
      expect(await client.closed).toMatchObject({ code: 1006 })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      await session.ended
      expect(session.endCause).toBe('client_silent')
      expect(call.disconnect.aborted).toBe(true)
    })

    it('is cut off when it is the upstream, and the client told', async () => {
      const { call, client, session, upstream } = await sessions.open({
        upstreamPongs: false,
        limits: { realtimePingMs: 30 },
      })
      expect(await upstream.closed).toMatchObject({ code: 1006 })
      expect(await client.closed).toEqual({ code: 1011, reason: 'upstream connection lost' })
      expect(client.events()).toMatchObject([
        { type: 'error', error: { type: 'server_error', code: 'upstream_failed', event_id: null } },
      ])
      await session.ended
      expect(session.endCause).toBe('upstream_silent')
      expect(call.log.failure).toMatchObject({ kind: 'upstream_failed' })
    })

    it('that answers pings is left in peace', async () => {
      const { client, session, upstream } = await sessions.open({ limits: { realtimePingMs: 20 } })
      const manyPings = (socket: typeof client.socket): Promise<void> =>
        new Promise((resolve) => {
          let pings = 0
          socket.on('ping', () => {
            if (++pings === 10) resolve()
          })
        })
      await Promise.all([manyPings(client.socket), manyPings(upstream.socket)])
      expect(session.endCause).toBeUndefined()
    })
  })

  describe('A session without events', () => {
    it('is closed with 1001 after an error event that says so', async () => {
      const { client, session, upstream } = await sessions.open({ limits: { realtimeIdleMs: 60 } })
      expect(await client.closed).toEqual({ code: 1001, reason: 'idle timeout' })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      expect(client.events()).toMatchObject([
        { type: 'error', error: { type: 'invalid_request_error', code: 'session_idle', param: null } },
      ])
      await session.ended
    })

    it.each(['client', 'upstream'] as const)('is not one in which the %s speaks', async (speaker) => {
      const opened = await sessions.open({ limits: { realtimeIdleMs: 100 } })
      const { client, session, upstream } = opened
      const [from, to] = speaker === 'client' ? [client, upstream] : [upstream, client]
      const startedAtMs = performance.now()
      let sent = 0
      to.socket.on('message', () => {
        setTimeout(() => {
          if (performance.now() - startedAtMs < 500) from.send(COMMIT)
          else from.socket.close()
          sent++
        }, 5)
      })
      from.send(COMMIT)
      await session.ended
      expect(session.endCause).toBe(`${speaker}_closed`)
      expect(sent).toBeGreaterThan(5)
    })
  })

  describe('A session that is too old', () => {
    it('ends as the upstream would end it, though it is in use', async () => {
      const { client, session, upstream } = await sessions.open({ limits: { realtimeAgeMs: 100 } })
      upstream.socket.on('message', () => {
        upstream.send({ type: 'input_audio_buffer.committed' })
      })
      client.send(COMMIT)
      const message = 'Your session hit the maximum duration of 0 minutes.'
      expect(await client.closed).toEqual({ code: 1001, reason: message })
      expect(await upstream.closed).toMatchObject({ code: 1000 })
      expect(client.events().at(-1)).toMatchObject({
        type: 'error',
        error: { type: 'invalid_request_error', code: 'session_expired', message },
      })
      await session.ended
    })
  })

  describe('The timer of a session', () => {
    it('is one', async () => {
      const { near } = await sessions.open()
      const [client, upstream] = [new SocketSide(near.client, 1), new SocketSide(near.upstream, 1)]
      const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
      const before = timers()
      const { DEFAULT_LIMITS } = await import('../../test/support/realtime-session.js')
      const clock = new SessionTimers(DEFAULT_LIMITS, client, upstream, () => undefined)
      clock.start()
      expect(timers()).toBe(before + 1)
      clock.stop()
      expect(timers()).toBe(before)
    })
  })
})

describe('The reason of a close', () => {
  it('that may be shown stays as it is', () => {
    expect(closeReason(Buffer.from('session over'), 'secret-1')).toBe('session over')
    expect(closeReason(Buffer.alloc(0), 'secret-1')).toBe('')
  })

  it('shows no host, no account and no secret', () => {
    const reason = Buffer.from('secret-1 of org-abcdef refused at wss://api.example.com/v1')
    expect(closeReason(reason, 'secret-1')).toBe('[key] of [account] refused at [address]')
  })

  it('always fits into a close frame and is the beginning of what was said', () => {
    // What a cut character would become may not be in the text itself.
    const texts = fc.string({ unit: 'grapheme', maxLength: 400 }).filter((text) => !text.includes('\ufffd'))
    fc.assert(
      fc.property(texts, (text) => {
        const reason = closeReason(Buffer.from(text), '')
        const bytes = Buffer.from(reason)
        expect(bytes.length).toBeLessThanOrEqual(123)
        expect(isUtf8(bytes)).toBe(true)
        expect(reason).not.toContain('\ufffd')
      }),
    )
  })

  it.each(['é', '€', '😀'])('is cut before a character that does not fit whole: %s', (character) => {
    for (let padding = 118; padding <= 123; padding++) {
      const reason = closeReason(Buffer.from('x'.repeat(padding) + character.repeat(3)), '')
      expect(reason).toMatch(new RegExp(`^x+${character}*$`, 'u'))
      expect(Buffer.byteLength(reason)).toBeGreaterThan(123 - Buffer.byteLength(character))
    }
  })
})

describe('session timers', () => {
  let pairs: SocketPairs
  beforeEach(async () => {
    pairs = await startSocketPairs()
  })
  afterEach(() => pairs.close())

  const PAUSE_BYTES = 1000
  /** More than the buffers of the system take, so that something waits in the process. */
  const LARGE = Buffer.alloc(64_000_000, 0x20)
  /** More than the system takes off the reader's hands at once. */
  const PIECE_BYTES = 6_000_000

  async function sideOf(autoPong: boolean): Promise<{ readonly side: SocketSide; readonly pair: SocketPair }> {
    const pair = await pairs.open({ near: 'server', autoPong })
    pair.server.resume()
    return { side: new SocketSide(pair.server, PAUSE_BYTES), pair }
  }

  const pinged = (pair: SocketPair): Promise<unknown> =>
    new Promise((resolve) => {
      pair.client.once('ping', resolve)
    })

  describe('A side that answers pings', () => {
    it('lives', async () => {
      const { side, pair } = await sideOf(true)
      const heart = new Heartbeat(side)
      for (let beats = 0; beats < 5; beats++) {
        const ponged = new Promise((resolve) => pair.server.once('pong', resolve))
        expect(heart.beat()).toBe(true)
        await ponged
      }
    })
  })

  describe('A side that does not answer pings', () => {
    it('is dead when the second one has no answer', async () => {
      const { side, pair } = await sideOf(false)
      const heart = new Heartbeat(side)
      for (let beats = 0; beats < 2; beats++) {
        const asked = pinged(pair)
        expect(heart.beat()).toBe(true)
        await asked
      }
      expect(heart.beat()).toBe(false)
    })

    it('lives while it speaks', async () => {
      const { side, pair } = await sideOf(false)
      const heart = new Heartbeat(side)
      for (let beats = 0; beats < 5; beats++) {
        const heard = new Promise((resolve) => pair.server.once('message', resolve))
        expect(heart.beat()).toBe(true)
        pair.client.send('here')
        await heard
      }
    })

    it('lives while a long message of it comes in', async () => {
      const { side, pair } = await sideOf(false)
      const heart = new Heartbeat(side)
      const connection = Reflect.get(pair.client, '_socket') as { write(bytes: Buffer): void }
      connection.write(Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
      for (let beats = 0; beats < 5; beats++) {
        const before = side.bytesRead
        expect(heart.beat()).toBe(true)
        connection.write(Buffer.alloc(100))
        await eventually(() => side.bytesRead > before)
      }
    })

    it('lives while it is not read', async () => {
      const { side, pair } = await sideOf(false)
      const slow = await sideOf(true)
      slow.pair.client.pause()
      slow.side.send(LARGE, side)
      const heart = new Heartbeat(side)
      for (let beats = 0; beats < 5; beats++) {
        const asked = pinged(pair)
        expect(heart.beat()).toBe(true)
        await asked
      }
      slow.pair.client.resume()
      await eventually(() => !side.socket.isPaused)
      // The interval in which it was still held does not count either.
      for (let beats = 0; beats < 2; beats++) {
        const asked = pinged(pair)
        expect(heart.beat()).toBe(true)
        await asked
      }
      expect(heart.beat()).toBe(false)
    })
  })

  describe('A side that takes nothing', () => {
    it('is dead though it speaks', async () => {
      const { side, pair } = await sideOf(true)
      const heart = new Heartbeat(side)
      pair.client.pause()
      side.send(LARGE, side)
      side.readOn()
      const verdicts: boolean[] = []
      for (let beats = 0; beats < 4; beats++) {
        verdicts.push(heart.beat())
        const heard = new Promise((resolve) => pair.server.once('message', resolve))
        pair.client.send('here')
        await heard
      }
      expect(verdicts).toEqual([true, true, false, false])
    })

    it('lives while it takes a long message piece by piece, as over a slow line', async () => {
      const { side, pair } = await sideOf(false)
      const heart = new Heartbeat(side)
      const far = Reflect.get(pair.client, '_socket') as { readonly bytesRead: number }
      pair.client.pause()
      side.send(LARGE, side)
      side.readOn()
      for (let beats = 0; beats < 6; beats++) {
        expect(heart.beat()).toBe(true)
        const readBefore = far.bytesRead
        pair.client.resume()
        await eventually(() => far.bytesRead > readBefore + PIECE_BYTES)
        pair.client.pause()
      }
      expect(side.waitingBytes).toBeGreaterThan(0)
      // Now it takes nothing any more.
      expect(heart.beat()).toBe(true)
      await eventually(() => !heart.beat())
    })

    it('lives as soon as it takes something', async () => {
      const { side, pair } = await sideOf(false)
      const heart = new Heartbeat(side)
      pair.client.pause()
      side.send(LARGE, side)
      side.readOn()
      expect([heart.beat(), heart.beat()]).toEqual([true, true])
      pair.client.resume()
      await eventually(() => side.waitingBytes === 0)
      expect([heart.beat(), heart.beat()]).toEqual([true, true])
    })
  })
})
