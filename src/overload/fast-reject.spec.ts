import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  type AddressInfo,
  connect,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { eventually } from '../../test/support/eventually.js'
import { deferWrites } from '../core/deferred-writes.js'
import { callerHeadersOf } from './caller-resolver.js'
import {
  FastReject,
  type FastRejectGate,
  readIntoSharedMemory,
  readSimpleRequest,
  type SimpleRequest,
} from './fast-reject.js'

describe('fast reject of a connection', () => {
  const IDLE_MS = 75_000
  const REFUSED = 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n'
  const REQUEST = 'POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-length: 2\r\n\r\n{}'

  /** Refuses, or lets in, as the test says. */
  class FakeGate implements FastRejectGate {
    isRefusing = true
    isFull = true
    judged = 0
    answer: ServerResponse | undefined

    refusalText(): string | undefined {
      this.judged++
      return this.isFull ? REFUSED : undefined
    }

    letIn(parse: () => void): void {
      parse()
    }

    lastResponse(): ServerResponse | undefined {
      return this.answer
    }
  }

  let gate: FakeGate
  let server: Server
  let client: Socket
  /** The server's end of the connection. */
  let accepted: Socket
  beforeEach(async () => {
    // Time passes for the shields alone; Node's own timeouts of sockets are on its own clock.
    jest.useFakeTimers({
      doNotFake: ['nextTick', 'setImmediate', 'setTimeout', 'queueMicrotask', 'performance', 'Date'],
    })
    gate = new FakeGate()
    server = createServer((_request, response) => response.end('served'))
    server.keepAliveTimeout = IDLE_MS
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const connected = once(server, 'connection') as Promise<[Socket]>
    client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => undefined)
    ;[accepted] = await connected
    deferWrites(accepted)
    expect(await ask()).toMatch(/^HTTP\/1.1 200 .*served$/s)
    FastReject.raise(accepted, gate)
  })
  afterEach(async () => {
    client.destroy()
    server.close()
    await once(server, 'close')
    jest.useRealTimers()
  })

  async function ask(bytes = REQUEST): Promise<string> {
    client.write(bytes)
    const [answer] = (await once(client, 'data')) as [Buffer]
    return answer.toString()
  }

  describe('A connection under fast reject', () => {
    it('is refused without the server, and served by it when there is room, and refused again', async () => {
      expect(await ask()).toBe(REFUSED)
      gate.isFull = false
      expect(await ask()).toMatch(/served$/)
      gate.isFull = true
      expect(await ask()).toBe(REFUSED)
    })

    it('is answered at the end of the turn, so that it cannot ask again in it', async () => {
      const before = accepted.bytesWritten
      accepted.emit('data', Buffer.from(REQUEST))
      await Promise.resolve()
      expect([gate.judged, accepted.writableLength]).toEqual([1, REFUSED.length])
      await new Promise(setImmediate)
      expect([accepted.bytesWritten, accepted.writableLength]).toEqual([before + REFUSED.length, 0])
    })

    it('has its answers in order when more comes before the end of the turn', async () => {
      const received: string[] = []
      client.on('data', (chunk) => received.push(String(chunk)))
      accepted.emit('data', Buffer.from(REQUEST))
      gate.isFull = false
      accepted.emit('data', Buffer.from(REQUEST))
      await eventually(() => received.join('').endsWith('served'))
      expect(received.join('').match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 503', 'HTTP/1.1 200'])
    })

    it('goes to the server for good once nothing is refused any more', async () => {
      gate.isRefusing = false
      expect(await ask()).toMatch(/served$/)
      gate.isRefusing = true
      expect([await ask(), gate.judged]).toEqual([expect.stringMatching(/served$/), 0])
    })

    it('is shielded once, however often it is asked for', async () => {
      FastReject.raise(accepted, gate)
      FastReject.raise(accepted, gate)
      gate.isFull = false
      expect([await ask(), gate.judged]).toEqual([expect.stringMatching(/served$/), 1])
    })

    it('can be shielded again after it went to the server', async () => {
      gate.isRefusing = false
      await ask()
      gate.isRefusing = true
      FastReject.raise(accepted, gate)
      expect(await ask()).toBe(REFUSED)
    })

    it('stays open while it is used, and is closed when it is not', async () => {
      expect(await ask()).toBe(REFUSED)
      for (let round = 0; round < 5; round++) {
        jest.advanceTimersByTime(IDLE_MS + 1_000)
        expect(await ask()).toBe(REFUSED)
      }
      jest.advanceTimersByTime(2 * (IDLE_MS + 1_000))
      await once(client, 'close')
    })

    it.each(['let in', 'given back'])('has the timeout of the server again when it is %s', async (how) => {
      const timeoutMs = accepted.timeout
      expect(timeoutMs).toBeGreaterThanOrEqual(IDLE_MS)
      await ask()
      expect([accepted.timeout, jest.getTimerCount()]).toEqual([0, 1])
      gate.isFull = how !== 'let in'
      gate.isRefusing = how === 'let in'
      await ask()
      expect([accepted.timeout, jest.getTimerCount()]).toEqual([timeoutMs, 0])
    })

    it('leaves no timer behind when its client goes', async () => {
      await ask()
      const closed = once(accepted, 'close')
      client.destroy()
      await closed
      expect(jest.getTimerCount()).toBe(0)
    })
  })

  describe('A connection whose last answer is not over', () => {
    it('is not shielded', async () => {
      gate.isRefusing = false
      await ask()
      gate.answer = {} as ServerResponse
      gate.isRefusing = true
      FastReject.raise(accepted, gate)
      // A shield that was raised all the same would give way to an answer that is not over.
      gate.answer = undefined
      expect([await ask(), gate.judged]).toEqual([expect.stringMatching(/served$/), 0])
    })
  })
})

