import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { WebSocket } from 'ws'
import { eventually } from '../../test/support/eventually.js'
import { UpstreamSocketsLab } from '../../test/support/outbound-labs.js'
import {
  BROKEN_ANSWERS,
  failureOf,
  NEVER_SENT,
  newCall,
  targetOf,
  unusedPort,
} from '../../test/support/raw-upstream.js'
import { collect } from '../core/byte-stream.js'
import type { RequestContext } from '../core/request-context.js'
import type { UpstreamResponse } from './exchange.js'
import type { UpstreamTarget } from './upstream-client.js'
import type { HandshakeResponse } from './websocket-client.js'

const lab = new UpstreamSocketsLab()
const { dial, rawTarget, socketServer } = lab

afterEach(() => lab.reset())

const secure = (target: UpstreamTarget): UpstreamTarget => ({
  ...target,
  origin: target.origin.replace('http:', 'https:'),
})

describe('A dial that fails', () => {
  it('because no server listens was never sent', async () => {
    expect(await failureOf(dial(targetOf(await unusedPort())))).toMatchObject({
      kind: 'upstream_failed',
      details: NEVER_SENT,
    })
  })

  it.each<readonly [string, (socket: Socket) => void]>([
    ...BROKEN_ANSWERS,
    [
      'a 101 that does not prove itself',
      (socket) => socket.write('HTTP/1.1 101 S\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'),
    ],
  ])('by %s is the fault of the channel, and closes', async (_name, answer) => {
    expect(await failureOf(dial(await rawTarget(answer)))).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'sent', channelError: true } },
    })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('by choosing another subprotocol than the one offered is the fault of the channel', async () => {
    const target = await socketServer()
    if (lab.server !== undefined) lab.server.options.handleProtocols = () => 'other'
    expect(await failureOf(dial(target, { subprotocol: 'realtime' }))).toMatchObject({ kind: 'upstream_failed' })
  })

  it('by silence after the connection is given up after the first-byte time', async () => {
    const target = await rawTarget(() => undefined, { firstByteMs: 50 })
    expect(await failureOf(dial(target))).toMatchObject({
      kind: 'upstream_timeout',
      details: { attempt: { phase: 'sent', channelError: true } },
    })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('by a TLS handshake without end is given up after the connect time, and nothing was sent', async () => {
    const target = secure(await rawTarget(() => undefined, { connectMs: 50 }))
    expect(await failureOf(dial(target))).toMatchObject({
      kind: 'upstream_timeout',
      details: { attempt: { phase: 'unsent', channelError: true }, retryable: true },
    })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('by the end of the total time is given up at once', async () => {
    const call = newCall()
    const target = await rawTarget(() => undefined)
    expect(await failureOf(dial(target, {}, call, 50))).toMatchObject({ kind: 'upstream_timeout' })
    expect(call.log.upstreamMs).toBeGreaterThan(40)
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('before it began, by a header that cannot be sent, leaves nothing behind', async () => {
    const target = await socketServer()
    await expect(dial(target, { headers: { authorization: 'a\nb' } })).rejects.toThrow('Invalid character')
    expect(lab.clients).toHaveLength(0)
  })
})

describe('A caller who leaves', () => {
  it('during the upgrade ends it at the socket of the upstream', async () => {
    const call = newCall()
    const target = await rawTarget(() => {
      call.disconnect.abort()
    })
    expect(await failureOf(dial(target, {}, call))).toMatchObject({ kind: 'caller_left' })
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it.each(['http', 'https'])('while the connection is made over %s sends nothing', async (protocol) => {
    const call: RequestContext = newCall()
    let heads = 0
    const target = await rawTarget(() => heads++)
    const dialling = failureOf(dial(protocol === 'https' ? secure(target) : target, {}, call))
    call.disconnect.abort()
    expect(await dialling).toMatchObject({ kind: 'caller_left', details: {} })
    await eventually(() => lab.upstream?.sockets.size === 0)
    expect(heads).toBe(0)
  })

  it('before anything was done costs no connection', async () => {
    const call = newCall()
    call.disconnect.abort()
    const target = await rawTarget(() => undefined)
    expect(() => dial(target, {}, call)).toThrow('The caller closed the connection.')
    expect(lab.upstream?.accepted).toBe(0)
  })
})

/** The 101 that a WebSocket server answers to this head. */
function acceptanceOf(head: string): string {
  const key = /sec-websocket-key: (.*)/i.exec(head)?.[1]?.trim() ?? ''
  const proof = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  return `HTTP/1.1 101 Yes\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${proof}\r\n\r\n`
}

const READ_BYTES = 262_144
/** What Node reads from a socket at a time. */
const LARGEST_PIECE_BYTES = 65_536

const textFrame = (text: string): Buffer => Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)])

function opened(answer: HandshakeResponse): WebSocket {
  if (answer.socket === undefined) throw new Error(`refused with ${answer.refusal.status}`)
  return answer.socket
}

function refused(answer: HandshakeResponse): UpstreamResponse {
  if (answer.refusal === undefined) throw new Error('not refused')
  return answer.refusal
}

const textOf = async ({ body }: UpstreamResponse): Promise<string> =>
  (
    await collect(body, 1_000_000, () => {
      throw new Error('too large')
    })
  ).toString()

describe('An accepted upgrade', () => {
  it('asked for the path behind the prefix with the headers given, and offered no compression', async () => {
    let asked: IncomingMessage | undefined
    const target = await socketServer((_socket, request) => {
      asked = request
    })
    const answer = await dial({ ...target, pathPrefix: '/deep' }, { path: '/talk?model=a' })
    expect(opened(answer).readyState).toBe(1)
    expect(asked?.url).toBe('/deep/talk?model=a')
    expect(asked?.headers.authorization).toBe('Bearer;t')
    expect(asked?.headers).not.toHaveProperty('sec-websocket-extensions')
    expect(asked?.headers).not.toHaveProperty('sec-websocket-protocol')
  })

  it('shows the headers of the upstream and the subprotocol it chose', async () => {
    const target = await socketServer()
    lab.server?.on('headers', (headers: string[]) => headers.push('x-tt-logid: log-1'))
    const answer = await dial(target, { subprotocol: 'realtime' })
    expect(answer).toMatchObject({ headers: { 'x-tt-logid': 'log-1', 'sec-websocket-protocol': 'realtime' } })
    expect(opened(answer).protocol).toBe('realtime')
  })

  it('loses no message, not even those that came in one piece with the 101', async () => {
    const target = await rawTarget((socket, head) => {
      socket.write(Buffer.concat([Buffer.from(acceptanceOf(head)), textFrame('first'), textFrame('second')]))
    })
    const socket = opened(await dial(target))
    const received: string[] = []
    socket.on('message', (data: Buffer) => received.push(data.toString()))
    socket.resume()
    await eventually(() => received.length === 2)
    expect(received).toEqual(['first', 'second'])
  })

  it('ends with a message over the limit, which throws nothing without a listener', async () => {
    const target = await socketServer((socket) => {
      socket.send(Buffer.alloc(1001))
    })
    const socket = opened(await dial(target))
    const [client] = lab.clients as [WebSocket]
    const seen = Promise.all([socket, client].map((end) => new Promise((resolve) => end.once('close', resolve))))
    socket.resume()
    expect(await seen).toEqual([1006, 1009])
  })

  it('is counted as time with the upstream, and leaves nothing of the dial behind', async () => {
    const target = await socketServer()
    const call = newCall()
    const socket = opened(await dial(target, {}, call))
    expect(call.log.upstreamMs).toBeGreaterThan(0)
    expect(call.log.upstreamStatus).toBe(101)
    expect(['open', 'upgrade', 'unexpected-response', 'message'].map((name) => socket.listenerCount(name))).toEqual([
      0, 0, 0, 0,
    ])
    call.disconnect.abort()
    expect(socket.readyState).toBe(1)
  })

  it('is closed with the gateway', async () => {
    const socket = opened(await dial(await socketServer()))
    lab.sockets.onApplicationShutdown()
    await once(socket, 'close')
  })
})

describe('A refused upgrade', () => {
  const answering = (head: string, body = ''): Promise<UpstreamTarget> =>
    rawTarget((socket) => socket.end(`HTTP/1.1 ${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`))

  it.each([401, 403, 404, 429, 500, 200, 302])('with status %d is an answer, not a failure', async (status) => {
    const call = newCall()
    const target = await answering(`${status} Word\r\nx-tt-logid: log-2\r\nlocation: /elsewhere`, '{"code":1}')
    const refusal = refused(await dial(target, {}, call))
    expect(refusal).toMatchObject({ status, headers: { 'x-tt-logid': 'log-2' } })
    expect(await textOf(refusal)).toBe('{"code":1}')
    expect(call.log).toMatchObject({ upstreamStatus: status })
    expect(call.log.firstByteMs).toBeGreaterThan(0)
    expect(lab.upstream?.accepted).toBe(1)
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it.each<[string, (socket: Socket) => void]>([
    ['never ends', (socket) => socket.write('HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\nabc')],
    ['is cut', (socket) => socket.write('HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\nabc', () => socket.destroy())],
  ])('whose body %s is answered with what came of it', async (_name, answer) => {
    const refusal = refused(await dial(await rawTarget(answer, { firstByteMs: 100 })))
    expect(refusal.status).toBe(401)
    expect(await textOf(refusal)).toBe('abc')
    await eventually(() => lab.upstream?.sockets.size === 0)
  })

  it('is read up to a bound of 256 KiB', async () => {
    const target = await rawTarget((socket) => {
      socket.write('HTTP/1.1 500 No\r\n\r\n')
      const pour = (): void => {
        if (!socket.destroyed) socket.write(Buffer.alloc(65_536), pour)
      }
      pour()
    })
    const refusal = refused(await dial(target))
    const { length } = await textOf(refusal)
    expect(length).toBeGreaterThan(READ_BYTES)
    // It is known to be too long by the piece that makes it so.
    expect(length).toBeLessThanOrEqual(READ_BYTES + LARGEST_PIECE_BYTES)
    await eventually(() => lab.upstream?.sockets.size === 0)
  })
})
