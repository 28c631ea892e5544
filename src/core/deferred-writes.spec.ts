import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../../test/support/eventually.js'
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
    expect([socket.bytesWritten, socket.writableLength]).toEqual([8, 0])
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

  it('has handed over all that was written before it is destroyed, while others write on', async () => {
    const other = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await Promise.all([once(other, 'connect'), once(server, 'connection')])
    deferWrites(other)
    const written = ['one ', 'two ', 'three'].map(
      (text) => new Promise<unknown>((resolve) => socket.write(text, resolve)),
    )
    socket.destroy()
    for (const failure of await Promise.all(written)) expect(failure ?? undefined).toBeUndefined()
    other.end('kept')
    await ended
    expect(received).toContain('one two three')
    expect(received).toContain('kept')
  })

  it('does not write for ever in one turn, whatever it writes once it can', async () => {
    let writes = 0
    const again = (): void => {
      if (writes++ < 100) socket.write('x', again)
    }
    again()
    await nextTurn()
    expect(writes).toBeLessThan(5)
    await eventually(() => writes > 100)
  })
})