describe('Reading into shared memory', () => {
  let server: NetServer
  let sockets: Socket[]
  beforeEach(async () => {
    sockets = []
    server = createNetServer()
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

  it('gives the reader of the stream what the listener pushes into it, at the pace of that reader', async () => {
    const { client, accepted } = await connection()
    readIntoSharedMemory(accepted, (bytes) => accepted.push(Buffer.from(bytes)))
    const sent = bytesOf(3_000_000)
    client.end(sent)
    await once(accepted, 'readable')
    // The stream has no reader: the connection stops long before all of it has come.
    await new Promise(setImmediate)
    expect(accepted.bytesRead).toBeLessThan(sent.length / 2)
    const received: Buffer[] = []
    for await (const chunk of accepted) received.push(chunk as Buffer)
    expect(Buffer.concat(received).equals(sent)).toBe(true)
  })

  it('is for the listener that asked last', async () => {
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

describe('fast reject', () => {
  const request = (lines: readonly string[], body = ''): Buffer =>
    Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1')

  const POST = 'POST /v1/chat/completions HTTP/1.1'

  describe('An ordinary request', () => {
    it.each([
      [[POST, 'host: x', 'content-length: 2'], '{}', '/v1/chat/completions', ''],
      [['GET /v1/models?limit=5 HTTP/1.1', 'Host: x', 'Connection: Keep-Alive'], '', '/v1/models', ''],
      [['DELETE / HTTP/1.1'], '', '/', ''],
      [['POST / HTTP/1.1', 'Content-Length: 0', 'X-Request-Id: mine-1.a:b_c '], '', '/', 'mine-1.a:b_c'],
      [['GET /a%20b;c HTTP/1.1', 'empty:', 'text: caf\xe9\t1'], '', '/a%20b;c', ''],
    ])('is read: %j', (lines, body, path, requestId) => {
      const read = readSimpleRequest(request(lines, body), '192.0.2.1')
      expect(read).toMatchObject({ method: lines[0]?.split(' ')[0], path, requestId, peer: '192.0.2.1' })
    })
  })

  describe('Whatever is not exactly one ordinary request is left to the parser', () => {
    it.each([
      ['half a head', Buffer.from('POST / HTTP/1.1\r\nhost: x\r\n')],
      ['half a body', request([POST, 'content-length: 3'], '{}')],
      ['two requests', Buffer.concat([request(['GET / HTTP/1.1']), request(['GET / HTTP/1.1'])])],
      ['bytes behind the body', request([POST, 'content-length: 2'], '{}x')],
      ['a body without length', request([POST], '{}')],
      ['chunks', request([POST, 'transfer-encoding: chunked'], '0\r\n\r\n')],
      ['chunks and a length', request([POST, 'content-length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n')],
      ['two lengths', request([POST, 'content-length: 2', 'Content-Length: 2'], '{}')],
      ['a length that is none', request([POST, 'content-length: +2'], '{}')],
      ['a folded header', request([POST, 'a: b', ' content-length: 2'], '{}')],
      ['a blank before the colon', request([POST, 'content-length : 2'], '{}')],
      ['a header without colon', request([POST, 'content-length 2'])],
      ['a bare line feed', request([POST, 'a: b\ncontent-length: 2'], '{}')],
      ['a bare carriage return', request([POST, 'a: b\rcontent-length: 2'], '{}')],
      ['a zero byte', request([POST, 'a: \0'])],
      ['an upgrade', request(['GET /v1/realtime HTTP/1.1', 'connection: Upgrade', 'upgrade: websocket'])],
      ['an upgrade that hides', request(['GET /v1/realtime HTTP/1.1', 'upgrade: websocket'])],
      ['the end of the connection', request(['GET / HTTP/1.1', 'connection: close'])],
      ['an expectation', request([POST, 'expect: 100-continue', 'content-length: 0'])],
      ['HTTP/1.0', request(['GET / HTTP/1.0'])],
      ['HEAD, whose answers have no body', request(['HEAD / HTTP/1.1'])],
      ['CONNECT', request(['CONNECT x:443 HTTP/1.1'])],
      ['a whole address', request(['GET http://x/ HTTP/1.1'])],
      ['an odd method', request(['get / HTTP/1.1'])],
      ['a fragment of a target', request(['GET /a b HTTP/1.1'])],
      ['an id that needs escaping', request(['GET / HTTP/1.1', 'x-request-id: a"b'])],
      ['two ids', request(['GET / HTTP/1.1', 'x-request-id: a', 'x-request-id: b'])],
      ['a very long head', request(['GET / HTTP/1.1', `a: ${'x'.repeat(8_192)}`])],
      ['nothing', Buffer.alloc(0)],
    ])('%s', (_what, bytes) => {
      expect(readSimpleRequest(bytes)).toBeUndefined()
    })
  })

  describe('What is read as an ordinary request', () => {
    const line = fc.constantFrom(
      ...[
        'host: x',
        'Content-Length: 4',
        'content-length: 0',
        'content-length:4 ',
        'content-length: 04',
        'Connection: keep-alive',
      ],
      ...[
        'connection: close',
        'x-request-id: abc',
        'X-Request-Id: d e',
        'transfer-encoding: chunked',
        'te: trailers',
        'a:b',
        ': c',
      ],
      ...[
        'Authorization: Bearer a',
        'authorization:\tBearer  b ',
        'authorization:',
        'X-Api-Key: k',
        'Anthropic-Version: 2023-06-01',
        'x-forwarded-for: 192.0.2.1, ::1',
      ],
      ...[
        ' d: e',
        'f',
        'g: \x01',
        'upgrade: h2c',
        'expect: 100-continue',
        'Content-Length: 4, 4',
        'content_length: 4',
        'é: 1',
      ],
    )
    const start = fc.constantFrom(
      ...[
        'POST / HTTP/1.1',
        'GET /a?b=c HTTP/1.1',
        'DELETE /x HTTP/1.1',
        'POST  / HTTP/1.1',
        'POST /? HTTP/1.1',
        'POST / HTTP/1.0',
      ],
      ...['GET /\x7f HTTP/1.1', 'PUT / HTTP/1.1', 'POST /a#b HTTP/1.1'],
    )
    const end = fc.constantFrom('', 'abcd', 'abc', 'GET / HTTP/1.1\r\n\r\n', '4\r\nabcd\r\n0\r\n\r\n')
    const separator = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r')

    it("is one request to Node's parser as well, with the same path, id and caller, and nothing is left over", async () => {
      let accepted = 0
      await fc.assert(
        fc.asyncProperty(
          start,
          fc.array(fc.tuple(separator, line), { maxLength: 4 }),
          end,
          async (first, lines, rest) => {
            const bytes = Buffer.from(`${first}${lines.flat().join('')}\r\n\r\n${rest}`, 'latin1')
            const read = readSimpleRequest(bytes)
            if (read === undefined) return
            accepted++
            const [seen, ...others] = await requestsIn(bytes)
            expect(others).toEqual([])
            expect(seen).toEqual({ ...read, complete: true })
          },
        ),
        { numRuns: 3_000 },
      )
      expect(accepted).toBeGreaterThan(40)
    })
  })

  interface Seen extends SimpleRequest {
    readonly complete: boolean
  }

  const seen: { readonly request: IncomingMessage }[] = []
  const server: Server = createServer({ requireHostHeader: false }, (incoming) => {
    seen.push({ request: incoming })
    incoming.resume()
  }).on('clientError', (error) => {
    throw error
  })

  /** What Node's parser makes of the bytes of one connection. */
  async function requestsIn(bytes: Buffer): Promise<Seen[]> {
    seen.length = 0
    const connection = new Duplex({
      read: () => undefined,
      write: (_chunk, _encoding, done) => {
        done()
      },
    })
    server.emit('connection', connection)
    connection.push(bytes)
    await new Promise((done) => setImmediate(done))
    await new Promise((done) => setImmediate(done))
    const found = seen.map(({ request: incoming }) => ({
      ...callerHeadersOf(incoming),
      method: incoming.method ?? '',
      path: incoming.url?.split('?')[0] ?? '',
      requestId: String(incoming.headers['x-request-id'] ?? ''),
      complete: incoming.complete,
    }))
    connection.destroy()
    return found
  }
})
