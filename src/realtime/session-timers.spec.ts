import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
import { type SocketPair, type SocketPairs, startSocketPairs } from '../../test/support/socket-pairs.js'
import { Heartbeat } from './heartbeat.js'
import { SocketSide } from './socket.js'

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
