import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startSessions, type TestSessions } from '../../test/support/realtime-session.js'
import { SessionClock } from './session-timers.js'
import { SocketSide } from './socket.js'

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
    expect(call.departure.left).toBe(true)
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
    const clock = new SessionClock(DEFAULT_LIMITS, client, upstream, () => undefined)
    clock.start()
    expect(timers()).toBe(before + 1)
    clock.stop()
    expect(timers()).toBe(before)
  })
})
