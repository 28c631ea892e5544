import type { Socket } from 'node:net'
import { errors } from 'undici'
import { deferWrites } from '../core/deferred-writes.js'
import { codeOf } from '../core/errors.js'
import { type Clock, processClock } from '../core/time.js'
import { HttpParser, type ResponseHeaders } from './http-parser.js'
import { isInPieces, type OutgoingRequest, sendStream } from './http-request.js'

/** Idle connections are kept this long where the upstream says nothing else. */
const DEFAULT_IDLE_MS = 4_000
/** On the way to the upstream a request needs a part of the time that the upstream announces. */
const ANNOUNCED_MARGIN_MS = 1_000
/** The close of a connection that an upstream gives up meets a request within the way there and back. */
const LONGEST_RACE_MS = 5_000

/** What is learned is less than what was seen, by a share that covers the way there; what was seen once may change. */
const LEARNED_SHARE = 0.75
const LEARNED_FOR_MS = 600_000
/** Below it, what closes connections is no idle limit: they would hardly be used again at all. */
const SHORTEST_LEARNED_MS = 50
/** Idle times that differ by less are taken for the same limit. */
const SAME_SHARE = 0.2

/** How long connections to one upstream may have been idle to be used again, as far as the upstream has shown it. */
export class IdleLimit {
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

const CLOSED_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/** The upstream has ended the connection; not a timeout, nor anything that the gateway did. */
const isClosing = (error: Error): boolean => CLOSED_CODES.has(codeOf(error))

/** Told what becomes of one request; after `onResponseEnd` or `onResponseError` nothing. */
export interface ResponseReader {
  /** When the exchange began, on the clock of the connection's limit. */
  readonly startedAtMs: number
  /** A new connection is being made for the request; its failure comes as `onResponseError`. */
  onConnecting(connection: Connection): void
  /** The request is about to be sent. */
  onRequestStart(connection: Connection): void
  onResponseStart(status: number, headers: ResponseHeaders): void
  onResponseData(piece: Buffer): void
  onResponseEnd(): void
  /**
   * `wasStale`: the request met a used connection that was being closed: no byte of a response came, and the end was on its way
   * before the upstream can have worked on the request for long.
   */
  onResponseError(error: Error, wasStale: boolean): void
}

/** The pool that a connection belongs to. */
interface ConnectionOwner {
  readonly limit: IdleLimit
  /** Without a request, and open. False when the owner has no use for it. */
  keep(connection: Connection): boolean
  forget(connection: Connection): void
}

/** One connection to one upstream, with at most one request at a time: none waits behind another caller's response. */
export class Connection {
  private readonly parser = new HttpParser(this)
  private reader: ResponseReader | undefined
  private request: OutgoingRequest | undefined
  private isOver = false
  private isPaused = false
  private hasServed = false
  private hasReceived = false
  /** A body that is read while it is sent is not sent in full yet. */
  private isSending = false
  /** Between the head of a response and its end. */
  private isInBody = false
  private receivedBytes = 0
  /** On the clock of the limit. */
  private begunAtMs = 0
  private idleSinceMs = 0
  private idleMs = 0
  private announced = ''
  private announcedMs = DEFAULT_IDLE_MS
  /** On the performance clock: since when something is waited for, for how long, and when the timer looks. */
  private waitingSinceMs = 0
  private waitMs = Infinity
  private timer: NodeJS.Timeout | undefined
  private timerAtMs = Infinity

  constructor(
    private readonly socket: Socket,
    private readonly owner: ConnectionOwner,
  ) {
    deferWrites(socket)
    socket.on('data', (chunk: Buffer) => {
      this.receive(chunk)
    })
    socket.on('end', () => {
      this.read(() => {
        if (this.reader === undefined || !this.parser.finish()) this.end(new errors.SocketError('other side closed'))
      })
    })
    socket.on('error', (error) => {
      this.end(error)
    })
    socket.on('close', () => {
      this.end(new errors.SocketError('closed'))
    })
  }

  /** Whether a request that begins now may use it: never one that may be closed already. */
  isUsable(nowMs: number): boolean {
    return nowMs - this.idleSinceMs < Math.min(this.announcedMs, this.owner.limit.milliseconds)
  }

  /** Whose request the connection is being made for: the reader gets its failure. */
  expect(reader: ResponseReader): void {
    this.reader = reader
    reader.onConnecting(this)
  }

  send(request: OutgoingRequest, reader: ResponseReader, beginsAtMs: number): void {
    this.begunAtMs = beginsAtMs
    this.idleMs = beginsAtMs - this.idleSinceMs
    this.hasReceived = false
    this.isInBody = false
    this.receivedBytes = 0
    this.reader = reader
    this.request = request
    this.parser.begin()
    reader.onRequestStart(this)
    this.wait(request.firstByteMs)
    this.write(request)
  }

  pause(): void {
    this.isPaused = true
    this.socket.pause()
  }

  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    this.waitingSinceMs = performance.now()
    this.socket.resume()
  }

  /** Ends the connection; the reader of a request that is on it gets the error. */
  end(error: Error): void {
    if (this.isOver) return
    this.isOver = true
    clearTimeout(this.timer)
    // With an error: that ends the connector's own timer as well.
    this.socket.destroy(error)
    try {
      this.fail(error)
    } finally {
      // Last: the reader may send its request once more.
      this.owner.forget(this)
    }
  }

