import { createHash, randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { RecordingSink } from '../../test/support/byte-streams.js'
import { newCall, type RawUpstream, startRawUpstream, targetOf } from '../../test/support/raw-upstream.js'
import { collect } from '../core/byte-source.js'
import { UpstreamClient, type UpstreamRequest, type UpstreamTarget } from './upstream-client.js'
import type { UpstreamResponse } from './upstream-exchange.js'

const MEBIBYTE = 1024 * 1024
const GET: UpstreamRequest = { method: 'GET', path: '/', headers: [] }

let client: UpstreamClient
let upstream: RawUpstream
/** What the upstream does with the next requests. */
let answer: (socket: Socket, head: string) => void
beforeEach(async () => {
  client = new UpstreamClient()
  answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
  upstream = await startRawUpstream((socket, head) => {
    answer(socket, head)
  })
})
afterEach(async () => {
  await client.onApplicationShutdown()
  await upstream.close()
})

const send = (request = GET, target: UpstreamTarget = targetOf(upstream.port), call = newCall()) =>
  client.send(request, target, call, performance.now() + 20_000)

const bodyOf = ({ body }: UpstreamResponse): Promise<Buffer> =>
  collect(body, Infinity, () => {
    throw new Error('unreachable')
  })

/** Lets a byte that is on its way arrive: several whole exchanges with the same process. */
async function roundTrips(): Promise<void> {
  const other = await startRawUpstream((socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'))
  for (let trip = 0; trip < 20; trip++) await bodyOf(await send(GET, targetOf(other.port)))
  await other.close()
}

describe('A request', () => {
  it('reaches the upstream as it was given, behind the prefix of its channel', async () => {
    const heads: string[] = []
    answer = (socket, head) => {
      heads.push(head)
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    }
    const target = targetOf(upstream.port, { pathPrefix: '/openai' })
    await send({ method: 'POST', path: '/v1/x?beta=true', headers: ['X-Key', 'a b'], body: Buffer.from('{}') }, target)
    const [line, ...headers] = heads[0]?.split('\r\n') ?? []
    expect(line).toBe('POST /openai/v1/x?beta=true HTTP/1.1')
    expect(headers.sort()).toEqual([
      'X-Key: a b',
      'connection: keep-alive',
      'content-length: 2',
      `host: 127.0.0.1:${upstream.port}`,
    ])
  })

  it('may have a body that is still being read', async () => {
    const server = createServer((request, response) => {
      request.pipe(response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const body = Readable.from([Buffer.from('abc'), Buffer.from('def')], { objectMode: false })
    const request = { method: 'POST', path: '/', headers: ['content-type', 'x/y'], body } as const
    const response = await send(request, targetOf((server.address() as AddressInfo).port))
    expect((await bodyOf(response)).toString()).toBe('abcdef')
    server.closeAllConnections()
    server.close()
  })
})

describe('An answer', () => {
  it('is handed over with its status and headers before its body, and leaves its traces in the log', async () => {
    answer = (socket) => {
      socket.write(
        'HTTP/1.1 418 Teapot\r\nX-Request-Id: up-1\r\nset-cookie: a\r\nset-cookie: b\r\ncontent-length: 2\r\n\r\n',
      )
    }
    const call = newCall()
    const response = await send(GET, targetOf(upstream.port), call)
    expect(response).toMatchObject({ status: 418, headers: { 'x-request-id': 'up-1', 'set-cookie': ['a', 'b'] } })
    expect(call.log).toMatchObject({ upstreamStatus: 418, upstreamRequestId: 'up-1' })
    expect(call.log.firstByteMs).toBeGreaterThan(0)
    expect(call.log.upstreamMs).toBe(0)
    for (const socket of upstream.sockets) socket.write('ok')
    expect((await bodyOf(response)).toString()).toBe('ok')
    expect(call.log.upstreamMs).toBeGreaterThan(0)
  })

  it('may be announced by others (1xx), which are not it', async () => {
    answer = (socket) => {
      socket.write('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n')
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
    }
    const response = await send()
    expect(response.status).toBe(200)
    expect((await bodyOf(response)).toString()).toBe('ok')
  })

  it('without a length ends with its connection', async () => {
    answer = (socket) => socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc')
    expect((await bodyOf(await send())).toString()).toBe('abc')
  })
})

describe('Back-pressure', () => {
  const content = randomBytes(32 * MEBIBYTE)
  const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
  beforeEach(() => {
    answer = (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${content.length}\r\n\r\n`)
      socket.write(content)
    }
  })

  it('holds an upstream whose answer nobody reads, and loses nothing of it', async () => {
    const response = await send()
    await roundTrips()
    const [socket] = upstream.sockets
    // What the kernel's buffers took is gone from here; the rest waits on the side of the upstream.
    expect(socket?.writableLength).toBe(content.length)
    expect(digest(await bodyOf(response))).toBe(digest(content))
    expect(socket?.writableLength).toBe(0)
  })

  it('stops an answer in the middle, and lets it go on', async () => {
    const response = await send()
    const progress = new EventEmitter()
    class Pausing extends RecordingSink {
      received = 0
      override data(chunk: Buffer): void {
        super.data(chunk)
        const before = this.received
        this.received += chunk.length
        if (before > MEBIBYTE || this.received <= MEBIBYTE) return
        response.body.pause()
        progress.emit('paused')
      }
      override end(): void {
        super.end()
        progress.emit('end')
      }
    }
    const sink = new Pausing()
    const paused = once(progress, 'paused')
    response.body.start(sink)
    await paused
    await roundTrips()
    expect(sink.received).toBeLessThan(2 * MEBIBYTE)
    const ended = once(progress, 'end')
    response.body.resume()
    await ended
    expect(digest(Buffer.concat(sink.chunks))).toBe(digest(content))
  })
})

describe('Connections', () => {
  it('are used again, and a second one is opened when the first is busy', async () => {
    await bodyOf(await send())
    // A connection is free again when its answer has been dealt with, a turn of the event loop after its last byte.
    await new Promise((resolve) => setImmediate(resolve))
    await bodyOf(await send())
    expect(upstream.accepted).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    const both = await Promise.all([send(), send()])
    await Promise.all(both.map(bodyOf))
    expect(upstream.accepted).toBe(2)
  })

  it('are closed when no channel uses their pool any more; those of other channels stay', async () => {
    const kept = targetOf(upstream.port, { poolKey: 'kept' })
    const released = targetOf(upstream.port, { poolKey: 'released' })
    await bodyOf(await send(GET, released))
    const [socket] = upstream.sockets
    await bodyOf(await send(GET, kept))
    const closed = once(socket as Socket, 'close')
    client.retain(new Set(['kept']))
    await closed
    await bodyOf(await send(GET, kept))
    expect(upstream.accepted).toBe(2)
  })

  it('let running answers finish when their pool is released', async () => {
    answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
    const response = await send()
    client.retain(new Set())
    const body = bodyOf(response)
    for (const socket of upstream.sockets) socket.write('cd')
    expect((await body).toString()).toBe('abcd')
  })

  it('are closed at shutdown, and what still ran on them fails', async () => {
    answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
    const body = bodyOf(await send())
    const refused = expect(body).rejects.toMatchObject({ kind: 'upstream_failed' })
    await client.onApplicationShutdown()
    await refused
  })
})
