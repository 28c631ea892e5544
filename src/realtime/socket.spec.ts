import { setTimeout as passTime } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { heldBytes } from '../../test/support/held-memory.js'
import { eventually } from '../../test/support/eventually.js'
import { startSessions, type TestSessions } from '../../test/support/realtime-session.js'
import { EventPace, type SessionSocket } from './socket.js'

let sessions: TestSessions
beforeEach(async () => {
  sessions = await startSessions()
})
afterEach(() => sessions.close())

const AUDIO = Buffer.alloc(6000, 7).toString('base64')
const PAUSE_BYTES = 1_048_576
/** What one read of a connection may bring after the mark was reached. */
const ONE_READ_BYTES = 131_072
const MANY = 8000
/** Their answers are more than the buffers of the system take. */
const BROKEN = 100_000
const NO_RATE = { realtimeEventsPerSecond: 1_000_000 }
const MEGABYTE = 1_048_576
/** Of audio, in events of 8 KB. */
const MINUTE = 2000

const append = (n: number): string => `{"type":"input_audio_buffer.append","audio":"${AUDIO}","event_id":"${n}"}`
const delta = (n: number): string => `{"type":"response.audio.delta","delta":"${AUDIO}","n":${n}}`

/** Sends as fast as the other side takes it. Resolves when everything is on its way. */
async function flood(socket: SessionSocket, messageOf: (n: number) => string, messages: number): Promise<void> {
  for (let n = 0; n < messages; n++) {
    const message = messageOf(n)
    await new Promise((resolve) => {
      socket.send(message, resolve)
    })
  }
}

/** Resolves when nothing moves any more: the one side is not read, and the other takes nothing of what waits for it. */
async function standstill(unread: SessionSocket, stuck: SessionSocket): Promise<void> {
  for (let waitingBytes = 0; ;) {
    await eventually(() => unread.isPaused)
    if (waitingBytes > 0 && stuck.bufferedAmount === waitingBytes) return
    waitingBytes = stuck.bufferedAmount
    await passTime(100)
  }
}

describe('A client that does not read', () => {
  it('stops the reading of the upstream at the mark, and gets everything in order once it reads', async () => {
    const { client, near, upstream } = await sessions.open({ clientDialect: 'beta' })
    const numbers: unknown[] = []
    client.socket.removeAllListeners('message')
    client.socket.on('message', (data: Buffer) => numbers.push((JSON.parse(data.toString()) as { n: number }).n))
    client.socket.pause()
    const beforeBytes = heldBytes()
    const flooded = flood(upstream.socket, delta, MANY)
    await standstill(near.upstream, near.client)
    expect(near.client.bufferedAmount).toBeGreaterThan(PAUSE_BYTES / 2)
    expect(near.client.bufferedAmount).toBeLessThan(PAUSE_BYTES + ONE_READ_BYTES)
    expect(heldBytes() - beforeBytes).toBeLessThan(8 * MEGABYTE)
    client.socket.resume()
    await flooded
    await eventually(() => numbers.length === MANY)
    expect(numbers).toEqual(Array.from({ length: MANY }, (_, n) => n))
    expect(near.upstream.isPaused).toBe(false)
  })

  it('is not read either once the answers to its broken events fill the mark', async () => {
    const { client, near } = await sessions.open({ limits: { ...NO_RATE, realtimePauseBytes: 65_536 } })
    client.socket.pause()
    for (let n = 0; n < BROKEN; n++) client.send('{')
    await standstill(near.client, near.client)
    expect(near.client.bufferedAmount).toBeLessThan(10 * MEGABYTE)
    client.socket.resume()
    await client.count(BROKEN)
  })

  it('but has less than the closing mark to read is left in peace', async () => {
    const { client, near, session, upstream } = await sessions.open({
      clientDialect: 'beta',
      limits: { realtimeStuckMs: 20 },
    })
    client.socket.pause()
    void flood(upstream.socket, delta, MANY)
    await standstill(near.upstream, near.client)
    expect(session.endCause).toBeUndefined()
  })

  it('for too long beyond the closing mark is closed with 1013, and the upstream with 1000', async () => {
    const { client, near, session, upstream } = await sessions.open({
      clientDialect: 'beta',
      limits: { realtimeStuckMs: 100, realtimeCloseBytes: 500_000 },
    })
    client.socket.pause()
    void flood(upstream.socket, delta, MANY)
    await eventually(() => near.client.readyState !== near.client.OPEN)
    client.socket.resume()
    expect(await client.closed).toEqual({ code: 1013, reason: 'slow reader' })
    expect(await upstream.closed).toMatchObject({ code: 1000 })
    await session.ended
    expect(client.events().every(({ type }) => type === 'response.audio.delta')).toBe(true)
  })
})

