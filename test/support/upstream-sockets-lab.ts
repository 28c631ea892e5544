import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { UpstreamTarget } from '../../src/upstream/upstream-client.js'
import { type SocketRequest, UpstreamSockets } from '../../src/upstream/upstream-sockets.js'
import type { SocketAnswer } from '../../src/upstream/websocket-client.js'
import { GENEROUS_TIMEOUTS, newCall, type RawUpstream, startRawUpstream, targetOf } from './raw-upstream.js'

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
    totalMs = 20_000,
  ): Promise<SocketAnswer> => this.sockets.dial({ ...REQUEST, ...changes }, target, call, performance.now() + totalMs)

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
