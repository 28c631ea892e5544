import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

/** The key the gateway uses at these upstreams; a canary that must never reach a caller. */
export const REALTIME_UPSTREAM_KEY = 'upstream-canary-key'

/** What an upstream does with one upgrade. */
export interface UpstreamUpgrade {
  readonly request: IncomingMessage
  readonly socket: Socket
  readonly accept: () => WebSocket
  readonly refuse: (status: number, body: object | string, headers?: Readonly<Record<string, string>>) => void
}

/** A WebSocket upstream that keeps what it was asked; it says nothing by itself. */
export interface RealtimeUpstream {
  readonly url: string
  /** Requests for an upgrade, in order. */
  readonly requests: readonly IncomingMessage[]
  /** The upstream's ends of accepted sockets, in order. */
  readonly sockets: readonly WebSocket[]
  /** TCP connections open now. */
  readonly connections: number
  /** Resolves with the next upgrade after this call, before it is answered. */
  nextUpgrade(): Promise<UpstreamUpgrade>
  close(): Promise<void>
}

export async function startRealtimeUpstream(
  answer: (upgrade: UpstreamUpgrade) => void = (upgrade) => void upgrade.accept(),
): Promise<RealtimeUpstream> {
  const http = createServer()
  const server = new WebSocketServer({ noServer: true, handleProtocols: () => false })
  const requests: IncomingMessage[] = []
  const sockets: WebSocket[] = []
  const connections = new Set<Socket>()
  const waiting: ((upgrade: UpstreamUpgrade) => void)[] = []
  http.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  http.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    requests.push(request)
    socket.on('error', () => undefined)
    const upgrade: UpstreamUpgrade = {
      request,
      socket,
      accept: () => {
        server.handleUpgrade(request, socket, head, (accepted) => sockets.push(accepted))
        return sockets.at(-1) as WebSocket
      },
      refuse: (status, body, headers = {}) => {
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        const all = {
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(text)),
          ...headers,
        }
        const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
        // Whoever does not read never learns that the other side has left.
        socket.resume().end(`HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n${text}`)
      },
    }
    answer(upgrade)
    for (const resolve of waiting.splice(0)) resolve(upgrade)
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    requests,
    sockets,
    get connections() {
      return connections.size
    },
    nextUpgrade: () => new Promise((resolve) => waiting.push(resolve)),
    close: async () => {
      const closed = once(http, 'close')
      http.close()
      for (const socket of connections) socket.destroy()
      await closed
    },
  }
}

/** A P1 channel to such an upstream. */
export const realtimeChannel = (upstream: { readonly url: string }, changes: object = {}): object => ({
  id: 'first',
  provider: 'p1',
  baseUrl: upstream.url,
  credentials: REALTIME_UPSTREAM_KEY,
  ...changes,
})
