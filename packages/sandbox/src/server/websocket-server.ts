import { EventEmitter, once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Exchange } from './exchange.js'
import { RecordedRequest } from './recorded-request.js'
import { type Simulator, startSimulator } from './simulator-server.js'
import {
  acceptHandshake,
  type HandshakeAdmission,
  type HandshakeFault,
  type HandshakeRefusal,
  refuseHandshake,
  type SocketFault,
  type SocketProtocol,
  type SocketSessions,
  type SocketSimulator,
  type SocketSimulatorEvents,
  type SocketSimulatorOptions,
} from './websocket-protocol.js'
import { SocketSession } from './websocket-session.js'

/** Sessions remembered; older ones are forgotten. */
const REMEMBERED_SESSIONS = 1000
/** Memory for the messages of remembered sessions; beyond it those of the oldest are dropped. */
const REMEMBERED_MESSAGE_BYTES = 32 * 1024 * 1024
const MAXIMUM_MESSAGE_BYTES = 16 * 1024 * 1024

/** Records each WebSocket session of any server and lets the protocol run it. */
export class SocketReception extends EventEmitter<SocketSimulatorEvents & { idle: [] }> implements SocketSessions {
  readonly #active = new Set<SocketSession>()
  #sessions: SocketSession[] = []
  #faults: SocketFault[] = []

  constructor(
    private readonly sessionProtocol: Pick<SocketProtocol, 'admit' | 'converse'>,
    private readonly maximumMessageBytes = MAXIMUM_MESSAGE_BYTES,
  ) {
    super()
    this.setMaxListeners(0)
  }

  get sessions(): readonly SocketSession[] {
    return this.#sessions
  }

  get lastSession(): SocketSession | undefined {
    return this.#sessions.at(-1)
  }

  get violations(): readonly string[] {
    return this.#sessions.flatMap((session) => session.violations)
  }

  get activeSessions(): number {
    return this.#active.size
  }

  async nextSession(): Promise<SocketSession> {
    const [session] = (await once(this, 'session')) as [SocketSession]
    return session
  }

  async nextClose(): Promise<SocketSession> {
    const [session] = (await once(this, 'close')) as [SocketSession]
    return session
  }

  async nextAbort(): Promise<SocketSession> {
    const [session] = (await once(this, 'abort')) as [SocketSession]
    return session
  }

  async idle(): Promise<void> {
    if (this.#active.size > 0) await once(this, 'idle')
  }

  queueFault(fault: SocketFault): void {
    this.#faults.push(fault)
  }

  reset(): void {
    this.#sessions = []
    this.#faults = []
  }

  /** Breaks every open session off. */
  breakOff(): void {
    for (const session of this.#active) session.breakOff()
  }

  /** Takes an upgrade request. Its session records the outcome; nothing is thrown. */
  upgrade(message: IncomingMessage, head: Buffer): void {
    void this.#upgrade(message, head)
  }

  async #upgrade(message: IncomingMessage, head: Buffer): Promise<void> {
    const fault = this.#faults.shift()
    const handshake = new RecordedRequest(message, false)
    handshake.markReceived()
    const session = new SocketSession(handshake, typeof fault === 'string' ? fault : '')
    this.#remember(session)
    const { socket } = message
    socket.on('error', () => undefined)
    socket.once('close', () => {
      if (session.openedAtMs === undefined) session.settle()
    })
    this.emit('handshake', session)
    if (typeof fault === 'object' && (await this.#applyFault(session, message, fault))) return
    const admission = this.sessionProtocol.admit(session)
    if (admission.admitted) this.#accept(session, message, head, admission)
    else this.#refuse(session, message, admission)
  }

  /** Returns true when the fault has taken the place of the handshake's answer. */
  async #applyFault(session: SocketSession, message: IncomingMessage, fault: HandshakeFault): Promise<boolean> {
    switch (fault.kind) {
      case 'delay':
        await pause(fault.ms)
        return message.socket.destroyed
      case 'status':
        this.#refuse(session, message, { admitted: false, ...fault })
        return true
      case 'hang':
        // Only a socket that is read notices that the client has left.
        message.socket.once('end', () => message.socket.destroy()).resume()
        return true
      case 'reset':
        session.breakOff()
        message.socket.resetAndDestroy()
        return true
    }
  }

  #refuse(session: SocketSession, message: IncomingMessage, refusal: HandshakeRefusal): void {
    session.refusedStatus = refusal.status
    session.answerHeaders = refusal.headers ?? {}
    refuseHandshake(message, refusal)
    this.emit('session', session)
  }

  #accept(session: SocketSession, message: IncomingMessage, head: Buffer, admission: HandshakeAdmission): void {
    session.answerHeaders = admission.headers ?? {}
    acceptHandshake(
      message,
      head,
      { ...admission, maximumMessageBytes: this.maximumMessageBytes },
      (socket) => {
        session.open(socket)
        this.emit('session', session)
        void this.#converse(session)
      },
      (error) => {
        session.violations.push(`invalid handshake: ${error.message}`)
        this.#refuse(session, message, { admitted: false, status: 400, body: error.message })
      },
    )
  }

