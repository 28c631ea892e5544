import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect } from '@jest/globals'
import { type WebSocket, WebSocketServer } from 'ws'
import { ConfigStore } from '../../src/config/config-store.js'
import { collect } from '../../src/core/byte-stream.js'
import { SafeFetchClient, type SafeFetchRequest } from '../../src/upstream/safe-fetch.js'
import { AddressRefused, type ResolveHost } from '../../src/upstream/ssrf-guard.js'
import type { UpstreamResponse } from '../../src/upstream/exchange.js'
import type { UpstreamTarget } from '../../src/upstream/upstream-client.js'
import { type HandshakeResponse, type SocketRequest, UpstreamSockets } from '../../src/upstream/websocket-client.js'
import { parseConfig } from './config.js'
import { attemptOf, GENEROUS_TIMEOUTS, newCall, type RawUpstream, startRawUpstream, targetOf } from './raw-upstream.js'

const REQUEST: SocketRequest = { path: '/talk', headers: { authorization: 'Bearer;t' }, maximumMessageBytes: 1000 }

/** The dialler, and upstreams that accept, refuse or do what they like. */
export class UpstreamSocketsLab {
  sockets = new UpstreamSockets()
  server: WebSocketServer | undefined
  upstream: RawUpstream | undefined
  /** The server's ends of all accepted connections. */
  readonly clients: WebSocket[] = []
  #http: Server | undefined

  /** A WebSocket server that does this with each connection it has accepted. */
  readonly socketServer = async (
    onConnection: (socket: WebSocket, request: IncomingMessage) => void = () => undefined,
  ): Promise<UpstreamTarget> => {
    const http = createServer((_request, response) => response.writeHead(426).end('{"code":426}'))
    this.#http = http.listen(0, '127.0.0.1')
    this.server = new WebSocketServer({ server: http, perMessageDeflate: true })
    this.server.on('connection', (socket, request) => {
      this.clients.push(socket)
      onConnection(socket, request)
    })
    await once(http, 'listening')
    return targetOf((http.address() as AddressInfo).port)
  }

  /** The target of an upstream that writes what it likes in answer to the upgrade. */
  readonly rawTarget = async (
    onUpgrade: (socket: Socket, head: string) => void,
    timeouts: Partial<UpstreamTarget['timeouts']> = {},
  ): Promise<UpstreamTarget> => {
    this.upstream = await startRawUpstream(onUpgrade)
    return targetOf(this.upstream.port, { timeouts: { ...GENEROUS_TIMEOUTS, ...timeouts } })
  }

  readonly dial = (
    target: UpstreamTarget,
    changes: Partial<SocketRequest> = {},
    call = newCall(),
    totalMs = 60_000,
  ): Promise<HandshakeResponse> =>
    this.sockets.dial({ ...REQUEST, ...changes }, target, attemptOf(call), performance.now() + totalMs)

  /** Ends what runs, and makes ready for the next test. */
  async reset(): Promise<void> {
    this.sockets.onApplicationShutdown()
    for (const client of this.clients.splice(0)) client.terminate()
    this.#http?.closeAllConnections()
    this.#http?.close()
    this.server?.close()
    await this.upstream?.close()
    this.#http = this.server = this.upstream = undefined
    this.sockets = new UpstreamSockets()
  }
}

/** Well below the deadlines that end a fetch when the one under test does not. */
export const SOON_MS = 8000

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

export const redirectTo = (location: string, status = 302): string =>
  `HTTP/1.1 ${status} Found\r\nlocation: ${location}\r\ncontent-length: 3\r\n\r\nbye`

const configOf = (allow: readonly string[]) => parseConfig(JSON.stringify({ ssrf: { allow } }), {})

/** A server on this machine, and a client that may fetch from it by its address and as `files.test`. */
export class GuardedLab {
  readonly heads: string[] = []
  /** What the server does with the next requests, by path. */
  readonly answers: Record<string, string | ((socket: Socket) => void)> = {}
  /** Names that were resolved, in order; each resolves to this machine. */
  readonly resolved: string[] = []
  /** Exemptions after the next reload. */
  allowed: string[]
  readonly store: ConfigStore
  readonly client: SafeFetchClient
  resolve: ResolveHost = (host) => {
    this.resolved.push(host)
    return Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  }

  private constructor(readonly upstream: RawUpstream) {
    this.allowed = [`127.0.0.1:${upstream.port}`, `files.test:${upstream.port}`]
    const read = () => Promise.resolve({ config: configOf(this.allowed), file: '' })
    this.store = new ConfigStore(configOf(this.allowed), read)
    this.client = new SafeFetchClient(this.store, (host) => this.resolve(host))
  }

  static async start(): Promise<GuardedLab> {
    const upstream = await startRawUpstream((socket, head) => {
      lab.heads.push(head)
      const answer = lab.answers[head.split(' ')[1] ?? ''] ?? OK
      if (typeof answer === 'string') socket.write(answer)
      else answer(socket)
    })
    const lab = new GuardedLab(upstream)
    return lab
  }

  get(path: string, changes: Partial<SafeFetchRequest> = {}, host = '127.0.0.1'): Promise<UpstreamResponse> {
    return this.fetchUrl(`http://${host}:${this.upstream.port}${path}`, changes)
  }

  fetchUrl(url: string, changes: Partial<SafeFetchRequest> = {}): Promise<UpstreamResponse> {
    const deadlineAtMs = performance.now() + 60_000
    return this.client.get(url, {
      context: attemptOf(newCall()),
      deadlineAtMs,
      timeouts: GENEROUS_TIMEOUTS,
      ...changes,
    })
  }

  async close(): Promise<void> {
    await this.client.onApplicationShutdown()
    await this.upstream.close()
  }
}

export const textOf = async ({ body }: UpstreamResponse): Promise<string> =>
  (
    await collect(body, Infinity, () => {
      throw new Error('unreachable')
    })
  ).toString()

/** A refused URL, as it looks when an upstream sent it. */
export const refused = expect.objectContaining({
  kind: 'upstream_failed',
  details: { cause: expect.any(AddressRefused), attempt: { phase: 'answered', channelError: true } },
})
