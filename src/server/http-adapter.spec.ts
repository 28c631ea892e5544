import { once } from 'node:events'
import { IncomingMessage, type Server, ServerResponse } from 'node:http'
import { type AddressInfo, connect, Server as Acceptor, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { Express, Request, Response } from 'express'
import fc from 'fast-check'
import { cpuMs, eventually } from '../../test/support/eventually.js'
import { attachContext, RequestContext } from '../core/request-context.js'
import { AcceptQueue, acceptMore, LISTENING_HANDLES } from './acceptors.js'
import { addressBehind, isFromThisMachine } from './client-address.js'
import { GatewayHttpAdapter, SERVER_LIMITS } from './http-adapter.js'
import { UpgradableServer } from './upgrade.js'
import { offeredSubprotocols } from './ws-adapter.js'

describe('http adapter', () => {
  let app: Express
  let server: Server
  let started: IncomingMessage[]
  let adapter: GatewayHttpAdapter
  let startRequest: (request: IncomingMessage) => unknown
  beforeEach(async () => {
    started = []
    startRequest = (request) => started.push(request)
    adapter = new GatewayHttpAdapter((request) => startRequest(request))
    adapter.initHttpServer()
    app = adapter.getInstance<Express>()
    server = adapter.getHttpServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(async () => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  })

  function open(text: string): Socket {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(text)
    return socket
  }

  interface RawAnswer {
    readonly line: string
    readonly headers: string
    readonly body: string
  }

  /** Everything the server says until it closes the connection. */
  async function answerOf(socket: Socket): Promise<RawAnswer> {
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    await once(socket, 'close')
    const [head = '', body = ''] = text.split('\r\n\r\n', 2)
    const [line = '', ...headers] = head.split('\r\n')
    return { line, headers: headers.join('\n').toLowerCase(), body }
  }

  const get = (path: string, headers = ''): Promise<RawAnswer> =>
    answerOf(open(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`))

  describe('A connection between two requests', () => {
    const exchangeOn = async (socket: Socket): Promise<string> => String(((await once(socket, 'data')) as [Buffer])[0])

    it('keeps nothing of its last call', async () => {
      let accepted: Socket | undefined
      app.post('/x', (request: Request, response: Response) => {
        accepted = request.socket
        expect(adapter.lastResponse(accepted)).toBe(response)
        response.json({})
      })
      const socket = open('POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}')
      expect(await exchangeOn(socket)).toMatch(/^HTTP\/1\.1 200 /)
      expect(accepted && adapter.lastResponse(accepted)).toBeUndefined()
      socket.destroy()
    })

    it('remembers an answer whose request still arrives', async () => {
      let accepted: Socket | undefined
      app.post('/x', (request: Request, response: Response) => {
        accepted = request.socket
        response.json({})
      })
      const socket = open('POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 20\r\n\r\n{}')
      await exchangeOn(socket)
      expect(accepted && adapter.lastResponse(accepted)?.writableFinished).toBe(true)
      socket.destroy()
    })
  })

  describe('Requests that are sent ahead of the response to the one before', () => {
    const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'

    it('are served one after the other, each in a turn of the event loop of its own', async () => {
      let turn = 0
      let isOver = false
      const count = (): void => {
        turn++
        if (!isOver) setImmediate(count)
      }
      count()
      const turns: number[] = []
      app.use((_request: Request, response: Response) => {
        turns.push(turn)
        response.end()
      })
      const socket = open(REQUEST.repeat(20))
      while (turns.length < 20) await once(socket, 'data')
      isOver = true
      expect(new Set(turns).size).toBe(20)
      socket.destroy()
    })

    it('close their connection when too many wait, and none of them is begun', async () => {
      app.use(() => undefined)
      const socket = open(REQUEST.repeat(66))
      await once(socket, 'close')
      expect(started).toHaveLength(1)
    })
  })

  describe('Requests and responses', () => {
    it('are born with the prototypes Express would give them, so that it never has to replace one', async () => {
      const seen: unknown[] = []
      server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
        seen.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response))
      })
      app.get('/x', (_request: Request, response: Response) => void response.json({}))
      await get('/x')
      expect(seen).toHaveLength(2)
      expect(seen[0]).toBe(app.request)
      expect(seen[1]).toBe(app.response)
    })

    it('are what Express and Node expect them to be', async () => {
      let seen: unknown[] = []
      app.get('/x', (request: Request, response: Response) => {
        seen = [request instanceof IncomingMessage, response instanceof ServerResponse, request.app === app]
        seen.push(request.query, request.get('accept'), response.req === request)
        response.status(202).json({ a: 1 })
      })
      const answer = await get('/x?a=1&b[c]=2', 'accept: text/html\r\n')
      expect(seen).toEqual([true, true, true, { a: '1', 'b[c]': '2' }, 'text/html', true])
      expect([answer.line, answer.body]).toEqual(['HTTP/1.1 202 Accepted', '{"a":1}'])
      expect(answer.headers).not.toMatch(/etag|x-powered-by/)
      expect(started).toHaveLength(1)
    })
  })

  describe('Routes for POST', () => {
    const reply = (text: string) => (_request: unknown, response: ServerResponse) => response.end(text)
    const post = async (path: string): Promise<string> => {
      const text = `POST ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`
      return (await answerOf(open(text))).body
    }
    beforeEach(() => {
      startRequest = (request) => {
        const [path = ''] = (request.url ?? '').split('?')
        attachContext(request, new RequestContext('req_1', request.method ?? '', path, 0))
      }
    })

    it('without parameters are found without Express, whatever the query', async () => {
      const throughExpress = jest.fn((_request: unknown, _response: unknown, next: () => void) => {
        next()
      })
      app.use(throughExpress)
      adapter.post('/v1/x', reply('x'))
      adapter.post('/v1/x', reply('a later one'))
      adapter.post('/v1/:id', reply('id'))
      expect([await post('/v1/x'), await post('/v1/x?a=/v1/y'), await post('/v1/y')]).toEqual(['x', 'x', 'id'])
      expect(throughExpress).toHaveBeenCalledTimes(1)
    })

    it('have requests and responses as Express would give them', async () => {
      adapter.post('/v1/x', (request: Request, response: Response) => {
        response
          .status(201)
          .json({ a: request.query['a'], isFound: request.res === response && response.req === request })
      })
      expect(await post('/v1/x?a=1')).toBe('{"a":"1","isFound":true}')
    })

    it('are told from those of other methods, and from paths that differ in case or by a slash', async () => {
      adapter.post('/v1/x', reply('x'))
      app.use(reply('another'))
      expect([await post('/v1/X'), await post('/v1/x/'), (await get('/v1/x')).body]).toEqual(Array(3).fill('another'))
    })

    it.each<[string, (next: (error?: unknown) => void) => unknown]>([
      ['reject', () => Promise.reject(new Error('a fault'))],
      [
        'throw',
        () => {
          throw new Error('a fault')
        },
      ],
      [
        'hand an error on',
        (next) => {
          next(new Error('a fault'))
        },
      ],
      [
        'pass a request on',
        (next) => {
          next()
        },
      ],
    ])('that %s answer 500, once, without what happened', async (_what, fault) => {
      const handler = jest.fn((_request: unknown, _response: unknown, next?: unknown) =>
        fault(next as (error?: unknown) => void),
      )
      adapter.post('/v1/x', handler)
      const answer = await post('/v1/x')
      expect(answer).toContain('"code":"internal_error"')
      expect(answer).not.toContain('a fault')
      expect(handler).toHaveBeenCalledTimes(1)
    })
  })

  describe('Vary', () => {
    beforeEach(() => {
      app.use((request: Request, _response: Response, next: () => void) => {
        const call = new RequestContext('req_1', 'GET', request.path, 0)
        call.responseHeaders['vary'] = 'anthropic-version, Origin'
        attachContext(request, call)
        next()
      })
    })

    it.each<[string, (response: Response) => unknown, string]>([
      ['nothing', (response) => response.writeHead(200).end(), 'anthropic-version, origin'],
      ['a header that was set', (response) => response.vary('Accept').send('a'), 'accept, anthropic-version, origin'],
      [
        'a header of the head',
        (response) => response.writeHead(200, { vary: 'origin,Accept' }).end(),
        'origin, accept, anthropic-version',
      ],
      ['all there is', (response) => response.writeHead(200, { vary: '*' }).end(), '*'],
    ])('names what the gateway depends on beside %s that a writer says', async (_what, write, expected) => {
      app.get('/varies', (_request: Request, response: Response) => {
        write(response)
      })
      expect((await get('/varies')).headers.split('\n')).toContain(`vary: ${expected}`)
    })
  })

  describe('Routes', () => {
    it.each(['/A/b', '/a/B', '/a/b/', '//a/b', '/a//b'])('are exact: %s is not /a/b', async (path) => {
      app.get('/a/b', (_request: Request, response: Response) => void response.json({}))
      expect((await get('/a/b')).line).toBe('HTTP/1.1 200 OK')
      expect((await get(path)).line).toBe('HTTP/1.1 404 Not Found')
    })
  })

  describe('What never becomes a request', () => {
    const envelope = (answer: RawAnswer): Record<string, unknown> =>
      (JSON.parse(answer.body) as { error: Record<string, unknown> }).error

    it.each([
      ['garbage', '\u0001\u0002\u0003\r\n\r\n'],
      ['TLS', '\u0016\u0003\u0001\u0002\u0000\u0001'],
      ['a broken length', 'POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: abc\r\n\r\n'],
      ['smuggling', 'POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n'],
    ])('is answered as JSON and the connection closed (%s)', async (_name, text) => {
      const answer = await answerOf(open(text))
      expect(answer.line).toBe('HTTP/1.1 400 Bad Request')
      expect(answer.headers).toMatch(/^content-type: application\/json$/m)
      expect(answer.headers).toMatch(/^connection: close$/m)
      expect(answer.headers).toMatch(/^x-request-id: req_[0-9a-f]{32}$/m)
      expect(answer.headers).toContain(`content-length: ${Buffer.byteLength(answer.body)}`)
      expect(envelope(answer)).toEqual({
        message: 'The request is not valid HTTP.',
        type: 'invalid_request_error',
        param: null,
        code: null,
      })
    })

    it('is 431 when its headers are larger than the limit', async () => {
      const answer = await answerOf(
        open(`GET / HTTP/1.1\r\nhost: x\r\na: ${'x'.repeat(SERVER_LIMITS.headerBytes)}\r\n\r\n`),
      )
      expect(answer.line).toBe('HTTP/1.1 431 Request Header Fields Too Large')
      expect(envelope(answer)).toMatchObject({ code: 'header_fields_too_large' })
      expect((await get('/x', `a: ${'x'.repeat(SERVER_LIMITS.headerBytes - 200)}\r\n`)).line).toContain('404')
    })

    it('is 408 when it does not arrive in time', async () => {
      expect(server).toMatchObject({ headersTimeout: 10_000, requestTimeout: 120_000, keepAliveTimeout: 75_000 })
      // The server looks once a second; what it looks for may be changed while it runs.
      server.headersTimeout = 100
      server.requestTimeout = 100
      const answer = await answerOf(open('GET / HTTP/1.1\r\nhost:'))
      expect(answer.line).toBe('HTTP/1.1 408 Request Timeout')
      expect(envelope(answer)).toMatchObject({ code: 'request_timeout' })
    })

    it('is answered on a connection that served others before', async () => {
      app.get('/x', (_request: Request, response: Response) => void response.json({}))
      const socket = open('GET /x HTTP/1.1\r\nhost: x\r\n\r\n')
      await once(socket, 'data')
      const answer = answerOf(socket)
      socket.write('\u0001\r\n\r\n')
      expect((await answer).line).toBe('HTTP/1.1 400 Bad Request')
    })

    it('never puts a second head into an answer that has begun', async () => {
      app.get('/stream', (_request: Request, response: Response) => void response.write('first'))
      const socket = open('GET /stream HTTP/1.1\r\nhost: x\r\n\r\n')
      const whole = answerOf(socket)
      await once(socket, 'data')
      socket.write('\u0001\r\n\r\n')
      expect(await whole).toMatchObject({ line: 'HTTP/1.1 200 OK', body: '5\r\nfirst\r\n' })
    })

    it('never puts a second answer behind the refusal of a request that still arrives', async () => {
      app.post('/refuse', (_request: Request, response: Response) => void response.status(400).json({}))
      const socket = open('POST /refuse HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n')
      const whole = answerOf(socket)
      await once(socket, 'data')
      socket.write('zz\r\n')
      expect(await whole).toMatchObject({ line: 'HTTP/1.1 400 Bad Request', body: '{}' })
    })
  })
})

const PROXIES = ['10.0.0.0/8', '127.0.0.1', 'fd00::/8']

describe('the address of a caller', () => {
  it.each([
    ['203.0.113.7', undefined, '203.0.113.7'],
    ['10.1.2.3', '203.0.113.7', '203.0.113.7'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['127.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['fd00::1', '2001:db8::7', '2001:db8::7'],
    // Several proxies of ours, one behind the other.
    ['10.1.2.3', '203.0.113.7, 10.9.9.9', '203.0.113.7'],
    ['10.1.2.3', '10.7.7.7,10.9.9.9', '10.7.7.7'],
    // What the caller wrote itself stands further left.
    ['10.1.2.3', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['10.1.2.3', '127.0.0.1, 203.0.113.7, 10.9.9.9', '203.0.113.7'],
    // IPv4 on a socket that takes both.
    ['::ffff:10.1.2.3', '203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', undefined, '203.0.113.7'],
    ['10.1.2.3', '::ffff:203.0.113.7', '203.0.113.7'],
    // Some proxies name the port, too.
    ['10.1.2.3', '203.0.113.7:50412', '203.0.113.7'],
    ['10.1.2.3', '[2001:db8::7]:50412', '2001:db8::7'],
    // No address: the last one that is known for sure.
    ['10.1.2.3', '203.0.113.7, unknown', '10.1.2.3'],
    ['10.1.2.3', '203.0.113.7, <script>, 10.9.9.9', '10.9.9.9'],
  ])('of %s that says %j is %s', (peer, forwardedFor, expected) => {
    expect(addressBehind(peer, forwardedFor, PROXIES)).toBe(expected)
  })

  it.each([
    ['203.0.113.7', PROXIES],
    ['::ffff:203.0.113.7', PROXIES],
    ['11.0.0.1', PROXIES],
    ['fc00::1', PROXIES],
    ['10.1.2.3', []],
  ])('is its own, whatever %s claims, when it is no proxy of %j', (peer, proxies) => {
    expect(addressBehind(peer, '198.51.100.1, 10.1.2.3', proxies)).toBe(peer.replace('::ffff:', ''))
  })

  it('is unknown when the connection is gone', () => {
    expect(addressBehind(undefined, '198.51.100.1', PROXIES)).toBeUndefined()
  })

  it('is never taken from further left than the first address that is no proxy, however long the list', () => {
    fc.assert(
      fc.property(fc.array(fc.ipV4(), { maxLength: 20 }), fc.array(fc.ipV4(), { maxLength: 5 }), (invented, own) => {
        const trusted = own.map((address) => address.replace(/^\d+/, '10'))
        const header = [...invented, '203.0.113.7', ...trusted].join(', ')
        expect(addressBehind('10.1.2.3', header, PROXIES)).toBe('203.0.113.7')
      }),
    )
  })
})

describe('A server that is told to close', () => {
  let server: UpgradableServer
  let clients: Socket[]
  beforeEach(async () => {
    clients = []
    server = new UpgradableServer()
    server.on('upgrade', () => undefined)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(() => {
    for (const client of clients) client.destroy()
    server.close()
  })

  /** The two ends of a connection that asks to leave HTTP, and is adopted. */
  async function leaving(): Promise<{ readonly client: Socket; readonly near: Socket }> {
    const asked = once(server, 'upgrade')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
    clients.push(client)
    client.write('GET / HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n')
    const near = (await asked)[1] as Socket
    server.adopt(near)
    return { client, near }
  }

  it('all requests cuts those to leave HTTP, and leaves the sockets that have left it alone', async () => {
    const [waiting, left] = [await leaving(), await leaving()]
    server.handOver(left.near)
    const closed = once(waiting.client, 'close')
    server.closeAllRequests()
    await closed
    expect([waiting.near.destroyed, left.near.destroyed]).toEqual([true, false])
  })

  it('all connections cuts both', async () => {
    const [waiting, left] = [await leaving(), await leaving()]
    server.handOver(left.near)
    const closed = Promise.all([waiting, left].map(({ client }) => once(client, 'close')))
    server.closeAllConnections()
    await closed
  })

  it('forgets a socket that has closed before it was handed over', async () => {
    const { near } = await leaving()
    near.destroy()
    await once(near, 'close')
    server.handOver(near)
    expect(server).toMatchObject({ leaving: new Set(), upgraded: new Set() })
  })
})

describe('A server with further handles of its socket', () => {
  const BACKLOG = 128

  let server: UpgradableServer
  let port: number
  beforeEach(async () => {
    server = new UpgradableServer({ keepAliveTimeout: 60_000 }, (_request, response) => response.end('served'))
    server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG })
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  it('keeps its backlog, which each handle sets anew', async () => {
    const listen = jest.spyOn(Acceptor.prototype, 'listen')
    await acceptMore(server, BACKLOG)
    const { calls } = listen.mock
    listen.mockRestore()
    expect(calls).toEqual(Array.from({ length: LISTENING_HANDLES - 1 }, () => [expect.anything(), BACKLOG]))
  })

  it('serves by the one it has where no process can be started', async () => {
    const { execPath } = process
    process.execPath = '/nowhere/node'
    const handles = acceptMore(server, BACKLOG)
    process.execPath = execPath
    expect(await handles).toBe(1)
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('served')
  })

  it('accepts several connections in one turn of the event loop, and serves all', async () => {
    expect(await acceptMore(server, BACKLOG)).toBe(LISTENING_HANDLES)
    let turn = 0
    const turns: number[] = []
    const next = (): void => {
      turn++
      if (turns.length < 32) setImmediate(next)
    }
    server.on('connection', () => turns.push(turn))
    // The kernel completes connections that the process has not accepted yet.
    const answers = Array.from({ length: 32 }, () => fetch(`http://127.0.0.1:${port}/`))
    next()
    for (const answer of await Promise.all(answers)) expect(await answer.text()).toBe('served')
    const mostInATurn = Math.max(...turns.map((one) => turns.filter((other) => other === one).length))
    expect(mostInATurn).toBeGreaterThan(1)
  })

  it('tells that connections wait to be accepted, and forgets it when they do no more', async () => {
    await acceptMore(server, BACKLOG)
    let nowMs = 1_000
    const queue = new AcceptQueue(server, () => nowMs)
    /** One turn of the event loop in which so many connections are accepted. */
    const turn = async (accepted: number): Promise<number> => {
      nowMs += 10
      for (let index = 0; index < accepted; index++) server.emit('connection', new Socket())
      await nextTurn()
      return queue.waitingMs
    }
    expect(await turn(LISTENING_HANDLES - 1)).toBe(0)
    expect([await turn(LISTENING_HANDLES), await turn(LISTENING_HANDLES), await turn(LISTENING_HANDLES)]).toEqual([
      0, 10, 20,
    ])
    expect(await turn(3)).toBe(0)
    expect([await turn(LISTENING_HANDLES), await turn(LISTENING_HANDLES)]).toEqual([0, 10])
    nowMs += 101
    expect(queue.waitingMs).toBe(0)
    expect(await turn(LISTENING_HANDLES)).toBe(0)
  })

  it('that accepts by one handle tells nothing of those that wait', async () => {
    const queue = new AcceptQueue(server, () => 1_000)
    server.emit('connection', new Socket())
    await nextTurn()
    expect(queue.waitingMs).toBe(0)
  })

  it('closes when the last connection ends, and accepts none by any handle before that', async () => {
    await acceptMore(server, BACKLOG)
    let accepted = 0
    server.on('connection', () => accepted++)
    const clients = Array.from({ length: 16 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
    await Promise.all(clients.map((client) => once(client, 'connect')))
    await eventually(() => accepted === clients.length)
    let isClosed = false
    const closed = new Promise<void>((resolve) => {
      server.close(() => {
        isClosed = true
        resolve()
      })
    })
    const [refused] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException]
    expect([refused.code, isClosed]).toEqual(['ECONNREFUSED', false])
    for (const client of clients) client.destroy()
    await closed
  })

  it('that closes while they are made accepts nothing by them', async () => {
    const more = acceptMore(server, BACKLOG)
    server.close()
    await more
    const [refused] = (await once(connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException]
    expect(refused.code).toBe('ECONNREFUSED')
  })
})

const offered = (header: string) => offeredSubprotocols({ headers: { 'sec-websocket-protocol': header } })

describe('Subprotocols', () => {
  it('are those of the header in its order, without the blanks around them', () => {
    expect(offered('realtime, \t b ,c\t')).toEqual(['realtime', 'b', 'c'])
    expect(offeredSubprotocols({ headers: {} })).toEqual([])
  })

  it.each(['', 'a,', 'a b', 'a,a', '\u00a0a', 'a\u00a0', 'a\v', 'a=b'])('are not what %j says', (header) => {
    expect(() => offered(header)).toThrow('different tokens')
  })

  it('are told at once, however many blanks stand in the header', () => {
    const startedAtMs = cpuMs()
    expect(() => offered(`a${' '.repeat(65_536)}b`)).toThrow('different tokens')
    expect(cpuMs() - startedAtMs).toBeLessThan(100)
  })
})

describe('A caller', () => {
  it.each([
    ['of this machine', '127.0.0.1', {}, true],
    ['of this machine by IPv6', '::1', {}, true],
    ['of this machine on a socket for both families', '::ffff:127.0.0.1', {}, true],
    ['of another machine', '192.0.2.1', {}, false],
    ['of another machine by IPv6', '2001:db8::1', {}, false],
    ['behind a proxy of this machine', '127.0.0.1', { 'x-forwarded-for': '127.0.0.1' }, false],
    ['behind a proxy that speaks RFC 7239', '127.0.0.1', { forwarded: 'for=192.0.2.1' }, false],
    ['that has gone', undefined, {}, false],
  ])('%s is told', (_what, remoteAddress, headers, isOwn) => {
    expect(isFromThisMachine({ headers, socket: { remoteAddress } } as IncomingMessage)).toBe(isOwn)
  })
})
