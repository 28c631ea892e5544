import { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher } from 'undici'
import { codeOf } from '../core/errors.js'
import { type Clock, processClock } from '../core/time.js'

/** Idle connections are kept this long where the upstream says nothing else. */
const DEFAULT_IDLE_MS = 4_000
/** On the way to the upstream a request needs a part of the time that the upstream announces. */
const ANNOUNCED_MARGIN_MS = 1_000

/** What is learned is less than what was seen, by a share that covers the way there; what was seen once may change. */
const LEARNED_SHARE = 0.75
const LEARNED_FOR_MS = 600_000
/** Below it, what closes connections is no idle limit: they would hardly be used again at all. */
const SHORTEST_LEARNED_MS = 50
/** Idle times that differ by less are taken for the same limit. */
const SAME_SHARE = 0.2

/** How long connections to one upstream may have been idle to be used again, as far as the upstream has shown it. */
class IdleLimit {
  private learnedMs = Infinity
  private learnedUntilMs = 0
  private lastClosedMs = Infinity

  constructor(readonly nowMs: Clock = processClock) {}

  get milliseconds(): number {
    if (this.learnedMs !== Infinity && this.nowMs() > this.learnedUntilMs) this.learnedMs = Infinity
    return this.learnedMs
  }

  /** The upstream has closed a connection in its idle time. One such end may be that of a restart; two alike are a rule. */
  closed(idleMs: number): void {
    const isAlike = Math.abs(idleMs - this.lastClosedMs) <= SAME_SHARE * idleMs
    this.lastClosedMs = idleMs
    if (isAlike) this.learn(idleMs)
  }

  /** The upstream did not answer on a connection that had been idle for so long. */
  learn(idleMs: number): void {
    this.learnedMs = Math.min(this.milliseconds, Math.max(SHORTEST_LEARNED_MS, idleMs * LEARNED_SHARE))
    this.learnedUntilMs = this.nowMs() + LEARNED_FOR_MS
  }
}

const CONTINUE = Buffer.from('HTTP/1.1 100')
/** Of the status, behind the version. */
const FIRST_DIGIT = 9
const ONE = 0x31
const END_OF_HEAD = '\r\n\r\n'
/** A longer head of an informational answer is left to undici, which refuses it. */
const MAXIMUM_CONTINUE_BYTES = 16_384

const CLOSED_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** The close of a connection that an upstream gives up meets a request within the way there and back. */
const LONGEST_RACE_MS = 5_000

/** The upstream has ended the connection; not a timeout, nor anything that the gateway did. */
const isClosing = (error: Error): boolean => CLOSED_CODES.has(codeOf(error))

/**
 * One connection at a time to one upstream. It leaves out `100 Continue`, which undici takes for a broken answer although any
 * server may send it (RFC 9110, section 15.2), and knows whether a request may have met a connection that was being closed.
 */
export class Connection {
  private socket: Socket | undefined
  /** An answer was received on the present socket, and the next may be. */
  private hasServed = false
  private isIdle = false
  private idleSinceMs = 0
  private begunAtMs = 0
  /** Of the present request, before it was sent. */
  private idleMs = 0
  private awaitsHead = false
  private hasReceived = false
  private begun: Buffer | undefined
  private announced = ''
  private announcedMs = DEFAULT_IDLE_MS

  constructor(private readonly limit: IdleLimit) {}

  /** The same connector, whose sockets are those of this connection. */
  connecting(connect: buildConnector.connector): buildConnector.connector {
    return (target, callback) => {
      connect(target, (...result) => {
        const [error, socket] = result
        if (error === null) this.use(socket)
        callback(...result)
      })
    }
  }

  /** A request is about to be sent: never on a connection that may be closed already. */
  begin(nowMs: number, isNewNeeded: boolean): void {
    this.begunAtMs = nowMs
    this.idleMs = nowMs - this.idleSinceMs
    const isStale = this.hasServed && this.idleMs >= Math.min(this.announcedMs, this.limit.milliseconds)
    this.isIdle = false
    // Undici opens another one once this one is closed.
    if (isStale || isNewNeeded) this.socket?.destroy()
    this.awaitsHead = true
    this.hasReceived = false
  }

  /** The head of the answer says how long the upstream keeps the connection. */
  announce(keepAlive: string | string[] | undefined): void {
    if (typeof keepAlive !== 'string' || keepAlive === this.announced) return
    this.announced = keepAlive
    const seconds = /(?:^|[\s,])timeout=(\d{1,6})/i.exec(keepAlive)?.[1]
    this.announcedMs = seconds === undefined ? DEFAULT_IDLE_MS : Number(seconds) * 1000 - ANNOUNCED_MARGIN_MS
  }

  /** The answer is complete. */
  end(nowMs: number): void {
    this.hasServed = true
    this.isIdle = true
    this.idleSinceMs = nowMs
  }

  /**
   * True when the request met a used connection that was being closed: no byte of an answer came, and the end was on its way
   * before the upstream can have worked on the request for long.
   */
  wasStale(error: Error): boolean {
    const isRace = this.hasServed && !this.hasReceived && isClosing(error)
    return isRace && this.limit.nowMs() - this.begunAtMs <= LONGEST_RACE_MS
  }

  /** Others that are idle for as long as this one was are taken for closed. */
  learnFromStale(): void {
    this.limit.learn(this.idleMs)
  }

  /** Undici tells why a connection ended; those that the gateway has ended itself are not idle any more, or have another code. */
  ended(error: Error): void {
    if (this.isIdle && isClosing(error)) this.limit.closed(this.limit.nowMs() - this.idleSinceMs)
    this.isIdle = false
    this.hasServed = false
    this.socket = undefined
  }

