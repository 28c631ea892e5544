import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'

import { eventually } from '../../test/support/eventually.js'
import { SECRET, startSessions, type TestSessions } from '../../test/support/realtime-session.js'

let sessions: TestSessions
beforeEach(async () => {
  sessions = await startSessions({ maxPayload: 100_000 })
})
afterEach(() => sessions.close())

const LOST = { code: 1011, reason: 'upstream connection lost' }
const UPSTREAM_FAILED = { type: 'error', error: { type: 'server_error', code: 'upstream_failed' } }

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
  it.each<[string, (upstream: { terminate(): void; send(data: string): void }) => void]>([
    [
      'by a cut',
      (socket) => {
        socket.terminate()
      },
    ],
    [
      'by a frame that breaks the protocol',
      (socket) => {
        const connection = Reflect.get(socket, '_socket') as { write(bytes: Buffer): void }
        connection.write(Buffer.from([0xf1, 0x00]))
      },
    ],
    [
      'by a close code that does not exist',
      (socket) => {
        const connection = Reflect.get(socket, '_socket') as { write(bytes: Buffer): void }
        connection.write(Buffer.from([0x88, 0x02, 0x07, 0xd0]))
      },
    ],
  ])('%s is told by an error event and 1011, after all that came before', async (_name, lose) => {
    const { call, client, session, upstream } = await sessions.open()
    upstream.send({ type: 'input_audio_buffer.cleared' })
    await client.count(1)
    lose(upstream.socket)
    expect(await client.closed).toEqual(LOST)
    expect(client.events().slice(1)).toMatchObject([UPSTREAM_FAILED])
    expect(session.endCause).toBe('upstream_lost')
    expect(call.log.failure).toMatchObject({ kind: 'upstream_failed' })
    expect(call.departure.left).toBe(false)
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
