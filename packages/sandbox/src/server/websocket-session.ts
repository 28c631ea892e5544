import { EventEmitter } from 'node:events'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { JsonObject } from './json-value.js'
import type { RecordedRequest } from './recorded-request.js'

/** What happens to the messages of a session, for those who wait for it. */
class SocketFlow {
  readonly #events = new EventEmitter<{ blocked: []; flowing: []; message: []; over: [] }>()

  constructor() {
    this.#events.setMaxListeners(0)
  }

  /** A message waits because the client does not read. */
  blocked(): void {
    this.#events.emit('blocked')
  }

  /** The network has taken the message that waited, or the client is gone. */
  flowing(): void {
    this.#events.emit('flowing')
  }

  /** The client has said something. */
  received(): void {
    this.#events.emit('message')
  }

  /** The session has ended: ends every wait. */
  over(): void {
    this.#events.emit('message')
    this.#events.emit('over')
  }

  /** Resolves when the client says something or the session ends. */
  nextMessage(): Promise<void> {
    return new Promise((resolve) => {
      this.#events.once('message', resolve)
    })
  }

  /**
   * Resolves with true when the client has taken nothing for `quietMs` although a message waits, or with false when
   * the session ends before.
   */
  nextStall(quietMs: number, isBlocked: boolean): Promise<boolean> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined
      const stop = (): void => {
        clearTimeout(timer)
      }
      const settle = (stalled: boolean): void => {
        stop()
        this.#events.off('blocked', wait).off('flowing', stop).off('over', leave)
        resolve(stalled)
      }
      const leave = (): void => {
        settle(false)
      }
      const wait = (): void => {
        timer = setTimeout(settle, quietMs, true)
      }
      this.#events.on('blocked', wait).on('flowing', stop).on('over', leave)
      if (isBlocked) wait()
    })
  }
}

/** Bytes of a client's messages kept for the tests; later ones are counted, not kept. */
const RECORDED_MESSAGE_BYTES = 1024 * 1024
/** What a WebSocket reports when the connection ended without a close frame (RFC 6455 section 7.1.5). */
const NO_CLOSE_FRAME = 1006

export interface SocketMessage {
  readonly data: Buffer
  readonly isBinary: boolean
}

export interface SessionEnd {
  /**
   * - `finished`: closed by either side when the simulator owed the client nothing
   * - `aborted`: the client closed, or went away, while something was owed
   * - `broken`: the simulator destroyed the connection, or closed it while something was owed
   * - `refused`: the handshake was answered with a plain HTTP status
   */
  readonly outcome: 'finished' | 'aborted' | 'broken' | 'refused'
  readonly by: 'client' | 'simulator'
  /** The close code received, 1005 for a close frame without one, 1006 for a connection that just ended. */
  readonly code: number
  readonly reason: string
}

/**
 * One handshake and, when it was admitted, the conversation that followed. Times are `performance.now()` values of this
 * process, in milliseconds.
 */
export class SocketSession {
  /** Messages received, in order, up to a mebibyte. */
  readonly messages: SocketMessage[] = []
  /** The client's messages as JSON, put here by the protocol that understood them. */
  readonly decoded: JsonObject[] = []
  receivedMessages = 0
  receivedBytes = 0
  /** Messages and payload bytes the network has taken; what waits for a slow reader is not counted. */
  sentMessages = 0
  sentBytes = 0
  openedAtMs: number | undefined
  closedAtMs: number | undefined
  /** Headers of the handshake's answer, beyond those of every WebSocket. */
  answerHeaders: Readonly<Record<string, string>> = {}
  refusedStatus: number | undefined
  /** Set by the protocol while it owes nothing, so that a client that leaves aborts nothing. */
  clientMayLeave = false
  end: SessionEnd | undefined
  /** Resolves when the connection is gone; never rejects. */
  readonly closed: Promise<SessionEnd>

  readonly #flow = new SocketFlow()
  readonly #over = new AbortController()
  readonly #unread: SocketMessage[] = []
  #socket: WebSocket | undefined
  #left: 'closing' | 'broken' | undefined
  #resolveClosed!: (end: SessionEnd) => void