  private fail(error: Error): void {
    const { limit } = this.owner
    const { reader } = this
    this.release()
    if (reader === undefined) {
      if (this.hasServed && isClosing(error)) limit.closed(limit.nowMs() - this.idleSinceMs)
      return
    }
    const isRace = this.hasServed && !this.hasReceived && isClosing(error)
    const wasStale = isRace && limit.nowMs() - this.begunAtMs <= LONGEST_RACE_MS
    // Others that are idle for as long as this one was are taken for closed.
    if (wasStale) limit.learn(this.idleMs)
    reader.onResponseError(error, wasStale)
  }

  /** The parser's: a head. Informational ones change nothing about what is waited for. */
  onHead(status: number, headers: ResponseHeaders): void {
    if (status < 200) return
    this.announce(headers['keep-alive'])
    this.isInBody = true
    this.waitMs = this.request?.idleMs ?? Infinity
    this.reader?.onResponseStart(status, headers)
  }

  /** The parser's: a piece of the body. */
  onBody(piece: Buffer): void {
    this.receivedBytes += piece.length
    if (this.receivedBytes > (this.request?.maximumBytes ?? Infinity)) throw new errors.ResponseExceededMaxSizeError()
    this.reader?.onResponseData(piece)
  }

  /** The parser's: the end of the response. A request that was not sent in full spoils its connection. */
  onComplete(mayKeepAlive: boolean): void {
    const { reader } = this
    const isSent = this.socket.writableLength === 0 && !this.isSending
    this.release()
    this.isInBody = false
    this.hasServed = true
    this.idleSinceMs = this.owner.limit.nowMs()
    this.resume()
    reader?.onResponseEnd()
    if (mayKeepAlive && isSent) setImmediate(this.rest)
    else this.end(new errors.InformationalError('not kept'))
  }

  /** A turn of the event loop after a response: an upstream that closes its connections unannounced has done so by then. */
  private readonly rest = (): void => {
    if (!this.isOver && !this.owner.keep(this)) this.end(new errors.InformationalError('not kept'))
  }

  /** Nothing is sent or read for the present request any more. */
  private release(): void {
    this.reader = undefined
    this.request = undefined
    this.isSending = false
  }

  private receive(chunk: Buffer): void {
    if (this.reader === undefined) {
      this.end(new errors.InformationalError('a response came unasked'))
      return
    }
    this.hasReceived = true
    this.read(() => {
      this.parser.execute(chunk)
    })
    if (!this.isInBody) return
    this.waitingSinceMs = performance.now()
    this.watch()
  }

  /** A response that is none, or whose reader fails, ends the connection. */
  private read(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.end(error as Error)
    }
  }

  private write(request: OutgoingRequest): void {
    const { head, body } = request
    const { socket } = this
    socket.cork()
    socket.write(head, 'latin1')
    if (isInPieces(body)) for (const piece of body) if (piece.length > 0) socket.write(piece)
    socket.uncork()
    if (!isInPieces(body)) void this.writeStream(request, body)
  }

  /** Until all is sent, the response is not late. */
  private async writeStream(request: OutgoingRequest, body: AsyncIterable<Buffer>): Promise<void> {
    const isWanted = (): boolean => {
      this.waitingSinceMs = performance.now()
      return this.request === request
    }
    this.isSending = true
    try {
      await sendStream(this.socket, body, request.streamBytes, isWanted)
      if (isWanted()) this.isSending = false
    } catch (error) {
      if (isWanted()) this.end(error as Error)
    }
  }

  /** The head of a response says how long the upstream keeps the connection. */
  private announce(keepAlive: string | string[] | undefined): void {
    if (typeof keepAlive !== 'string' || keepAlive === this.announced) return
    this.announced = keepAlive
    const seconds = /(?:^|[\s,])timeout=(\d{1,6})/i.exec(keepAlive)?.[1]
    this.announcedMs = seconds === undefined ? DEFAULT_IDLE_MS : Number(seconds) * 1000 - ANNOUNCED_MARGIN_MS
  }

  private wait(waitMs: number): void {
    this.waitingSinceMs = performance.now()
    this.waitMs = waitMs
    this.watch()
  }

  /** One timer outlives the requests: it looks at its time how long the present one has waited, and sets itself anew. */
  private watch(): void {
    const dueAtMs = this.waitingSinceMs + this.waitMs
    if (this.timer !== undefined && this.timerAtMs <= dueAtMs) return
    clearTimeout(this.timer)
    this.timerAtMs = dueAtMs
    this.timer = setTimeout(this.look, dueAtMs - performance.now())
    this.timer.unref()
  }

  private readonly look = (): void => {
    this.timer = undefined
    if (this.reader === undefined) return
    // Nothing can come that its reader does not want yet.
    if (this.isPaused) this.waitingSinceMs = performance.now()
    if (performance.now() - this.waitingSinceMs < this.waitMs - 1) {
      this.watch()
      return
    }
    this.end(this.isInBody ? new errors.BodyTimeoutError() : new errors.HeadersTimeoutError())
  }
}
