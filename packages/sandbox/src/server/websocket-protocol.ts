import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Exchange } from './exchange.js'
import type { ScriptedFault } from './faults.js'
import type { RecordedRequest } from './recorded-request.js'
import type { SocketSession } from './websocket-session.js'

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

export interface SocketSimulatorOptions {
  /** 0, the default, takes a free port. */
  readonly port?: number
  readonly host?: string
  /** Larger messages of a client close the connection with 1009. Default 16 MiB. */
  readonly maximumMessageBytes?: number
}

/** Faults of the handshake, which every WebSocket simulator has. */
export type HandshakeFault =
  | ScriptedFault
  /** The upgrade is never answered. */
  | { readonly kind: 'hang' }
  /** The connection is reset before any byte of the answer. */
  | { readonly kind: 'reset' }

/** A fault of the handshake, or the protocol's own fault words for the session after it. */
export type SocketFault = string | HandshakeFault

/** What one upstream does with its sockets. */
export interface SocketProtocol {
  /** Judges an upgrade request. */
  admit(session: SocketSession): HandshakeAdmission | HandshakeRefusal
  /** Runs the session. An error thrown while the client is connected aborts it and is a violation. */
  converse(session: SocketSession): Promise<void>
  /** Answers plain HTTP on the same port. Default: 404 for all. */
  serve?(exchange: Exchange): Promise<void>
}

export interface SocketSimulatorEvents {
  /** An upgrade request has arrived and is not answered yet. */
  handshake: [SocketSession]
  /** An upgrade request was admitted or refused. */
  session: [SocketSession]
  close: [SocketSession]
  /** The client disconnected before the simulator's response was complete. */
  abort: [SocketSession]
}

type SessionEvent = keyof SocketSimulatorEvents
type SessionListener = (session: SocketSession) => void

/** The sessions of one server: what tests look at and queue faults for. */
export interface SocketSessions {
  /** Handshakes, refused ones included; newest last, at most 1,000. */
  readonly sessions: readonly SocketSession[]
  readonly lastSession: SocketSession | undefined
  /** The violations of all that is remembered. */
  readonly violations: readonly string[]
  /** Sessions whose connection is open, and handshakes not answered yet. */
  readonly activeSessions: number
  /** Resolves with the first session after this call, once its handshake was answered (refused ones included). */
  nextSession(): Promise<SocketSession>
  /** Resolves with the first session that ends after this call, however it ends. */
  nextClose(): Promise<SocketSession>
  /** Resolves with the first session after this call whose client disconnects before its response is complete. */
  nextAbort(): Promise<SocketSession>
  /** Resolves when no session is active any more. */
  idle(): Promise<void>
  /** The next session suffers this fault; several are used up in order, one per session. */
  queueFault(fault: SocketFault): void
  /** Forgets what is recorded and queued. */
  reset(): void
  on(event: SessionEvent, listener: SessionListener): this
  once(event: SessionEvent, listener: SessionListener): this
  off(event: SessionEvent, listener: SessionListener): this
}

/** A running WebSocket simulator. The interface for tests and the sandbox. */
export interface SocketSimulator extends SocketSessions {
  /** `ws://127.0.0.1:<port>`, without a path. */
  readonly url: string
  /** The same address for plain HTTP. */
  readonly httpUrl: string
  readonly port: number
  /** Plain HTTP requests, newest last, at most 1,000. */
  readonly requests: readonly RecordedRequest[]
  /** TCP connections open now, upgraded or not. */
  readonly openConnections: number
  /** Stops listening and destroys every open connection. */
  close(): Promise<void>
}
