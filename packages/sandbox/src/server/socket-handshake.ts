import { STATUS_CODES, type IncomingMessage } from 'node:http'
import { WebSocketServer, type WebSocket } from 'ws'

export interface HandshakeAdmission {
  readonly admitted: true
  readonly headers?: Readonly<Record<string, string>>
  /** The chosen one of the subprotocols the client offered. Default: none. */
  readonly subprotocol?: string
}

export interface HandshakeRefusal {
  readonly admitted: false
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** Answers an upgrade request with a plain HTTP response and ends the connection. */
export function refuseHandshake(message: IncomingMessage, refusal: HandshakeRefusal): void {
  const body = Buffer.from(refusal.body)
  const headers = { ...refusal.headers, connection: 'close', 'content-length': String(body.length) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const statusLine = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? 'Unknown'}\r\n`
  const { socket } = message
  socket.once('finish', () => socket.destroy())
  socket.end(Buffer.concat([Buffer.from(`${statusLine}${lines.join('')}\r\n`), body]))
}

/**
 * Completes an upgrade. `onOpen` is called at once, so that no message is missed; `onInvalid` when the request is no
 * proper WebSocket handshake (RFC 6455 section 4.2.1).
 */
export function acceptHandshake(
  message: IncomingMessage,
  head: Buffer,
  admission: HandshakeAdmission & { readonly maximumMessageBytes: number },
  onOpen: (socket: WebSocket) => void,
  onInvalid: (error: Error) => void,
): void {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: admission.maximumMessageBytes,
    handleProtocols: () => admission.subprotocol ?? false,
  })
  server.once('headers', (lines) => {
    for (const [name, value] of Object.entries(admission.headers ?? {})) lines.push(`${name}: ${value}`)
  })
  server.once('wsClientError', onInvalid)
  server.handleUpgrade(message, message.socket, head, onOpen)
}