  private use(socket: Socket): void {
    this.socket = socket
    this.hasServed = false
    this.awaitsHead = true
    this.hasReceived = false
    this.begun = undefined
    this.announced = ''
    this.announcedMs = DEFAULT_IDLE_MS
    Object.assign(socket, { [CONNECTION]: this, read: readAnswer })
  }

  /** Called with every chunk: what undici gets of it. */
  received(chunk: Buffer): Buffer | null {
    return this.awaitsHead ? this.withoutContinue(chunk) : chunk
  }

  /** What has come of the final answer's head; null while there is none of it. */
  private withoutContinue(chunk: Buffer): Buffer | null {
    this.hasReceived = true
    // Nearly every answer: a search in native code costs more than all else here.
    if (this.begun === undefined && chunk.length > FIRST_DIGIT && chunk[FIRST_DIGIT] !== ONE) {
      this.awaitsHead = false
      return chunk
    }
    let bytes = this.begun === undefined ? chunk : Buffer.concat([this.begun, chunk])
    this.begun = undefined
    while (bytes.length > 0) {
      const compared = Math.min(bytes.length, CONTINUE.length)
      const end = bytes.indexOf(END_OF_HEAD)
      const mayContinue = bytes.compare(CONTINUE, 0, compared, 0, compared) === 0
      if (!mayContinue || (end === -1 && bytes.length > MAXIMUM_CONTINUE_BYTES)) {
        this.awaitsHead = false
        return bytes
      }
      if (end === -1) {
        this.begun = bytes
        return null
      }
      bytes = bytes.subarray(end + END_OF_HEAD.length)
    }
    return null
  }
}

const CONNECTION = Symbol('connection')

/** One function for all sockets, in place of their own `read`: V8 inlines it where undici reads. */
function readAnswer(this: Socket & { readonly [CONNECTION]: Connection }, size?: number): Buffer | null {
  const chunk = Socket.prototype.read.call(this, size) as Buffer | null
  return chunk === null ? null : this[CONNECTION].received(chunk)
}

/** What an exchange adds to undici's options of a request. */
export interface ExchangeOptions extends Dispatcher.DispatchOptions {
  /** Told which connection the request is sent on. */
  readonly exchange: { readonly startedAtMs: number; connection: Connection | undefined }
  /** Set when a connection that was used before has failed: another one of them may fail as well. */
  readonly isNewNeeded: boolean
}

/** undici's client of one connection, which tells exchanges about it. */
export class ConnectionClient extends Client {
  /** No request is on it, and the pool may give it one. */
  isFree = false
  private readonly connection: Connection

  constructor(
    origin: string | URL,
    options: Client.Options,
    private readonly limit = new IdleLimit(),
  ) {
    const connection = new Connection(limit)
    const { connect, ...others } = options
    const connector = typeof connect === 'function' ? connect : buildConnector(connect ?? {})
    super(origin, { ...others, keepAliveTimeout: DEFAULT_IDLE_MS, connect: connection.connecting(connector) })
    this.connection = connection
    this.on('disconnect', (_origin, _clients, error) => {
      connection.ended(error)
    })
  }

  override dispatch(options: ExchangeOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { exchange, isNewNeeded } = options
    this.connection.begin(isNewNeeded ? this.limit.nowMs() : exchange.startedAtMs, isNewNeeded)
    exchange.connection = this.connection
    return super.dispatch(options, handler)
  }
}

/**
 * Connections to one upstream. Without pipelining: a request must never wait behind another caller's response.
 * Not undici's own pool, which goes through all connections that have an open stream for each request to find a free one.
 */
export class ConnectionPool {
  private readonly clients = new Set<ConnectionClient>()
  /** The one used last comes first: the others may end by themselves. */
  private readonly free: ConnectionClient[] = []
  private readonly limit: IdleLimit
  private readonly connect: buildConnector.connector
  private isClosed = false

  constructor(
    private readonly origin: string,
    connectMs: number,
    nowMs: Clock,
  ) {
    this.limit = new IdleLimit(nowMs)
    this.connect = buildConnector({ timeout: connectMs })
  }

  dispatch(options: ExchangeOptions, handler: Dispatcher.DispatchHandler): void {
    const client = this.takeFree() ?? this.newClient()
    client.isFree = false
    if (client.dispatch(options, handler)) this.release(client)
    // What is sent again although its channel is gone: its connection is for this request alone.
    if (this.isClosed) client.close().catch(() => undefined)
  }

  /** Resolves when the answers under way are over. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.clients].map((client) => client.close()))
  }

  /** Answers under way fail. */
  async destroy(): Promise<void> {
    this.isClosed = true
    await Promise.all([...this.clients].map((client) => client.destroy()))
  }

  private takeFree(): ConnectionClient | undefined {
    let client = this.free.pop()
    // Its caller left while it was being connected, which has failed since.
    while (client !== undefined && !this.clients.has(client)) client = this.free.pop()
    return client
  }

  private newClient(): ConnectionClient {
    const client = new ConnectionClient(this.origin, { connect: this.connect, pipelining: 1 }, this.limit)
    this.clients.add(client)
    client.on('drain', () => {
      this.release(client)
    })
    // Undici tells each of its requests.
    client.on('connectionError', () => {
      this.clients.delete(client)
    })
    return client
  }

  private release(client: ConnectionClient): void {
    if (client.isFree || this.isClosed || !this.clients.has(client)) return
    client.isFree = true
    this.free.push(client)
  }
}
