import { Socket } from 'node:net'
import type { RealtimeUpstream } from '../providers/contract.js'

export type SessionSocket = RealtimeUpstream['socket']

const AS_TEXT = { binary: false, compress: false }

/**
 * One of the two sockets of a session, with back-pressure. A side that receives slower than the other sends pauses the sender,
 * so that at most the pause mark and one more message wait in memory; the sender resumes once the data is written.
 */
export class SocketSide {
  /** Sides paused until this one has drained; this one included when it was written to in reply to itself. */
  private readonly heldBack = new Set<SocketSide>()
  /** Why this side is paused: slow sides, and other waiters. */
  private readonly heldBy = new Set<object>()
  /** Grows with each waiting message that was written. */
  private takenCount = 0
  private wasHeldBack = false

  constructor(
    readonly socket: SessionSocket,
    private readonly pauseBytes: number,
  ) {}

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN
  }

  /** Its connection is closed. */
  get isClosed(): boolean {
    return this.socket.readyState === this.socket.CLOSED
  }

  /** Bytes in this process that are not written yet. */
  get waitingBytes(): number {
    return this.socket.bufferedAmount
  }

  get taken(): number {
    return this.takenCount
  }

  /**
   * All bytes received, incomplete messages included. The library reports a long message on a slow connection only at its end.
   */
  get bytesRead(): number {
    return this.connection?.bytesRead ?? 0
  }

  /**
   * Bytes of the current write that the system has not taken yet. Unlike `waitingBytes` it shrinks while a long message
   * is sent over a slow connection.
   */
  get unsentBytes(): number {
    const handle: unknown = this.connection === undefined ? undefined : Reflect.get(this.connection, '_handle')
    const bytes: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'writeQueueSize') : 0
    return typeof bytes === 'number' ? bytes : 0
  }

  /** Sends one text message in reply to one of `from`. Returns its length, 0 when the side has closed. */
  send(frame: Buffer, from: SocketSide): number {
    if (!this.isOpen) return 0
    if (this.heldBack.size === 0 && this.waitingBytes + frame.length <= this.pauseBytes) {
      this.socket.send(frame, AS_TEXT)
      return frame.length
    }
    this.heldBack.add(from)
    from.hold(this)
    // The last waiting message always has this callback, so that paused senders are always resumed.
    this.socket.send(frame, AS_TEXT, this.onTaken)
    return frame.length
  }

  /** Whether the side was paused since the last call: its pongs may be unread. */
  takeWasHeld(): boolean {
    const was = this.wasHeldBack
    this.wasHeldBack = this.heldBy.size > 0
    return was
  }

  /** Pauses reading until `release`. Messages that the library has already read still come. */
  hold(by: object): void {
    this.heldBy.add(by)
    this.wasHeldBack = true
    this.socket.pause()
  }

  release(by: object): void {
    if (this.heldBy.delete(by) && this.heldBy.size === 0) this.socket.resume()
  }

  /** Resumes in any case: after the end of a session messages are dropped, but the close frame must be seen. */
  readOn(): void {
    this.heldBy.clear()
    this.socket.resume()
  }

  private get connection(): Socket | undefined {
    const connection: unknown = Reflect.get(this.socket, '_socket')
    return connection instanceof Socket ? connection : undefined
  }

  private readonly onTaken = (): void => {
    this.takenCount++
    if (this.isOpen && this.waitingBytes > this.pauseBytes / 2) return
    for (const side of this.heldBack) side.release(this)
    this.heldBack.clear()
  }
}

/** Token bucket that holds the tokens of one second. */
export class RateLimit {
  private tokens: number
  private filledAtMs = performance.now()

  constructor(protected readonly perSecond: number) {
    this.tokens = perSecond
  }

  /** Takes one token; false when the rate is exceeded. */
  take(): boolean {
    const nowMs = performance.now()
    this.tokens = Math.min(this.perSecond, this.tokens + ((nowMs - this.filledAtMs) * this.perSecond) / 1000)
    this.filledAtMs = nowMs
    if (this.tokens < 1) return false
    this.tokens--
    return true
  }

  /** Until it holds so many. */
  protected msUntil(tokens: number): number {
    return Math.max(0, ((tokens - this.tokens) / this.perSecond) * 1000)
  }
}

/** Events that are read in one go once a client is slowed down, as a part of a second's. */
const READS_PER_SECOND = 20

/** A client that was not slowed down for so long keeps to its rate again. */
const RECOVERED_MS = 1_000

/** The rate of a client's events, and for how long it has wanted to send more. */
export class EventPace extends RateLimit {
  private exceedsSinceMs = 0
  private exceededAtMs = -Infinity

  constructor(
    rate: number,
    private readonly longestMs: number,
  ) {
    super(rate)
  }

  /** Called when `take` is false: how long to read nothing; undefined when the client has been too fast for too long. */
  waitMs(): number | undefined {
    const nowMs = performance.now()
    if (nowMs - this.exceededAtMs > RECOVERED_MS) this.exceedsSinceMs = nowMs
    const waitMs = this.msUntil(Math.ceil(this.perSecond / READS_PER_SECOND))
    this.exceededAtMs = nowMs + waitMs
    return nowMs - this.exceedsSinceMs > this.longestMs ? undefined : waitMs
  }
}

interface Message {
  readonly data: Buffer
  readonly isBinary: boolean
}

interface MessageHandler {
  /** Returns a promise when the next message must wait for this one; mostly nothing. */
  readonly handle: (data: Buffer, isBinary: boolean) => Promise<void> | undefined
  readonly onFailure: (error: unknown) => void
  /** The client has been faster than its pace for too long. */
  readonly onTooFast: () => void
}

/**
 * Handles the messages of a client in order and at its pace, and none while one of them is pending. The client's socket is
 * paused meanwhile, so that the queue holds no more than what was read before: a client that sends a burst waits.
 */
export class MessageQueue {
  private readonly waiting: Message[] = []
  private isWaiting = false
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly client: SocketSide,
    private readonly pace: EventPace,
    private readonly handler: MessageHandler,
  ) {}

  take(data: Buffer, isBinary: boolean): void {
    if (this.isWaiting) this.waiting.push({ data, isBinary })
    else this.pass({ data, isBinary })
  }

  /** Drops the waiting messages: the session is over. */
  stop(): void {
    clearTimeout(this.timer)
    this.waiting.length = 0
  }

  private pass(message: Message): void {
    if (!this.pace.take()) {
      this.waiting.unshift(message)
      this.slowDown()
      return
    }
    try {
      const pending = this.handler.handle(message.data, message.isBinary)
      if (pending !== undefined) this.wait(pending)
    } catch (error) {
      this.handler.onFailure(error)
    }
  }

  private slowDown(): void {
    const waitMs = this.pace.waitMs()
    if (waitMs === undefined) {
      this.handler.onTooFast()
      return
    }
    this.hold()
    this.timer = setTimeout(this.resume, waitMs)
  }

  private wait(pending: Promise<void>): void {
    this.hold()
    pending.then(this.resume, this.handler.onFailure)
  }

  private hold(): void {
    this.isWaiting = true
    this.client.hold(this)
  }

  private readonly resume = (): void => {
    this.isWaiting = false
    this.passWaiting()
  }

  private passWaiting(): void {
    while (!this.isWaiting) {
      const next = this.waiting.shift()
      if (next === undefined) {
        this.client.release(this)
        return
      }
      this.pass(next)
    }
  }
}