  constructor(
    readonly handshake: RecordedRequest,
    /** Magic words queued for this session, in the protocol's own language; empty when none were. */
    readonly faultWords: string,
  ) {
    this.closed = new Promise((resolve) => (this.#resolveClosed = resolve))
  }

  /** What a client must not have done; a test asserts that it is empty. */
  get violations(): string[] {
    return this.handshake.violations
  }

  /** True while a message waits because the client does not read. */
  get blocked(): boolean {
    return (this.#socket?.bufferedAmount ?? 0) > 0
  }

  /** The next message not read yet; undefined when the client said nothing more before the end. */
  async nextMessage(): Promise<SocketMessage | undefined> {
    while (this.#unread.length === 0 && this.end === undefined) {
      await this.#flow.nextMessage()
    }
    return this.#unread.shift()
  }

  /** Sends one message (text for a string) and waits until the network has taken it. False when the client is gone. */
  async send(message: Buffer | string): Promise<boolean> {
    const socket = this.#socket
    if (socket?.readyState !== WebSocket.OPEN) return false
    const taken = new Promise<boolean>((resolve) => {
      socket.send(message, (error) => {
        resolve(!error)
      })
    })
    if (this.blocked) this.#flow.blocked()
    const wasTaken = await taken
    this.#flow.flowing()
    if (wasTaken) {
      this.sentMessages += 1
      this.sentBytes += Buffer.byteLength(message)
    }
    // A full turn of the event loop lets a disconnect be seen before the next message is made.
    await nextTurn()
    return this.#isOpen()
  }

  /**
   * Resolves with true when the client has taken nothing for `quietMs` although a message waits: a slow reader was
   * noticed and the sender paused. Resolves with false when the session ends before.
   */
  nextStall(quietMs = 250): Promise<boolean> {
    return this.end === undefined ? this.#flow.nextStall(quietMs, this.blocked) : Promise.resolve(false)
  }

  /** Resolves with true after `ms`, or with false as soon as the session is over. */
  async waitOpen(ms: number): Promise<boolean> {
    if (this.end !== undefined) return false
    try {
      await pause(ms, undefined, { signal: this.#over.signal })
      return this.#isOpen()
    } catch {
      return false
    }
  }

  /** Starts the closing handshake; without a code the close frame has none. */
  close(code?: number, reason = ''): void {
    this.#left ??= 'closing'
    this.#socket?.close(code, reason)
  }

  /** Reads nothing for `ms`, not even that the client leaves: what it sends piles up in the network. */
  async stopReading(ms: number): Promise<void> {
    this.#socket?.pause()
    await pause(ms, undefined, { ref: false })
    this.#socket?.resume()
  }

  /** Destroys the connection without a close frame. */
  breakOff(): void {
    this.#left = 'broken'
    this.#socket?.terminate()
  }

  /** Used by the server alone: the handshake was admitted. */
  open(socket: WebSocket): void {
    this.#socket = socket
    this.openedAtMs = performance.now()
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      this.#receive({ data, isBinary })
    })
    socket.on('error', (error) => {
      this.violations.push(`broken WebSocket message: ${error.message}`)
    })
    socket.on('close', (code, reason) => {
      this.settle(code, reason.toString('utf8'))
    })
  }

  /** Used by the server alone: the connection is gone. Only the first call counts. */
  settle(code = NO_CLOSE_FRAME, reason = ''): void {
    if (this.end !== undefined) return
    const outcome = this.#outcome()
    this.closedAtMs = performance.now()
    this.end = {
      outcome,
      by: this.#left === undefined && this.refusedStatus === undefined ? 'client' : 'simulator',
      code,
      reason,
    }
    this.handshake.markClosed(outcome === 'refused' ? 'finished' : outcome)
    this.#over.abort()
    this.#flow.over()
    this.#resolveClosed(this.end)
  }

  /** Used by the server alone: the bytes this record holds in memory. */
  get heldBytes(): number {
    return this.messages.reduce((sum, message) => sum + message.data.length, 0)
  }

  /** Used by the server alone: gives the memory of an old session back. */
  forgetMessages(): void {
    this.messages.length = 0
    this.decoded.length = 0
  }

  #isOpen(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN
  }

  #outcome(): SessionEnd['outcome'] {
    if (this.refusedStatus !== undefined) return 'refused'
    if (this.#left === 'broken') return 'broken'
    if (this.clientMayLeave) return 'finished'
    return this.#left === 'closing' ? 'broken' : 'aborted'
  }

  #receive(message: SocketMessage): void {
    this.receivedMessages += 1
    this.receivedBytes += message.data.length
    if (this.receivedBytes <= RECORDED_MESSAGE_BYTES) this.messages.push(message)
    this.#unread.push(message)
    this.#flow.received()
  }
}
