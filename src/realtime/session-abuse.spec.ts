import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startSessions, type TestSession, type TestSessions } from '../../test/support/realtime-session.js'

const FRAGMENTS = 16

let sessions: TestSessions
beforeEach(async () => {
  sessions = await startSessions({ maxFragments: FRAGMENTS })
})
afterEach(() => sessions.close())

const COMMIT = { type: 'input_audio_buffer.commit' }

describe('A client that sends too much', () => {
  it('in pings is closed with 1008', async () => {
    const { client, session, upstream } = await sessions.open({ limits: { realtimePingsPerSecond: 20 } })
    for (let pings = 0; pings < 50; pings++) client.socket.ping()
    expect(await client.closed).toEqual({ code: 1008, reason: 'too many pings per second' })
    expect(await upstream.closed).toMatchObject({ code: 1000 })
    await session.ended
  })

  it('in pongs that nobody asked for is closed with 1008', async () => {
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
  ])('in events %s is closed with 1008', async (_name, text) => {
    const { client, session, upstream } = await sessions.open({ limits: { realtimeEventsPerSecond: 50 } })
    for (let events = 0; events < 200; events++) client.send(text)
    expect(await client.closed).toEqual({ code: 1008, reason: 'too many events per second' })
    expect(await upstream.closed).toMatchObject({ code: 1000 })
    await session.ended
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
    expect(call.departure.left).toBe(true)
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
