import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { deferWrites } from './deferred-writes.js'

describe('A socket whose writes are deferred', () => {
  let server: Server
  let received: string
  let ended: Promise<unknown>
  let socket: Socket

  beforeEach(async () => {
    received = ''
    server = createServer((peer) => {
      peer.on('error', () => undefined)
      ended = once(
        peer.setEncoding('utf8').on('data', (text: string) => (received += text)),
        'close',
      )
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await Promise.all([once(socket, 'connect'), once(server, 'connection')])
    deferWrites(socket)
  })

  afterEach(async () => {
    socket.destroy()
    server.close()
    await ended
  })

  it('hands nothing to the kernel in the turn in which it is written, and all of it in order at its end', async () => {
    socket.write('one ')
    socket.write('two ')
    expect(socket.writableLength).toBe(8)
    await nextTurn()
    socket.cork()
    for (const text of ['three ', 'four ']) socket.write(text)
    socket.uncork()
    await nextTurn()
    socket.end('five')
    await ended
    expect(received).toBe('one two three four five')
  })

  it('says that a write is done once the kernel has it', async () => {
    const done: string[] = []
    socket.write('a', () => done.push('a'))
    await Promise.resolve()
    expect(done).toEqual([])
    await nextTurn()
    await nextTurn()
    expect([done, socket.writableLength]).toEqual([['a'], 0])
  })

  it('waits for no turn when it writes nothing', async () => {
    const done: string[] = []
    socket.write('', () => done.push('nothing'))
    await new Promise<void>((resolve) => {
      process.nextTick(resolve)
    })
    expect(done).toEqual(['nothing'])
  })

  it('asks for patience until a turn ends, and is drained then', async () => {
    const drained = once(socket, 'drain')
    expect(socket.write(Buffer.alloc(socket.writableHighWaterMark))).toBe(false)
    await drained
    expect(socket.writableLength).toBe(0)
  })

  it('has handed over what was written before it is destroyed', async () => {
    socket.write('written')
    socket.destroy()
    await ended
    expect(received).toBe('written')
  })

  it('fails what could not be written any more, and others write on', async () => {
    const other = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await Promise.all([once(other, 'connect'), once(server, 'connection')])
    deferWrites(other)
    socket.write('first')
    const failure = new Promise<unknown>((resolve) => socket.write('second', resolve))
    const written = new Promise<unknown>((resolve) => other.write('kept', resolve))
    socket.destroy()
    await expect(failure).resolves.toBeInstanceOf(Error)
    await expect(written).resolves.not.toBeInstanceOf(Error)
    other.destroy()
    await ended
    expect(received.replace('first', '')).toBe('kept')
  })
})
