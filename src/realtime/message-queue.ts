import type { SocketSide } from './socket.js'

/** A bucket that holds as much as one second brings. */
export class RateLimit {
  private tokens: number
  private filledAtMs = performance.now()

  constructor(private readonly perSecond: number) {
    this.tokens = perSecond
  }

  /** False when more came than the rate allows. */
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
 * Keeps the messages of a client in order while one of them is waited for. The client is not read meanwhile, so that no
 * more is kept here than its connection had read already.
 */
export class MessageQueue {
  private readonly waiting: Message[] = []
  private isWaiting = false

  constructor(
    private readonly client: SocketSide,
    /** Returns what the next message has to wait for, mostly nothing. */
    private readonly handle: (data: Buffer, isBinary: boolean) => Promise<void> | undefined,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  take(data: Buffer, isBinary: boolean): void {
    if (this.isWaiting) this.waiting.push({ data, isBinary })
    else this.pass(data, isBinary)
  }

  /** Nobody hears the rest any more. */
  stop(): void {
    this.waiting.length = 0
  }

  private pass(data: Buffer, isBinary: boolean): void {
    try {
      const work = this.handle(data, isBinary)
      if (work !== undefined) this.wait(work)
    } catch (error) {
      this.onFailure(error)
    }
  }

  private wait(work: Promise<void>): void {
    this.isWaiting = true
    this.client.hold(this)
    work.then(this.goOn, this.onFailure)
  }

  private readonly goOn = (): void => {
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
