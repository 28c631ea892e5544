import { createHash, randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { request } from 'undici'
import { RecordingSink } from '../../test/support/byte-streams.js'
import { eventually } from '../../test/support/eventually.js'
import { listenOnLoopback } from '../../test/support/loopback-server.js'
import {
  attemptOf,
  BROKEN_ANSWERS,
  failureOf,
  GENEROUS_TIMEOUTS,
  NEVER_SENT,
  newCall,
  type RawUpstream,
  startRawUpstream,
  targetOf,
  unusedPort,
} from '../../test/support/raw-upstream.js'
import { startUploadServer } from '../../test/support/upload-server.js'
import { collect } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { SpooledFile } from '../core/spooled-file.js'
import { encodeMultipart, type MultipartPart } from './multipart-encoder.js'
import { classifyFailure, type ExchangeContext, type UpstreamResponse } from './exchange.js'
import { UpstreamClient, type UpstreamRequest, type UpstreamTarget } from './upstream-client.js'

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

const bodyOf = ({ body }: UpstreamResponse): Promise<Buffer> =>
  collect(body, Infinity, () => {
    throw new Error('unreachable')
  })

describe('upstream client faults', () => {
  let client: UpstreamClient
  let upstream: RawUpstream | undefined
  beforeEach(() => {
    client = new UpstreamClient()
  })
  afterEach(async () => {
    await client.onApplicationShutdown()
    await upstream?.close()
    upstream = undefined
  })

  /** The target of an upstream that does `answer` with each request. */
  async function upstreamThat(
    answer: (socket: Socket) => void,
    timeouts: Partial<UpstreamTarget['timeouts']> = {},
  ): Promise<UpstreamTarget> {
    upstream = await startRawUpstream(answer)
    return targetOf(upstream.port, { timeouts: { ...GENEROUS_TIMEOUTS, ...timeouts } })
  }

  function send(target: UpstreamTarget, call: RequestContext = newCall(), totalMs = 20_000): Promise<UpstreamResponse> {
    const request = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') } as const
    return client.send(request, target, attemptOf(call), performance.now() + totalMs)
  }

  const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
  const SENT = { attempt: { phase: 'sent', channelError: true }, retryable: false }

  describe('An upstream that fails before its answer', () => {
    it('by refusing the connection was never asked', async () => {
      expect(await failureOf(send(targetOf(await unusedPort())))).toMatchObject({
        kind: 'upstream_failed',
        details: NEVER_SENT,
      })
    })

    it.each<readonly [string, (socket: Socket) => void]>([
      ...BROKEN_ANSWERS,
      ['half a head', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-')],
      ['a contradictory length', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n')],
    ])('by %s may have done the work', async (_name, answer) => {
      expect(await failureOf(send(await upstreamThat(answer)))).toMatchObject({
        kind: 'upstream_failed',
        details: SENT,
      })
    })

    it('by silence is given up after the first-byte time, and learns of it', async () => {
      let closed: Promise<unknown> | undefined
      const target = await upstreamThat(
        (socket) => {
          closed = once(socket, 'close')
        },
        { firstByteMs: 50 },
      )
      expect(await failureOf(send(target))).toMatchObject({ kind: 'upstream_timeout', details: SENT })
      await closed
    })

    it('by a handshake without end is given up after the connect time, and nothing was sent', async () => {
      // TLS towards a server that never answers it: on one machine a bare TCP connection cannot be kept waiting.
      const target = await upstreamThat(() => undefined, { connectMs: 50 })
      const tls = { ...target, origin: target.origin.replace('http:', 'https:') }
      expect(await failureOf(send(tls))).toMatchObject({
        kind: 'upstream_timeout',
        details: { attempt: { phase: 'unsent', channelError: true }, retryable: true },
      })
    })

    it('by the end of the total time is given up at once, and learns of it', async () => {
      let closed: Promise<unknown> | undefined
      const target = await upstreamThat((socket) => {
        closed = once(socket, 'close')
      })
      const call = newCall()
      const startedAtMs = performance.now()
      expect(await failureOf(send(target, call, 50))).toMatchObject({
        kind: 'upstream_timeout',
        details: { attempt: { phase: 'sent' } },
      })
      expect(call.log.upstreamMs).toBeGreaterThan(0)
      expect(call.log.upstreamMs).toBeLessThanOrEqual(performance.now() - startedAtMs)
      await closed
    })

    it('by a handshake that takes longer than the total time was sent nothing, and its connection ends', async () => {
      const target = await upstreamThat(() => undefined, { connectMs: 600_000 })
      const tls = { ...target, origin: target.origin.replace('http:', 'https:') }
      const failing = failureOf(send(tls, newCall(), 1_000))
      await eventually(() => upstream?.accepted === 1)
      const [socket] = upstream?.sockets ?? []
      const closed = once(socket as Socket, 'close')
      expect(await failing).toMatchObject({ kind: 'upstream_timeout', details: { attempt: { phase: 'unsent' } } })
      await closed
    })
  })

  describe('An upstream that fails in the middle of its answer', () => {
    it.each<[string, (socket: Socket) => void]>([
      ['a reset', (socket) => socket.write(`${CHUNKED}3\r\nabc\r\n`, () => socket.resetAndDestroy())],
      ['a close before the last chunk', (socket) => socket.end(`${CHUNKED}3\r\nabc\r\n`)],
      [
        'a close before the announced length',
        (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'),
      ],
      ['a broken chunk', (socket) => socket.write(`${CHUNKED}3\r\nabc\r\nzz\r\n`)],
    ])('by %s makes the body fail, never end', async (_name, answer) => {
      const response = await send(await upstreamThat(answer))
      expect(response.status).toBe(200)
      expect(await failureOf(bodyOf(response))).toMatchObject({ kind: 'upstream_failed', details: SENT })
    })

    it('by silence makes the body fail after the idle time', async () => {
      const target = await upstreamThat((socket) => socket.write(`${CHUNKED}3\r\nabc\r\n`), { idleMs: 50 })
      expect(await failureOf(bodyOf(await send(target)))).toMatchObject({ kind: 'upstream_timeout', details: SENT })
    })

    it('by the end of the total time makes the body fail, and learns of it', async () => {
      let closed: Promise<unknown> | undefined
      const target = await upstreamThat((socket) => {
        closed = once(socket, 'close')
        socket.write(`${CHUNKED}3\r\nabc\r\n`)
      })
      expect(await failureOf(bodyOf(await send(target, newCall(), 100)))).toMatchObject({ kind: 'upstream_timeout' })
      await closed
    })
  })

  describe('A caller who leaves', () => {
    it('before the answer ends the work at the socket of the upstream', async () => {
      const call = newCall()
      let closed: Promise<unknown> | undefined
      const target = await upstreamThat((socket) => {
        closed = once(socket, 'close')
        call.disconnect.abort()
      })
      expect(await failureOf(send(target, call))).toMatchObject({ kind: 'caller_left' })
      await closed
    })

    it('in the middle of the answer ends the work at the socket of the upstream', async () => {
      let closed: Promise<unknown> | undefined
      const target = await upstreamThat((socket) => {
        closed = once(socket, 'close')
        socket.write(`${CHUNKED}3\r\nabc\r\n`)
      })
      const call = newCall()
      const body = failureOf(bodyOf(await send(target, call)))
      call.disconnect.abort()
      expect(await body).toMatchObject({ kind: 'caller_left' })
      await closed
    })

    it('frees its place although the reader of the rest of its answer throws', async () => {
      const target = await upstreamThat((socket) => socket.write(`${CHUNKED}3\r\nabc\r\n`))
      const call = newCall()
      const { body } = await send(target, call)
      const end = (): void => {
        throw new Error('a broken reader')
      }
      body.start({ data: () => undefined, end, fail: end, readOn: () => true })
      call.disconnect.abort()
      const released = new Promise<void>((resolve) => {
        call.disconnect.whenReleased(resolve)
      })
      for (const socket of upstream?.sockets ?? []) socket.write('0\r\n\r\n')
      await released
    })

    describe('while the connection is made', () => {
      /** A handshake that the upstream never answers, of a server that has accepted its connection. */
      async function handshake(
        call = newCall(),
      ): Promise<{ sending: Promise<GatewayError>; closed: Promise<unknown> }> {
        const target = await upstreamThat(() => undefined, { connectMs: 600_000 })
        const sending = failureOf(send({ ...target, origin: target.origin.replace('http:', 'https:') }, call))
        await eventually(() => upstream?.accepted === 1)
        const [socket] = upstream?.sockets ?? []
        return { sending, closed: once(socket as Socket, 'close') }
      }

      it('is told at once, the request is never sent, and the upstream sees the connection end', async () => {
        const call = newCall()
        const { sending, closed } = await handshake(call)
        call.disconnect.abort()
        const error = await sending
        expect(error).toMatchObject({ kind: 'caller_left' })
        expect(error.details.attempt).toBeUndefined()
        await closed
      })

      it('leaves no connection behind where the gateway ends', async () => {
        const { sending, closed } = await handshake()
        await client.onApplicationShutdown()
        expect(await sending).toMatchObject({ kind: 'upstream_failed', details: { attempt: { phase: 'unsent' } } })
        await closed
      })
    })

    it('before anything was done costs no request', async () => {
      const target = await upstreamThat(() => undefined)
      const call = newCall()
      call.disconnect.abort()
      expect(() => send(target, call)).toThrow('The caller closed the connection.')
      expect(upstream?.accepted).toBe(0)
    })
  })
})

describe('upstream client', () => {
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
    client.send(request, target, attemptOf(call), performance.now() + 20_000)

  /** Each piece in a packet of its own, which is read before the next one is sent. */
  async function writeInTurn(socket: Socket, pieces: readonly string[]): Promise<void> {
    socket.setNoDelay(true)
    for (const [index, piece] of pieces.entries()) {
      if (index > 0) await roundTrips()
      socket.write(piece)
    }
  }

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
      await send(
        { method: 'POST', path: '/v1/x?beta=true', headers: ['X-Key', 'a b'], body: Buffer.from('{}') },
        target,
      )
      const [line, ...headers] = heads[0]?.split('\r\n') ?? []
      expect(line).toBe('POST /openai/v1/x?beta=true HTTP/1.1')
      expect(headers.sort()).toEqual([
        'X-Key: a b',
        'accept-encoding: identity',
        'connection: keep-alive',
        'content-length: 2',
        `host: 127.0.0.1:${upstream.port}`,
      ])
    })

    it.each<[string, Partial<UpstreamRequest>]>([
      ['a header', { headers: ['x-key', 'a\r\nx-other: b'] }],
      ['the name of a header', { headers: ['x-key: a\r\nx-other', 'b'] }],
      ['a path', { path: '/v1 HTTP/1.1\r\nx-other: b\r\n\r\n' }],
      ['no header, but framing of its own', { headers: ['Transfer-Encoding', 'chunked'] }],
      ['no header, but another host', { headers: ['host', 'other'] }],
    ])('with a line end in %s is never sent', async (_name, parts) => {
      expect(await failureOf(send({ ...GET, ...parts }))).toMatchObject({
        kind: 'upstream_failed',
        details: NEVER_SENT,
      })
      expect(upstream.accepted).toBe(0)
    })

    it.each([[['abc', 'd', 'ef']], [['', 'abc', 'def']], [['abcdef']]])(
      'may have a body in the pieces %j, whose length it announces',
      async (pieces) => {
        const server = createServer((request, response) => {
          response.setHeader('x-length', request.headers['content-length'] ?? 'none')
          request.pipe(response)
        })
        const { port, close } = await listenOnLoopback(server)
        const body = pieces.map((piece) => Buffer.from(piece))
        const response = await send({ method: 'POST', path: '/', headers: [], body }, targetOf(port))
        expect(response.headers['x-length']).toBe('6')
        expect((await bodyOf(response)).toString()).toBe('abcdef')
        await close()
      },
    )

    it('may have a body that is still being read', async () => {
      const server = createServer((request, response) => {
        request.pipe(response)
      })
      const { port, close } = await listenOnLoopback(server)
      const body = (): Readable => Readable.from([Buffer.from('abc'), Buffer.from('def')], { objectMode: false })
      const request = { method: 'POST', path: '/', headers: ['content-type', 'x/y'], body } as const
      const response = await send(request, targetOf(port))
      expect((await bodyOf(response)).toString()).toBe('abcdef')
      await close()
    })
  })

  describe('A body that is read from elsewhere', () => {
    const UPLOAD = { method: 'POST', path: '/', headers: ['Content-Length', '6'] } as const
    // oxlint-disable-next-line typescript/require-await -- as a file is read
    async function* stream(...pieces: readonly string[]): AsyncGenerator<Buffer> {
      for (const piece of pieces) yield Buffer.from(piece)
    }

    /** A body whose second half comes when `go` is emitted; `events` has `closed` when it is let go. */
    async function* halves(events: EventEmitter): AsyncGenerator<Buffer> {
      try {
        yield Buffer.from('abc')
        await once(events, 'go')
        yield Buffer.from('def')
      } finally {
        events.emit('closed')
      }
    }

    it.each([
      ['shorter', ['abc']],
      ['longer', ['abc', 'defg']],
    ])('and is %s than announced fails the request, and ends its connection', async (_name, pieces) => {
      answer = () => undefined
      expect(await failureOf(send({ ...UPLOAD, body: () => stream(...pieces) }))).toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'sent' } },
      })
    })

    it('and breaks fails the request with the error of the reader', async () => {
      answer = () => undefined
      // oxlint-disable-next-line typescript/require-await -- as a file is read
      async function* body(): AsyncGenerator<Buffer> {
        yield Buffer.from('abc')
        throw new GatewayError('internal', 'The disk is gone.')
      }
      expect((await failureOf(send({ ...UPLOAD, body }))).message).toBe('The disk is gone.')
    })

    it('is let go when the upstream answers before it has all, and its connection is not used again', async () => {
      const events = new EventEmitter()
      const response = await send({ ...UPLOAD, body: () => halves(events) })
      expect((await bodyOf(response)).toString()).toBe('ok')
      const closed = once(events, 'closed')
      events.emit('go')
      await closed
      await bodyOf(await send())
      expect(upstream.accepted).toBe(2)
    })

    it('is let go when the caller leaves', async () => {
      const reached = new Promise<void>((resolve) => {
        answer = () => {
          resolve()
        }
      })
      const events = new EventEmitter()
      const call = newCall()
      const sending = failureOf(send({ ...UPLOAD, body: () => halves(events) }, targetOf(upstream.port), call))
      await reached
      call.disconnect.abort()
      expect((await sending).kind).toBe('caller_left')
      const closed = once(events, 'closed')
      events.emit('go')
      await closed
    })

    it('is asked for its next piece when the last one is in the kernel: both may share their memory', async () => {
      const memory = Buffer.alloc(1024 * 1024)
      // oxlint-disable-next-line typescript/require-await -- as a file is read
      async function* body(): AsyncGenerator<Buffer> {
        for (const letter of 'abcdefgh') yield memory.fill(letter)
        yield memory.subarray(0, 3).fill('i')
        yield memory.subarray(0, 3).fill('j')
      }
      const server = createServer((request, response) => {
        request.pipe(response)
      })
      const { port, close } = await listenOnLoopback(server)
      const headers = ['content-length', String(8 * memory.length + 6)]
      const answered = await bodyOf(await send({ method: 'POST', path: '/', headers, body }, targetOf(port)))
      const expected = 'abcdefgh'.split('').map((letter) => Buffer.alloc(memory.length, letter))
      expect(digest(answered)).toBe(digest(Buffer.concat([...expected, Buffer.from('iiijjj')])))
      await close()
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

    it.each([
      ['', []],
      ['with headers of its own', ['HTTP/1.1 100 Continue\r\ndate: now\r\n\r\n']],
      ['in pieces', ['HTTP/1.1 1', '00 Continue\r\n', '\r', '\nHTTP/1.1 20', '0 OK\r\ncontent-length: 2\r\n\r\nok']],
      ['several times', ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n']],
    ])('may come after a 100 Continue that was not asked for %s', async (_name, pieces) => {
      const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
      const sent = pieces.length === 0 ? ['HTTP/1.1 100 Continue\r\n\r\n'] : [...pieces]
      if (!sent.at(-1)?.endsWith('ok')) sent.push(OK)
      answer = (socket) => {
        void writeInTurn(socket, sent)
      }
      for (let call = 0; call < 2; call++) {
        const response = await send({ method: 'POST', path: '/', headers: [], body: Buffer.from('{}') })
        expect(response.status).toBe(200)
        expect((await bodyOf(response)).toString()).toBe('ok')
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(upstream.accepted).toBe(1)
    })

    it('keeps a body that begins like a 100 Continue', async () => {
      const body = 'HTTP/1.1 100 Continue\r\n\r\nok'
      answer = (socket) => {
        void writeInTurn(socket, [`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`, body])
      }
      expect((await bodyOf(await send())).toString()).toBe(body)
    })

    it.each(['HTTP/1.1 102 Processing\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'])(
      'that is announced for ever (%j) is given up after the first-byte time',
      async (announcement) => {
        answer = (socket) => {
          const timer = setInterval(() => socket.write(announcement), 20)
          socket.once('close', () => {
            clearInterval(timer)
          })
        }
        const timeouts = { ...GENEROUS_TIMEOUTS, firstByteMs: 200 }
        const startedAtMs = performance.now()
        expect(await failureOf(send(GET, targetOf(upstream.port, { timeouts })))).toMatchObject({
          kind: 'upstream_timeout',
          details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
        })
        expect(performance.now() - startedAtMs).toBeGreaterThan(150)
      },
      5_000,
    )

    it('without a length ends with its connection', async () => {
      answer = (socket) => socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc')
      expect((await bodyOf(await send())).toString()).toBe('abc')
    })
  })

  describe('Back-pressure', () => {
    const content = randomBytes(32 * MEBIBYTE)
    beforeEach(() => {
      answer = (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${content.length}\r\n\r\n`)
        socket.write(content)
      }
    })

    it('holds an upstream whose answer is not read, and loses nothing of it', async () => {
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

  it('does not take a reader who waits for a silent upstream', async () => {
    answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
    const timeouts = { ...GENEROUS_TIMEOUTS, idleMs: 50 }
    const response = await send(GET, targetOf(upstream.port, { timeouts }))
    response.body.pause()
    const silent = new Promise((resolve) => setTimeout(resolve, 150))
    await silent
    for (const socket of upstream.sockets) socket.write('cd')
    response.body.resume()
    expect((await bodyOf(response)).toString()).toBe('abcd')
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

    it('are closed when a response comes that was not asked for: it is never another request’s', async () => {
      await bodyOf(await send())
      await new Promise((resolve) => setImmediate(resolve))
      const [socket] = upstream.sockets
      const closed = once(socket as Socket, 'close')
      socket?.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil')
      await closed
      expect((await bodyOf(await send())).toString()).toBe('ok')
      expect(upstream.accepted).toBe(2)
    })

    it('carry one response: what comes right behind it ends them', async () => {
      answer = (socket) => {
        answer = (next) => next.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nme')
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil')
      }
      expect((await bodyOf(await send())).toString()).toBe('ok')
      expect((await bodyOf(await send())).toString()).toBe('me')
      expect(upstream.accepted).toBe(2)
    })

    it('that the upstream closes unannounced with each answer are not used again', async () => {
      answer = (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      for (let call = 0; call < 20; call++) expect((await bodyOf(await send())).toString()).toBe('ok')
      expect(upstream.accepted).toBe(20)
    })

    it('that are idle for too long are closed without another request', async () => {
      answer = (socket) => socket.write('HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 0\r\n\r\n')
      await bodyOf(await send())
      const [socket] = upstream.sockets
      if (socket !== undefined && !socket.destroyed) await once(socket, 'close')
      expect(upstream.sockets.size).toBe(0)
    })

    it('that are free are used again beside others whose answers go on', async () => {
      const whole = answer
      answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab')
      const open = await Promise.all([send(), send(), send()])
      const busy = [...upstream.sockets]
      answer = whole
      for (let round = 0; round < 3; round++) {
        await bodyOf(await send())
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(upstream.accepted).toBe(4)
      for (const socket of busy) socket.write('cd')
      for (const response of open) expect((await bodyOf(response)).toString()).toBe('abcd')
      await new Promise((resolve) => setImmediate(resolve))
      await Promise.all((await Promise.all([send(), send(), send(), send()])).map(bodyOf))
      expect(upstream.accepted).toBe(4)
    })

    describe('that the upstream gives up while a request is on its way there', () => {
      const POST: UpstreamRequest = { method: 'POST', path: '/', headers: [], body: Buffer.from('{"a":1}') }
      const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
      const heads: string[] = []
      /** What happens to the request that meets the connection of the first. */
      let meet: (socket: Socket) => void
      beforeEach(() => {
        heads.length = 0
        meet = (socket) => socket.destroy()
        answer = (socket, head) => {
          heads.push(head)
          if (heads.length === 2) meet(socket)
          else socket.write(OK)
        }
      })

      const resendable = (call = newCall()) => ({ ...attemptOf(call), canResend: true })
      const ask = (
        request = POST,
        context: ExchangeContext = resendable(),
        target = targetOf(upstream.port),
        totalMs = 20_000,
      ) => client.send(request, target, context, performance.now() + totalMs)

      async function useConnection(target = targetOf(upstream.port)): Promise<void> {
        await bodyOf(await ask(GET, resendable(), target))
        await new Promise((resolve) => setImmediate(resolve))
      }

      it.each<readonly [string, (socket: Socket) => void]>([
        ['a reset', (socket) => socket.resetAndDestroy()],
        ['a polite close', (socket) => socket.end()],
        ['a close', (socket) => socket.destroy()],
      ])('by %s cost nothing: it is sent once more on a new one', async (_name, close) => {
        await useConnection()
        meet = close
        expect((await bodyOf(await ask())).toString()).toBe('ok')
        expect(heads).toHaveLength(3)
        expect(heads[2]).toBe(heads[1])
        expect(upstream.accepted).toBe(2)
      })

      it('are many after a restart: each request is sent once more, never on another used one', async () => {
        answer = (socket) => socket.write(OK)
        const first = await Promise.all([ask(GET), ask(GET), ask(GET)])
        await Promise.all(first.map(bodyOf))
        await new Promise((resolve) => setImmediate(resolve))
        const stale = new Set(upstream.sockets)
        answer = (socket) => {
          if (stale.has(socket)) socket.resetAndDestroy()
          else socket.write(OK)
        }
        const second = await Promise.all([ask(), ask(), ask()])
        expect(second.map(({ status }) => status)).toEqual([200, 200, 200])
      })

      it('are given up after the second failure', async () => {
        await useConnection()
        answer = (socket, head) => {
          heads.push(head)
          socket.destroy()
        }
        expect(await failureOf(ask())).toMatchObject({
          kind: 'upstream_failed',
          details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
        })
        expect(heads).toHaveLength(3)
      })

      it('fail a request that must not be sent twice, as one that may have been done', async () => {
        await useConnection()
        expect(await failureOf(ask(POST, attemptOf(newCall())))).toMatchObject({
          details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
        })
        expect(heads).toHaveLength(2)
      })

      it('fail a request whose upstream is gone, as one that may have been done', async () => {
        await useConnection()
        const closed: Promise<void>[] = []
        answer = (socket) => {
          closed.push(upstream.close())
          socket.destroy()
        }
        expect(await failureOf(ask())).toMatchObject({
          details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
        })
        await Promise.all(closed)
        upstream = await startRawUpstream(() => undefined)
      })

      it.each<readonly [string, string]>([
        ['a byte', 'H'],
        ['an announcement', 'HTTP/1.1 102 Processing\r\n\r\n'],
        ['a 100 Continue', 'HTTP/1.1 100 Continue\r\n\r\n'],
        ['half a head', 'HTTP/1.1 200 OK\r\ncontent-'],
      ])('after %s of an answer fail the request', async (_name, bytes) => {
        await useConnection()
        meet = (socket) => socket.end(bytes)
        expect((await failureOf(ask())).kind).toBe('upstream_failed')
        expect(heads).toHaveLength(2)
      })

      it('fail the first request of a new one: that is no race', async () => {
        answer = (socket, head) => {
          heads.push(head)
          socket.destroy()
        }
        expect((await failureOf(ask())).kind).toBe('upstream_failed')
        expect(heads).toHaveLength(1)
      })

      it('are not waited for longer than the first-byte time, nor than the total time', async () => {
        const target = targetOf(upstream.port, { timeouts: { ...GENEROUS_TIMEOUTS, firstByteMs: 300 } })
        await useConnection(target)
        answer = (socket, head) => {
          heads.push(head)
          if (heads.length === 2) socket.destroy()
        }
        expect((await failureOf(ask(POST, resendable(), target))).kind).toBe('upstream_timeout')
        expect(heads).toHaveLength(3)
        heads.length = 0
        answer = (socket, head) => {
          heads.push(head)
          if (heads.length === 1) socket.write(OK)
          else if (heads.length === 2) socket.destroy()
        }
        await useConnection()
        expect((await failureOf(ask(POST, resendable(), targetOf(upstream.port), 300))).kind).toBe('upstream_timeout')
      })

      it('send a body that is read from elsewhere anew', async () => {
        await useConnection()
        let reads = 0
        const body = (): Readable => {
          reads++
          return Readable.from([Buffer.from('abc'), Buffer.from('def')], { objectMode: false })
        }
        const headers = ['content-length', '6']
        expect((await ask({ method: 'POST', path: '/', headers, body })).status).toBe(200)
        expect(reads).toBe(2)
      })

      it('end with the caller, and nothing is sent again', async () => {
        await useConnection()
        const call = newCall()
        meet = (socket) => {
          call.disconnect.abort()
          socket.destroy()
        }
        expect((await failureOf(ask(POST, resendable(call)))).kind).toBe('caller_left')
        await roundTrips()
        expect(heads).toHaveLength(2)
      })
    })

    describe('that have been idle', () => {
      const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
      const POST: UpstreamRequest = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') }
      let nowMs: number
      let clocked: UpstreamClient
      beforeEach(() => {
        nowMs = 1_000
        clocked = new UpstreamClient(() => nowMs)
        answer = (socket) => socket.write(OK)
      })
      afterEach(() => clocked.onApplicationShutdown())

      const ask = (context: Partial<ExchangeContext> = {}, timeouts = GENEROUS_TIMEOUTS): Promise<UpstreamResponse> =>
        clocked.send(
          POST,
          targetOf(upstream.port, { timeouts }),
          { ...attemptOf(newCall()), ...context },
          nowMs + 20_000,
        )

      /** A whole exchange, after which its connection is idle. */
      async function use(): Promise<void> {
        await bodyOf(await ask())
        await new Promise((resolve) => setImmediate(resolve))
      }

      /** As a server does it whose limit is not announced. */
      async function closeAfter(idleMs: number): Promise<void> {
        await use()
        nowMs += idleMs
        const [socket] = upstream.sockets
        const closed = once(socket as Socket, 'close')
        socket?.end()
        await closed
        await roundTrips()
      }

      /** How many connections requests need that are sent after such idle times. */
      async function connectionsFor(...idleTimesMs: readonly number[]): Promise<number> {
        await use()
        const before = upstream.accepted - 1
        for (const idleMs of idleTimesMs) {
          nowMs += idleMs
          await use()
        }
        return upstream.accepted - before
      }

      /** The upstream takes so long with the next request and then closes its connection. */
      const closeNext = (afterMs = 0): void => {
        answer = (socket) => {
          answer = (next) => next.write(OK)
          nowMs += afterMs
          socket.destroy()
        }
      }

      it('for longer than the upstream has announced are not used, however late timers run', async () => {
        answer = (socket) => socket.write(OK.replace('OK', 'OK\r\nkeep-alive: timeout=3'))
        expect(await connectionsFor(1_999)).toBe(1)
        expect(await connectionsFor(2_000)).toBe(2)
      })

      it('for 4 s are not used where the upstream says nothing', async () => {
        expect(await connectionsFor(3_999)).toBe(1)
        expect(await connectionsFor(4_000)).toBe(2)
      })

      it('for nearly as long as those that the upstream has closed are not used', async () => {
        await closeAfter(300)
        await closeAfter(260)
        expect(await connectionsFor(194)).toBe(1)
        expect(await connectionsFor(195)).toBe(2)
      })

      it.each([
        ['once, as a restart does', [300]],
        ['after different times', [300, 1_000, 300]],
      ])('are used where the upstream has closed some %s', async (_how, idleTimesMs) => {
        for (const idleMs of idleTimesMs) await closeAfter(idleMs)
        expect(await connectionsFor(299, 999)).toBe(1)
      })

      it('for nearly as long as one that failed a request are not used, for ten minutes', async () => {
        await use()
        nowMs += 200
        closeNext()
        expect((await failureOf(ask())).kind).toBe('upstream_failed')
        expect(await connectionsFor(149)).toBe(1)
        expect(await connectionsFor(150)).toBe(2)
        nowMs += 600_000
        expect(await connectionsFor(150)).toBe(1)
      })

      it('and are closed long after a request was sent on them fail it, and teach nothing', async () => {
        await use()
        nowMs += 200
        closeNext(5_000)
        expect((await ask({ canResend: true })).status).toBe(200)
        await clocked.onApplicationShutdown()
        clocked = new UpstreamClient(() => nowMs)
        await use()
        nowMs += 200
        closeNext(5_001)
        expect(await failureOf(ask({ canResend: true }))).toMatchObject({ kind: 'upstream_failed' })
        expect(await connectionsFor(200)).toBe(1)
      })

      it('are no reason to send again when the first-byte time is over', async () => {
        await use()
        closeNext(300)
        const failure = await failureOf(ask({ canResend: true }, { ...GENEROUS_TIMEOUTS, firstByteMs: 300 }))
        expect(failure.kind).toBe('upstream_failed')
        expect(upstream.accepted).toBe(1)
      })
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
})

const failure = (code: string): Error => Object.assign(new Error(`words of 10.0.0.1 ${code}`), { code })

describe('A transport failure', () => {
  it.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    '%s means that nothing was sent, so that trying again is safe',
    (code) => {
      expect(classifyFailure(failure(code), true)).toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'unsent', channelError: true }, retryable: true },
      })
    },
  )

  it.each(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'HTTP_MALFORMED', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', ''])(
    '%s after the request began means that it may have been done and billed',
    (code) => {
      expect(classifyFailure(failure(code), true)).toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
      })
      expect(classifyFailure(failure(code), false).details.attempt?.phase).toBe('unsent')
    },
  )

  it.each([
    ['UND_ERR_CONNECT_TIMEOUT', 'unsent', true],
    ['UND_ERR_HEADERS_TIMEOUT', 'sent', false],
    ['UND_ERR_BODY_TIMEOUT', 'sent', false],
  ])('%s is a timeout, %s', (code, phase, retryable) => {
    expect(classifyFailure(failure(code), true)).toMatchObject({
      kind: 'upstream_timeout',
      details: { attempt: { phase, channelError: true }, retryable },
    })
  })

  it('is recognised inside the errors that wrap it', () => {
    const aggregate = new AggregateError([failure('ECONNREFUSED'), failure('ENETUNREACH')])
    const wrapped = new Error('outer', { cause: failure('ECONNREFUSED') })
    expect(classifyFailure(aggregate, true).details.attempt?.phase).toBe('unsent')
    expect(classifyFailure(wrapped, true).details.attempt?.phase).toBe('unsent')
  })

  it('keeps its address out of the message, and for the log in the cause', () => {
    const cause = failure('ECONNREFUSED')
    const { message, details } = classifyFailure(cause, false)
    expect(message).toBe('The connection to the upstream failed.')
    expect(details.cause).toBe(cause)
  })

  it('stays what it is when it is one of ours', () => {
    const error = new GatewayError('caller_left', 'gone')
    expect(classifyFailure(error, true)).toBe(error)
  })
})

async function spoolOf(content: Uint8Array): Promise<SpooledFile> {
  const spool = new SpooledFile()
  await spool.append(Buffer.from(content))
  await spool.finish()
  return spool
}

/** Names the reader refuses on purpose. */
const refusedNames = new Set([
  'file',
  'file[]',
  'model[]',
  'constructor',
  'constructor[]',
  'prototype',
  'prototype[]',
  '__proto__',
  '__proto__[]',
])

describe('encodeMultipart', () => {
  it('writes the parts in their order, with the length it announced, the same for every attempt', async () => {
    const file = await spoolOf(Buffer.from('RIFF'))
    const parts: MultipartPart[] = [
      { name: 'model', value: 'whisper-1' },
      { name: 'include[]', value: 'logprobs' },
      { name: 'file', filename: 'audio.wav', contentType: 'audio/wav', file },
      { name: 'prompt', value: '' },
    ]
    const encoded = encodeMultipart(parts)
    const boundary = encoded.contentType.replace('multipart/form-data; boundary=', '')
    const expected = [
      `--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n`,
      `--${boundary}\r\nContent-Disposition: form-data; name="include[]"\r\n\r\nlogprobs\r\n`,
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="audio.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n`,
      `--${boundary}\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n\r\n`,
      `--${boundary}--\r\n`,
    ].join('')
    expect((await buffer(encoded.body())).toString()).toBe(expected)
    expect((await buffer(encoded.body())).toString()).toBe(expected)
    expect(encoded.contentLength).toBe(Buffer.byteLength(expected))
    await file.remove()
  })

  it('escapes quotes and line ends in names and file names', async () => {
    const file = await spoolOf(Buffer.from('x'))
    const name = 'a"b\r\nX-Injected: 1'
    const encoded = encodeMultipart([{ name, filename: name, contentType: 'audio/wav', file }])
    const text = (await buffer(encoded.body())).toString()
    expect(text).toContain('name="a%22b%0D%0AX-Injected: 1"; filename="a%22b%0D%0AX-Injected: 1"')
    expect(text).not.toContain('\r\nX-Injected')
    await file.remove()
  })

  describe('of a file on disk', () => {
    const MEBIBYTE = 1024 * 1024
    let client: UpstreamClient
    let file: SpooledFile
    const content = randomBytes(5 * MEBIBYTE + 1)
    beforeEach(async () => {
      client = new UpstreamClient()
      file = await spoolOf(content)
    })
    afterEach(async () => {
      await client.onApplicationShutdown()
      await file.remove()
    })

    function sendTo(port: number, call = newCall()): Promise<UpstreamResponse> {
      const form = encodeMultipart([{ name: 'file', filename: 'a', contentType: 'audio/wav', file }])
      const headers = ['content-type', form.contentType, 'content-length', String(form.contentLength)]
      const request = { method: 'POST', path: '/', headers, body: form.body } as const
      return client.send(request, targetOf(port), attemptOf(call), performance.now() + 20_000)
    }

    it('reaches an upstream unchanged that reads a little at a time', async () => {
      const chunks: Buffer[] = []
      const server = createServer((incoming, answer) => {
        incoming.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          incoming.pause()
          setImmediate(() => incoming.resume())
        })
        incoming.on('end', () => answer.end())
      })
      const { port, close } = await listenOnLoopback(server)
      await bodyOf(await sendTo(port))
      const received = Buffer.concat(chunks)
      const start = received.indexOf('\r\n\r\n') + 4
      expect(received.subarray(start, start + content.length).equals(content)).toBe(true)
      await close()
    })

    it('is no longer sent when the client leaves in the middle, and the upstream learns of it', async () => {
      const server = createServer()
      const { port, close } = await listenOnLoopback(server)
      const call = newCall()
      const sent = failureOf(sendTo(port, call))
      const [incoming] = (await once(server, 'request')) as [IncomingMessage]
      await once(incoming, 'readable')
      const failed = once(incoming, 'aborted')
      incoming.on('error', () => undefined)
      call.disconnect.abort()
      expect(await sent).toMatchObject({ kind: 'caller_left' })
      incoming.resume()
      await failed
      expect(incoming.complete).toBe(false)
      await close()
    })

    it('is answered by an upstream that does not read it to its end', async () => {
      const server = createServer((_incoming, answer) => {
        answer.writeHead(413).end('too large')
      })
      const { port, close } = await listenOnLoopback(server)
      const response = await sendTo(port)
      expect(response.status).toBe(413)
      await close()
    })
  })

  it('refuses a content type that would break out of its header', () => {
    const file = new SpooledFile()
    expect(() => encodeMultipart([{ name: 'file', filename: 'a', contentType: 'a\r\nb: c', file }])).toThrow(TypeError)
  })

  it('is read back unchanged by a multipart server', async () => {
    const server = await startUploadServer()
    const name = fc.stringMatching(/^[a-z_ é"%]{1,20}(\[\])?$/).filter((text) => !refusedNames.has(text))
    const fields = fc.uniqueArray(fc.record({ name, value: fc.string({ unit: 'grapheme' }) }), {
      selector: (field) => field.name,
    })
    try {
      await fc.assert(
        fc.asyncProperty(fields, fc.uint8Array({ maxLength: 3000 }), fc.nat(5), async (values, content, at) => {
          const file = await spoolOf(content)
          const parts: MultipartPart[] = [...values]
          parts.splice(at, 0, { name: 'file', filename: 'audio.wav', contentType: 'audio/wav', file })
          const encoded = encodeMultipart(parts)
          const next = server.next()
          const response = await request(`http://127.0.0.1:${server.port}/`, {
            method: 'POST',
            headers: { 'content-type': encoded.contentType, 'content-length': String(encoded.contentLength) },
            body: await buffer(encoded.body()),
          })
          await response.body.dump()
          const outcome = await next
          expect(outcome.error).toBeUndefined()
          const sent = values.map((field) => [field.name.replaceAll('"', '%22'), field.value])
          expect(outcome.fields).toEqual(sent)
          expect(outcome.file?.bytes.equals(Buffer.from(content))).toBe(true)
          expect(outcome.file?.fieldIndex).toBe(Math.min(at, values.length))
          await file.remove()
        }),
        { numRuns: 40 },
      )
    } finally {
      await server.close()
    }
  })
})
