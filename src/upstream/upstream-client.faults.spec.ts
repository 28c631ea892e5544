import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  GENEROUS_TIMEOUTS,
  newCall,
  type RawUpstream,
  startRawUpstream,
  targetOf,
  unusedPort,
} from '../../test/support/raw-upstream.js'
import { collect } from '../core/byte-source.js'
import type { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import { UpstreamClient, type UpstreamTarget } from './upstream-client.js'
import type { UpstreamResponse } from './upstream-exchange.js'

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

function send(target: UpstreamTarget, call: Call = newCall(), totalMs = 20_000): Promise<UpstreamResponse> {
  const request = { method: 'POST', path: '/', headers: [], body: Buffer.from('{}') } as const
  return client.send(request, target, call, performance.now() + totalMs)
}

async function failureOf(work: Promise<unknown>): Promise<GatewayError> {
  return await work.then(
    () => {
      throw new Error('nothing failed')
    },
    (error: unknown) => error as GatewayError,
  )
}

const wholeBody = ({ body }: UpstreamResponse): Promise<Buffer> =>
  collect(body, Infinity, () => {
    throw new Error('unreachable')
  })

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const SENT = { attempt: { phase: 'sent', channelFault: true }, retryable: false }

describe('An upstream that fails before its answer', () => {
  it('by refusing the connection was never asked', async () => {
    expect(await failureOf(send(targetOf(await unusedPort())))).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'unsent', channelFault: true }, retryable: true },
    })
  })

  it.each<[string, (socket: Socket) => void]>([
    ['a reset', (socket) => socket.resetAndDestroy()],
    ['a polite close', (socket) => socket.end()],
    ['something that is not HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n\r\n')],
    ['half a head', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-')],
    ['a contradictory length', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n')],
  ])('by %s may have done the work', async (_name, answer) => {
    expect(await failureOf(send(await upstreamThat(answer)))).toMatchObject({ kind: 'upstream_failed', details: SENT })
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
      details: { attempt: { phase: 'unsent', channelFault: true }, retryable: true },
    })
  })

  it('by the end of the total time is given up at once, and learns of it', async () => {
    let closed: Promise<unknown> | undefined
    const target = await upstreamThat((socket) => {
      closed = once(socket, 'close')
    })
    const call = newCall()
    expect(await failureOf(send(target, call, 50))).toMatchObject({ kind: 'upstream_timeout' })
    expect(call.log.upstreamMs).toBeGreaterThan(40)
    await closed
  })
})

describe('An upstream that fails in the middle of its answer', () => {
  it.each<[string, (socket: Socket) => void]>([
    ['a reset', (socket) => socket.write(`${CHUNKED}3\r\nabc\r\n`, () => socket.resetAndDestroy())],
    ['a close before the last chunk', (socket) => socket.end(`${CHUNKED}3\r\nabc\r\n`)],
    ['a close before the announced length', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc')],
    ['a broken chunk', (socket) => socket.write(`${CHUNKED}3\r\nabc\r\nzz\r\n`)],
  ])('by %s makes the body fail, never end', async (_name, answer) => {
    const response = await send(await upstreamThat(answer))
    expect(response.status).toBe(200)
    expect(await failureOf(wholeBody(response))).toMatchObject({ kind: 'upstream_failed', details: SENT })
  })

  it('by silence makes the body fail after the idle time', async () => {
    const target = await upstreamThat((socket) => socket.write(`${CHUNKED}3\r\nabc\r\n`), { idleMs: 50 })
    expect(await failureOf(wholeBody(await send(target)))).toMatchObject({ kind: 'upstream_timeout', details: SENT })
  })

  it('by the end of the total time makes the body fail, and learns of it', async () => {
    let closed: Promise<unknown> | undefined
    const target = await upstreamThat((socket) => {
      closed = once(socket, 'close')
      socket.write(`${CHUNKED}3\r\nabc\r\n`)
    })
    expect(await failureOf(wholeBody(await send(target, newCall(), 100)))).toMatchObject({ kind: 'upstream_timeout' })
    await closed
  })
})

describe('A caller who leaves', () => {
  it('before the answer ends the work at the socket of the upstream', async () => {
    const call = newCall()
    let closed: Promise<unknown> | undefined
    const target = await upstreamThat((socket) => {
      closed = once(socket, 'close')
      call.departure.announce()
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
    const body = failureOf(wholeBody(await send(target, call)))
    call.departure.announce()
    expect(await body).toMatchObject({ kind: 'caller_left' })
    await closed
  })

  it('while the connection is made is told at once, and the request is never sent', async () => {
    const target = await upstreamThat(() => undefined)
    const call = newCall()
    const sending = failureOf(send({ ...target, origin: target.origin.replace('http:', 'https:') }, call))
    call.departure.announce()
    const error = await sending
    expect(error).toMatchObject({ kind: 'caller_left' })
    expect(error.details.attempt).toBeUndefined()
  })

  it('before anything was done costs no request', async () => {
    const target = await upstreamThat(() => undefined)
    const call = newCall()
    call.departure.announce()
    expect(() => send(target, call)).toThrow('The caller closed the connection.')
    expect(upstream?.accepted).toBe(0)
  })
})