  async #converse(session: SocketSession): Promise<void> {
    try {
      await this.sessionProtocol.converse(session)
    } catch (error) {
      if (session.end !== undefined) return
      session.violations.push(failureText(error))
      session.breakOff()
    }
  }

  #remember(session: SocketSession): void {
    this.#active.add(session)
    this.#sessions.push(session)
    if (this.#sessions.length > REMEMBERED_SESSIONS) this.#sessions.shift()
    void session.closed.then(({ outcome }) => {
      this.#active.delete(session)
      this.#boundMemory()
      this.emit('close', session)
      if (outcome === 'aborted') this.emit('abort', session)
      if (this.#active.size === 0) this.emit('idle')
    })
  }

  #boundMemory(): void {
    let heldBytes = 0
    for (const session of this.#sessions.toReversed()) {
      heldBytes += session.heldBytes
      if (heldBytes > REMEMBERED_MESSAGE_BYTES) session.forgetMessages()
    }
  }
}

/** A bug of the simulator is printed, so that the test's output shows it. */
function failureText(error: unknown): string {
  return `simulator failure: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}

/** Starts an HTTP server on the loopback interface that records each WebSocket session and lets the protocol run it. */
export async function startSocketSimulator(
  protocol: SocketProtocol,
  options: SocketSimulatorOptions = {},
): Promise<SocketSimulator> {
  const simulator = new SocketSimulatorServer(protocol, options.maximumMessageBytes)
  await simulator.listen((exchange) => protocol.serve?.(exchange) ?? notFound(exchange), options)
  return simulator
}

const notFound = (exchange: Exchange): Promise<void> =>
  exchange.send(404, { 'content-type': 'text/plain' }, 'Not found\n')

/** The sessions first; the server that carries them, and what else it is asked, beside them. */
class SocketSimulatorServer extends SocketReception implements SocketSimulator {
  #server!: Simulator

  async listen(serve: (exchange: Exchange) => Promise<void>, options: SocketSimulatorOptions): Promise<void> {
    this.#server = await startSimulator(serve, options, {
      // Counted and reset from this side.
      violations: [],
      reset: () => undefined,
      upgrade: (message: IncomingMessage, head: Buffer) => {
        this.upgrade(message, head)
      },
      breakOff: () => {
        this.breakOff()
      },
    })
  }

  get port(): number {
    return this.#server.port
  }

  get url(): string {
    return this.#server.url.replace(/^http/, 'ws')
  }

  get httpUrl(): string {
    return this.#server.url
  }

  get requests(): readonly RecordedRequest[] {
    return this.#server.requests
  }

  override get violations(): readonly string[] {
    return [...super.violations, ...this.#server.violations]
  }

  get openConnections(): number {
    return this.#server.openConnections
  }

  override reset(): void {
    super.reset()
    this.#server.reset()
  }

  close(): Promise<void> {
    return this.#server.close()
  }
}
