import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net'
import { GatewayError } from '../../src/core/errors.js'
import { AttemptRecord, RequestContext } from '../../src/core/request-context.js'
import type { AttemptContext } from '../../src/providers/contract.js'
import type { UpstreamTarget } from '../../src/upstream/upstream-client.js'
import { contextAt } from './endpoints.js'
import { listenOnLoopback } from './loopback-server.js'

/** The error this work fails with. Throws when it does not fail, or with an error that is none of the gateway's. */
export async function failureOf(work: Promise<unknown>): Promise<GatewayError> {
  const error: unknown = await work.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof GatewayError)) throw error
  return error
}

/** What no caller may make the gateway fetch, by what it leads to; `port` is one with a listener here. */
export const FORBIDDEN_URLS: readonly (readonly [name: string, url: (port: number) => string])[] = [
  ['this machine', (port) => `http://127.0.0.1:${port}/`],
  ['this machine by name', (port) => `http://localhost:${port}/`],
  ['this machine in decimal', (port) => `http://2130706433:${port}/`],
  ['this machine in octal', (port) => `http://0177.0.0.1:${port}/`],
  ['this machine in hex, shortened', (port) => `http://0x7f.1:${port}/`],
  ['this machine in full-width digits', (port) => `http://１２７.0.0.1:${port}/`],
  ['this machine over IPv6', (port) => `http://[::1]:${port}/`],
  ['this machine, IPv4 mapped', (port) => `http://[::ffff:127.0.0.1]:${port}/`],
  ['this machine over NAT64', (port) => `http://[64:ff9b::7f00:1]:${port}/`],
  ['another address of this machine', (port) => `http://127.8.9.10:${port}/`],
  ['the unspecified address', (port) => `http://0.0.0.0:${port}/`],
  ['the unspecified address over IPv6', (port) => `http://[::]:${port}/`],
  ['a private network', () => 'http://10.0.0.7/'],
  ['another private network', () => 'https://192.168.1.1/'],
  ['a unique local address', () => 'http://[fd00:ec2::254]/'],
  ['the metadata service of a cloud', () => 'http://169.254.169.254/latest/meta-data/'],
  ['a shared network', () => 'https://100.64.0.1/'],
  ['a port of another protocol', () => 'http://93.184.216.34:25/'],
]

const PREFIX = '/edge'

/** The reverse proxy under whose address a gateway is known in public. */
export interface PublicEdge {
  /** What `server.publicUrl` is; has a path of its own. */
  readonly url: string
  /** To be called once the gateway listens. */
  leadTo(gatewayUrl: string): void
  /** Requests so far. */
  readonly requests: number
  close(): Promise<void>
}

export async function startPublicEdge(): Promise<PublicEdge> {
  let gateway = ''
  let requests = 0
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url = '' } = incoming
    requests++
    const target = new URL(gateway + url.slice(PREFIX.length))
    const forwarded = request(target, { method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  const { port, close } = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}${PREFIX}`,
    leadTo: (gatewayUrl) => {
      gateway = gatewayUrl
    },
    get requests() {
      return requests
    },
    close,
  }
}

/** A server at every address of this machine that counts who comes; it answers every request with 200. */
export interface UntouchedServer {
  readonly port: number
  /** Connections accepted so far. */
  readonly accepted: number
  close(): Promise<void>
}

export async function startUntouchedServer(): Promise<UntouchedServer> {
  let accepted = 0
  const server = createNetServer((socket) => {
    accepted++
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok')
    })
  })
  // Both families where the machine has them.
  await listen(server, '::').catch(() => listen(server, '0.0.0.0'))
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

async function listen(server: Server, host: string): Promise<void> {
  server.listen(0, host)
  await once(server, 'listening')
}

/** A TCP server that hands each request head to the test, which answers with whatever bytes it likes. */
export interface RawUpstream {
  readonly port: number
  /** Connections accepted so far. */
  readonly accepted: number
  readonly sockets: ReadonlySet<Socket>
  close(): Promise<void>
}

export async function startRawUpstream(onRequest: (socket: Socket, head: string) => void): Promise<RawUpstream> {
  let accepted = 0
  const server = createNetServer((socket) => {
    accepted++
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const end = received.indexOf('\r\n\r\n')
      if (end === -1) return
      const head = received.slice(0, end)
      received = ''
      onRequest(socket, head)
    })
    // Resets are what these tests are about.
    socket.on('error', () => undefined)
  })
  const { port, sockets, close } = await listenOnLoopback(server)
  return {
    port,
    get accepted() {
      return accepted
    },
    sockets,
    close,
  }
}

/** A closed port of the loopback interface. */
export async function unusedPort(): Promise<number> {
  const upstream = await startRawUpstream(() => undefined)
  await upstream.close()
  return upstream.port
}

export const GENEROUS_TIMEOUTS = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 20_000 }

export const targetOf = (port: number, changes: Partial<UpstreamTarget> = {}): UpstreamTarget => ({
  poolKey: `upstream ${port}`,
  origin: `http://127.0.0.1:${port}`,
  pathPrefix: '',
  timeouts: GENEROUS_TIMEOUTS,
  ...changes,
})

/** The record of an attempt, as if it had been made. */
export const attemptRecord = (
  channelId: string,
  startedAtMs: number,
  told: Partial<AttemptRecord> = {},
): AttemptRecord => Object.assign(new AttemptRecord(channelId, startedAtMs), told)

/** A further attempt of a request, recorded in its log as routing does. */
export function attemptOf(
  call: RequestContext,
  channelId = 'first',
): Pick<AttemptContext, 'disconnect' | 'isStrict' | 'memory' | 'record' | 'requestId'> {
  const { disconnect, isStrict, log, memory, requestId } = call
  const record = new AttemptRecord(channelId, performance.now())
  log.attempts.push(record)
  return { disconnect, isStrict, memory, record, requestId }
}

export const newCall = (path = '/v1/chat/completions'): RequestContext =>
  contextAt('POST', path, 'req_test', performance.now())

/** Of an attempt that reached no upstream: another channel may take the call. */
export const NEVER_SENT = { attempt: { phase: 'unsent', channelError: true }, retryable: true } as const

/** Ways in which an upstream fails before the head of an answer. */
export const BROKEN_ANSWERS: readonly (readonly [string, (socket: Socket) => void])[] = [
  ['a reset', (socket) => socket.resetAndDestroy()],
  ['a polite close', (socket) => socket.end()],
  ['something that is not HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n\r\n')],
]
