import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import {
  type SocketPair,
  type SocketPairs,
  startSessions,
  startSocketPairs,
  type TestSessions,
} from '../../test/support/realtime-session.js'
import { Heartbeat, SessionTimers } from './session-timers.js'
import { SocketSide } from './socket.js'

describe('session clock', () => {
  let sessions: TestSessions
  beforeEach(async () => {
    sessions = await startSessions()
  })
  afterEach(() => sessions.close())

  const COMMIT = { type: 'input_audio_buffer.commit' }

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

    it('lives while nobody reads it', async () => {
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
