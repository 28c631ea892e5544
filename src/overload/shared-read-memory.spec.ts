import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { readIntoSharedMemory } from './shared-read-memory.js'

let server: Server
let sockets: Socket[]
beforeEach(async () => {
  sockets = []
  server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  server.close()
  await once(server, 'close')
})

/** Both ends of a connection; the accepted one is read as a server's connections are. */
async function connection(): Promise<{ readonly client: Socket; readonly accepted: Socket }> {
  const connected = once(server, 'connection') as Promise<[Socket]>
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [accepted] = await connected
  for (const socket of [client, accepted]) {
    socket.on('error', () => undefined)
    sockets.push(socket)
  }
  return { client, accepted }
}

/** Bytes that differ from place to place. */
const bytesOf = (length: number): Buffer =>
  Buffer.alloc(length).map((_, index) => (index * 31 + (index >> 8)) % 251) as Buffer

describe('Reading into shared memory', () => {
  it('gives every byte in its order, however many there are, and then the end', async () => {
    const { client, accepted } = await connection()
    const sent = bytesOf(1_000_000)
    const received: Buffer[] = []
    accepted.resume()
    readIntoSharedMemory(accepted, (bytes) => received.push(Buffer.from(bytes)) > 0)
    client.end(sent)
    await once(accepted, 'end')
    expect(Buffer.concat(received).equals(sent)).toBe(true)
  })

  it('takes the same memory for all connections', async () => {
    const memories = new Set<ArrayBufferLike>()
    for (let count = 0; count < 3; count++) {
      const { client, accepted } = await connection()
      accepted.resume()
      const read = new Promise<void>((resolve) => {
        readIntoSharedMemory(accepted, ({ buffer }) => {
          memories.add(buffer)
          resolve()
          return true
        })
      })
      client.write('x')
      await read
    }
    expect(memories.size).toBe(1)
  })

  it('passes on what is pushed as any other bytes of the connection, at the pace of whoever reads them', async () => {
    const { client, accepted } = await connection()
    readIntoSharedMemory(accepted, (bytes) => accepted.push(Buffer.from(bytes)))
    const sent = bytesOf(3_000_000)
    client.end(sent)
    await once(accepted, 'readable')
    // Nobody reads: the connection stops long before all of it has come.
    await new Promise(setImmediate)
    expect(accepted.bytesRead).toBeLessThan(sent.length / 2)
    const received: Buffer[] = []
    for await (const chunk of accepted) received.push(chunk as Buffer)
    expect(Buffer.concat(received).equals(sent)).toBe(true)
  })

  it('is for whoever asked last', async () => {
    const { client, accepted } = await connection()
    accepted.resume()
    const first: string[] = []
    readIntoSharedMemory(accepted, (bytes) => first.push(bytes.toString()) > 0)
    const second = new Promise<string>((resolve) => {
      readIntoSharedMemory(accepted, (bytes) => {
        resolve(bytes.toString())
        return true
      })
    })
    client.write('hello')
    expect(await second).toBe('hello')
    expect(first).toEqual([])
  })

  it('leaves a connection as it is that is gone', async () => {
    const { client, accepted } = await connection()
    accepted.destroy()
    expect(() => {
      readIntoSharedMemory(accepted, () => true)
    }).not.toThrow()
    client.destroy()
  })
})
