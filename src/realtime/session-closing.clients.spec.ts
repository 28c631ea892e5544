import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'

import { startSessions, type TestSession, type TestSessions } from '../../test/support/realtime-session.js'

let sessions: TestSessions
beforeEach(async () => {
  sessions = await startSessions({ maxPayload: 100_000 })
})
afterEach(() => sessions.close())

/** Within which the other side must be closed (design: Disconnect). */
const ONE_SECOND_MS = 1000

describe('A client that leaves', () => {
  it.each<[string, string, (client: { terminate(): void; close(code?: number): void }) => void]>([
    [
      'with a close',
      'client_closed',
      (socket) => {
        socket.close(1000)
      },
    ],
    [
      'with a close of its own code',
      'client_closed',
      (socket) => {
        socket.close(4001)
      },
    ],
    [
      'with a close without a code',
      'client_closed',
      (socket) => {
        socket.close()
      },
    ],
    [
      'without a close',
      'client_lost',
      (socket) => {
        socket.terminate()
      },
    ],
  ])('%s closes the upstream with 1000 within a second', async (_name, cause, leave) => {
    const { call, client, session, upstream } = await sessions.open()
    const leftAtMs = performance.now()
    leave(client.socket)
    expect(await upstream.closed).toEqual({ code: 1000, reason: '' })
    expect(performance.now() - leftAtMs).toBeLessThan(ONE_SECOND_MS)
    await session.ended
    expect(session.endCause).toBe(cause)
    expect(call.departure.left).toBe(cause === 'client_lost')
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

  it.each<[string, (opened: TestSession) => void]>([
    [
      'a close of the upstream',
      ({ upstream }) => {
        upstream.socket.close(1000)
      },
    ],
    [
      'a loss of the upstream',
      ({ upstream }) => {
        upstream.socket.terminate()
      },
    ],
    [
      'a close of the client',
      ({ client }) => {
        client.socket.close(1000)
      },
    ],
    [
      'a drain',
      ({ session }) => {
        session.drain()
      },
    ],
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
