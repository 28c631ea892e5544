import type { SocketSide } from './socket.js'

/** Token bucket that holds the tokens of one second. */
export class RateLimit {
  private tokens: number
  private filledAtMs = performance.now()

  constructor(private readonly perSecond: number) {
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
}

interface Message {
  readonly data: Buffer
  readonly isBinary: boolean
}

/**
 * Handles the messages of a client in order while one of them is pending. The client's socket is paused meanwhile, so
 * that the queue holds no more than what was read before.
 */
export class MessageQueue {
  private readonly waiting: Message[] = []
  private isWaiting = false

  constructor(
    private readonly client: SocketSide,
    /** Returns a promise when the next message must wait for this one; mostly nothing. */
    private readonly handle: (data: Buffer, isBinary: boolean) => Promise<void> | undefined,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  take(data: Buffer, isBinary: boolean): void {
    if (this.isWaiting) this.waiting.push({ data, isBinary })
    else this.pass(data, isBinary)
  }

  /** Drops the waiting messages: the session is over. */
  stop(): void {
    this.waiting.length = 0
  }

  private pass(data: Buffer, isBinary: boolean): void {
    try {
      const pending = this.handle(data, isBinary)
      if (pending !== undefined) this.wait(pending)
    } catch (error) {
      this.onFailure(error)
    }
  }

  private wait(pending: Promise<void>): void {
    this.isWaiting = true
    this.client.hold(this)
    pending.then(this.resume, this.onFailure)
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
      this.pass(next.data, next.isBinary)
    }
  }
}
