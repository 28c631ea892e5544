import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import { connectTo, startGateway, TEST_KEY, type TestGateway, type TestGatewayOptions } from './gateway.js'
import { listenOnLoopback } from './loopback-server.js'

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
  const waiting: ((upgrade: UpstreamUpgrade) => void)[] = []
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
        // A socket that is not read never reports the disconnect of the other side.
        socket.resume().end(`HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n${text}`)
      },
    }
    answer(upgrade)
    for (const resolve of waiting.splice(0)) resolve(upgrade)
  })
  const { port, sockets: connections, close } = await listenOnLoopback(http)
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    sockets,
    get connections() {
      return connections.size
    },
    nextUpgrade: () => new Promise((resolve) => waiting.push(resolve)),
    close,
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

export const REALTIME_PATH = '/v1/realtime?model=gpt-realtime'

/** A whole handshake; what is given is laid over it, and `undefined` leaves a header out. */
export interface UpgradeRequest {
  readonly method?: string
  readonly path?: string
  readonly version?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Sent in one piece with the request, ahead of it and behind it. */
  readonly before?: Buffer
  readonly early?: Buffer
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  /** Everything behind the head. */
  readonly body: Buffer
}

const HEADERS = {
  host: 'gateway',
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  authorization: `Bearer ${TEST_KEY}`,
}

/** The bytes of a handshake. */
export function handshake(wish: UpgradeRequest = {}): Buffer {
  const { method = 'GET', path = REALTIME_PATH, version = '1.1', headers = {}, before, early } = wish
  const merged: Readonly<Record<string, string | undefined>> = { ...HEADERS, ...headers }
  const lines = Object.entries(merged).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
  const head = [`${method} ${path} HTTP/${version}`, ...lines, '', ''].join('\r\n')
  return Buffer.concat([before ?? Buffer.alloc(0), Buffer.from(head, 'latin1'), early ?? Buffer.alloc(0)])
}

/** Sends exactly this handshake on a connection of its own; the caller destroys it. */
export async function sendUpgrade(url: string, wish: UpgradeRequest = {}): Promise<Socket> {
  const socket = connectTo({ url })
  await once(socket, 'connect')
  socket.write(handshake(wish))
  return socket
}

/** The answer once the server has closed the connection; rejects when it was cut within the body. */
export async function refusalOf(socket: Socket): Promise<HttpAnswer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(socket, 'end')
  socket.end()
  const answer = parse(Buffer.concat(chunks))
  if (Number(answer.headers.get('content-length')) !== answer.body.length) throw new Error('the answer was cut')
  return answer
}

/** The head of the answer as soon as it is there, with whatever came behind it. */
export async function headOf(socket: Socket): Promise<HttpAnswer> {
  const chunks: Buffer[] = []
  const collect = (chunk: Buffer): void => void chunks.push(chunk)
  socket.on('data', collect)
  while (!Buffer.concat(chunks).includes('\r\n\r\n')) await once(socket, 'data')
  socket.off('data', collect)
  return parse(Buffer.concat(chunks))
}

export const askUpgrade = async (url: string, wish: UpgradeRequest = {}): Promise<HttpAnswer> =>
  refusalOf(await sendUpgrade(url, wish))

function parse(bytes: Buffer): HttpAnswer {
  const end = bytes.indexOf('\r\n\r\n')
  const [line = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers = lines.map((text): [string, string] => {
    const colon = text.indexOf(':')
    return [text.slice(0, colon).toLowerCase(), text.slice(colon + 1).trim()]
  })
  return { status: Number(line.split(' ')[1]), headers: new Map(headers), body: bytes.subarray(end + 4) }
}

/** One masked text frame as a client sends it; shorter than 64 KiB. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const mask = Buffer.from([1, 2, 3, 4])
  const length =
    payload.length < 126
      ? Buffer.from([0x80 | payload.length])
      : Buffer.from([0xfe, payload.length >> 8, payload.length & 0xff])
  return Buffer.concat([Buffer.from([0x81]), length, mask, payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0))])
}

/** A gateway with one realtime upstream. */
export interface RealtimeLab {
  readonly gateway: TestGateway
  readonly upstream: RealtimeUpstream
  readonly close: () => Promise<void>
}

/** `channel` overrides settings of its only channel. */
export async function startRealtimeLab(
  options: Partial<TestGatewayOptions> = {},
  channel: object = {},
): Promise<RealtimeLab> {
  const upstream = await startRealtimeUpstream()
  const gateway = await startGateway({ channels: [realtimeChannel(upstream, channel)], ...options })
  return {
    gateway,
    upstream,
    close: async () => {
      await gateway.close()
      await upstream.close()
    },
  }
}

/** A client whose request id is `mine`, unless `headers` says otherwise. */
export const connectRealtime = (
  { url }: Pick<TestGateway, 'url'>,
  headers: Readonly<Record<string, string>> = {},
): WebSocket =>
  new WebSocket(url.replace('http', 'ws') + REALTIME_PATH, {
    headers: { authorization: `Bearer ${TEST_KEY}`, 'x-request-id': 'mine', ...headers },
  })

/** Leaves an upgrade without an answer. */
export const holds = (): void => undefined