describe('An upstream that does not read', () => {
  it('stops the reading of the client at the mark, and gets everything in order once it reads', async () => {
    const { client, near, upstream } = await sessions.open({ limits: NO_RATE })
    upstream.socket.pause()
    const flooded = flood(client.socket, append, MANY)
    await standstill(near.client, near.upstream)
    expect(near.upstream.bufferedAmount).toBeLessThan(PAUSE_BYTES + ONE_READ_BYTES)
    upstream.socket.resume()
    await flooded
    await upstream.count(MANY)
    expect(upstream.received.map(String).every((text, n) => text === append(n))).toBe(true)
    expect(near.client.isPaused).toBe(false)
  })

  it('for too long beyond the closing mark is closed with 1013, and the client with 1001', async () => {
    const { call, client, near, session, upstream } = await sessions.open({
      limits: { ...NO_RATE, realtimeStuckMs: 100, realtimeCloseBytes: 500_000 },
    })
    upstream.socket.pause()
    void flood(client.socket, append, MANY)
    await eventually(() => near.upstream.readyState !== near.upstream.OPEN)
    upstream.socket.resume()
    expect(await client.closed).toMatchObject({ code: 1001 })
    await session.ended
    expect(session.endCause).toBe('upstream_slow')
    expect(call.log.failure).toMatchObject({ kind: 'upstream_failed' })
  })
})

describe('A client that sends a minute of recorded audio at once', () => {
  it('is read at its rate: all of it arrives in order, and little of it waits in memory', async () => {
    const { client, near, session, upstream } = await sessions.open({ limits: { realtimeEventsPerSecond: 500 } })
    const beforeBytes = heldBytes()
    const startedAtMs = performance.now()
    const flooded = flood(client.socket, append, MINUTE)
    let mostBytes = 0
    let looks = 0
    await eventually(() => {
      // Each look is a collection.
      if (upstream.received.length < looks * 200) return false
      looks++
      // What has arrived at the test's own end is no memory of the session.
      const receivedBytes = upstream.received.length * append(0).length
      mostBytes = Math.max(mostBytes, heldBytes() - beforeBytes - receivedBytes)
      return upstream.received.length === MINUTE
    })
    await flooded
    // A second's events at once, then at the rate.
    expect(performance.now() - startedAtMs).toBeGreaterThan((MINUTE / 500 - 1) * 1000 - 100)
    expect(upstream.received.map(String).every((text, n) => text === append(n))).toBe(true)
    expect(mostBytes).toBeLessThan(8 * MEGABYTE)
    await eventually(() => !near.client.isPaused)
    client.socket.close()
    await session.ended
    expect(session.endCause).toBe('client_closed')
  })
})

describe('The pace of a client', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  /** As many events as the pace allows within this time, and whether the client was too fast for too long. */
  function sentWithin(pace: EventPace, durationMs: number): { readonly events: number; readonly isTooFast: boolean } {
    const endsAtMs = performance.now() + durationMs
    for (let events = 0; ;) {
      if (pace.take()) {
        events++
        continue
      }
      const waitMs = pace.waitMs()
      if (waitMs === undefined) return { events, isTooFast: true }
      if (performance.now() + waitMs > endsAtMs) return { events, isTooFast: false }
      jest.advanceTimersByTime(Math.ceil(waitMs))
    }
  }

  it('is that of its limit after a first second’s worth', () => {
    const { events, isTooFast } = sentWithin(new EventPace(100, 30_000), 10_000)
    expect(isTooFast).toBe(false)
    expect(events).toBeGreaterThan(1000)
    expect(events).toBeLessThanOrEqual(1100)
  })

  it('is exceeded for too long by a client that never has enough, not by one that rests', () => {
    expect(sentWithin(new EventPace(100, 5_000), 6_000).isTooFast).toBe(true)
    const rested = new EventPace(100, 5_000)
    for (let burst = 0; burst < 5; burst++) {
      expect(sentWithin(rested, 4_000).isTooFast).toBe(false)
      jest.advanceTimersByTime(1_200)
    }
  })

  it('makes a client wait no longer than one event takes where it is slow', () => {
    const pace = new EventPace(1, 30_000)
    expect([pace.take(), pace.take(), pace.waitMs()]).toEqual([true, false, 1000])
  })
})

describe('One message that is larger than the mark', () => {
  it('passes, and the session goes on', async () => {
    const { client, near, upstream } = await sessions.open()
    const large = JSON.stringify({
      type: 'input_audio_buffer.append',
      audio: Buffer.alloc(9_000_000).toString('base64'),
    })
    client.send(large)
    client.send({ type: 'input_audio_buffer.commit' })
    await upstream.count(2)
    expect(upstream.received[0]?.length).toBe(large.length)
    expect(near.client.isPaused).toBe(false)
  })
})
