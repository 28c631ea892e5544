import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { WebSocket } from 'ws'
import { type SocketPairs, startSocketPairs } from '../../test/support/socket-pairs.js'
import { MessageOrder } from './message-queue.js'
import { SocketSide } from './socket.js'

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
  readonly order: MessageOrder

  private constructor(
    readonly client: WebSocket,
    readonly near: WebSocket,
  ) {
    const handle = (data: Buffer, isBinary: boolean): Promise<void> | undefined => this.handle(data, isBinary)
    this.order = new MessageOrder(new SocketSide(near, 1_000_000), handle, (error) => this.failures.push(error))
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

describe('The messages of a client', () => {
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

  it('are not handled any more once nobody hears them', async () => {
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
