import { Redis } from 'ioredis'
import type { Logger } from '../observability/logger.js'

/** A deadline comes in so many parts, of which a stall of this process costs one. */
const TIMER_SLICES = 4
const CLEARED = -1

/**
 * Deadline of a command. After a stall of this process its timers fire before the answers that have arrived
 * meanwhile: a plain timer would report a Redis that has answered long ago as silent.
 */
export class Deadline {
  private timer: NodeJS.Timeout
  private slicesLeft = TIMER_SLICES

  constructor(
    private readonly milliseconds: number,
    private readonly onTimeout: () => void,
  ) {
    this.timer = this.startSlice()
  }

  clear(): void {
    this.slicesLeft = CLEARED
    clearTimeout(this.timer)
  }

  private startSlice(): NodeJS.Timeout {
    return setTimeout(this.onSlice, this.milliseconds / TIMER_SLICES)
  }

  private readonly onSlice = (): void => {
    this.slicesLeft--
    if (this.slicesLeft > 0) this.timer = this.startSlice()
    else setImmediate(this.onLastSlice)
  }

  /** What has arrived is looked at first. */
  private readonly onLastSlice = (): void => {
    if (this.slicesLeft === 0) this.onTimeout()
  }
}

/** Of every name this gateway uses there. */
export const REDIS_PREFIX = 'gateway:limits'

const PROBE_KEY = `${REDIS_PREFIX}:probe`
const PROBE_INTERVAL_MS = 1000
const MAXIMUM_RECONNECT_MS = 1000

/** Longer than a request waits: a connection without an answer for so long is given up and made anew. */
const SILENT_TIMEOUTS = 4

/**
 * The connection to Redis, and whether it can be relied on. No call waits for it: a late answer counts as none. While Redis
 * is away it only gets a probe, which writes, as a replica or a full memory would answer a ping, and what has to be undone.
 */
export class RedisConnection {
  readonly client: Redis
  private state: 'opening' | 'here' | 'away' | 'closed' = 'opening'
  private probe: NodeJS.Timeout | undefined
  private readonly listeners: (() => void)[] = []

  constructor(
    url: string,
    private readonly timeoutMs: number,
    private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {
    const silenceMs = Math.max(PROBE_INTERVAL_MS, SILENT_TIMEOUTS * timeoutMs)
    this.client = new Redis(url, {
      lazyConnect: true,
      connectTimeout: silenceMs,
      socketTimeout: silenceMs,
      commandTimeout: silenceMs,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      disconnectTimeout: timeoutMs,
      disableClientInfo: true,
      retryStrategy: (times) => Math.min(100 * times, MAXIMUM_RECONNECT_MS),
    })
    this.client.on('ready', () => void this.checkConnection())
    this.client.on('close', () => {
      this.markUnavailable(new Error('The connection was closed.'))
    })
    // Each failed attempt to connect; the first of them is reported by `lost`.
    this.client.on('error', () => undefined)
  }

  get isUnavailable(): boolean {
    return this.state !== 'here'
  }

  /** Connects. Resolves once Redis answers, or when it is clear that it does not for now; never rejects. */
  async open(): Promise<void> {
    try {
      await this.client.connect()
      await this.checkConnection()
    } catch (error) {
      this.markUnavailable(error)
    }
  }

  /** Calls back each time Redis can be relied on again. */
  onReconnect(listener: () => void): void {
    this.listeners.push(listener)
  }

  /**
   * What a command answers, or undefined when Redis is away, fails or takes too long. `late` gets an answer that
   * came after that, to undo what was given up.
   */
  execute<Reply>(command: () => Promise<Reply>, onLateReply?: (reply: Reply) => void): Promise<Reply | undefined> {
    if (this.isUnavailable) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      let isWaiting = true
      const giveUp = (error: unknown): void => {
        if (!isWaiting) return
        isWaiting = false
        deadline.clear()
        this.markUnavailable(error)
        resolve(undefined)
      }
      const deadline = new Deadline(this.timeoutMs, () => {
        giveUp(new Error('Redis did not answer in time.'))
      })
      command().then((answer) => {
        if (!isWaiting) {
          onLateReply?.(answer)
          return
        }
        isWaiting = false
        deadline.clear()
        resolve(answer)
      }, giveUp)
    })
  }

  /**
   * Sends what is to be undone, while Redis counts as away as well: an answer that was late has come by a connection that
   * works. No caller waits for it, and what cannot be sent is not sent later.
   */
  sendUndo(command: () => Promise<unknown>): void {
    if (this.client.status === 'ready') command().catch(() => undefined)
  }

  /** Lets commands under way finish, for a moment. Never rejects. */
  async close(): Promise<void> {
    const isReady = !this.isUnavailable
    this.state = 'closed'
    clearTimeout(this.probe)
    try {
      if (isReady) await this.client.quit()
      else this.client.disconnect()
    } catch {
      this.client.disconnect()
    }
  }

  private async checkConnection(): Promise<void> {
    try {
      await this.client.set(PROBE_KEY, '1', 'PX', PROBE_INTERVAL_MS)
      this.markReady()
    } catch (error) {
      this.markUnavailable(error)
    }
  }

  private markReady(): void {
    if (this.state === 'here' || this.state === 'closed') return
    if (this.state === 'away') this.logger.info('redis is back: limits are shared again')
    this.state = 'here'
    for (const listener of this.listeners) listener()
  }

  private markUnavailable(error: unknown): void {
    if (this.state === 'closed') return
    if (this.state !== 'away') {
      this.logger.warn({ err: error }, 'redis is away: each process keeps to its own share of the limits')
    }
    this.state = 'away'
    clearTimeout(this.probe)
    this.probe = setTimeout(() => {
      if (this.client.status === 'ready') void this.checkConnection()
    }, PROBE_INTERVAL_MS).unref()
  }
}
