import { Redis } from 'ioredis'
import type { Logger } from '../observability/logger.js'

/** The deadline is split into this many timers: a stalled event loop can use up only one of them. */
const TIMER_SLICES = 4
const CLEARED = -1

/**
 * Deadline of a command. After a stalled event loop, timers fire before the replies that have arrived meanwhile are
 * processed: a plain timer would report a timeout although Redis has replied.
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

  /** Replies already received are processed before the timeout fires. */
  private readonly onLastSlice = (): void => {
    if (this.slicesLeft === 0) this.onTimeout()
  }
}

/** A deadline grows to so many times the configured one while Redis is slow. */
export const LARGEST_GROWTH = 8
/** The deadline of a command is so many times the slowest of the replies that count. */
const MARGIN = 2
/** The slowest reply counts half after this time: deadlines grow at once and shrink slowly. */
const HALF_LIFE_MS = 30_000

/** Time that a command may take: as configured, longer while replies come late because a machine is busy. */
export class AdaptiveTimeout {
  private slowestMs = 0
  private seenAtMs = 0

  constructor(private readonly configuredMs: number) {}

  get milliseconds(): number {
    const grown = MARGIN * this.faded(performance.now())
    return Math.min(Math.max(this.configuredMs, grown), LARGEST_GROWTH * this.configuredMs)
  }

  /** A reply came, in time or not. */
  observe(replyMs: number): void {
    const nowMs = performance.now()
    if (replyMs < this.faded(nowMs)) return
    this.slowestMs = replyMs
    this.seenAtMs = nowMs
  }

  private faded(nowMs: number): number {
    return this.slowestMs * 2 ** ((this.seenAtMs - nowMs) / HALF_LIFE_MS)
  }
}

/** Prefix of all Redis keys of this gateway. */
export const REDIS_PREFIX = 'gateway:limits'

const PROBE_KEY = `${REDIS_PREFIX}:probe`
const PROBE_INTERVAL_MS = 1000
const MAXIMUM_RECONNECT_MS = 1000

/** A connection that receives nothing for this many configured timeouts is closed and reopened: later than any deadline. */
const SILENT_TIMEOUTS = 2 * LARGEST_GROWTH
const CONNECT_TIMEOUTS = 4

/**
 * The connection to Redis and its state. While Redis is unavailable, only probes and undo commands are sent. The probe is a
 * write: a read-only replica or a full Redis would still answer PING. After a command without a reply in time Redis is `late`:
 * not used either, but away only when no late reply comes, which a busy machine gives in a moment.
 */
export class RedisConnection {
  readonly client: Redis
  private state: 'opening' | 'here' | 'late' | 'away' | 'closed' = 'opening'
  private readonly timeout: AdaptiveTimeout
  private probe: NodeJS.Timeout | undefined
  private lateTimer: NodeJS.Timeout | undefined
  private readonly listeners: (() => void)[] = []

  constructor(
    url: string,
    private readonly timeoutMs: number,
    private readonly logger: Pick<Logger, 'info' | 'warn'>,
  ) {
    this.timeout = new AdaptiveTimeout(timeoutMs)
    const silenceMs = Math.max(PROBE_INTERVAL_MS, SILENT_TIMEOUTS * timeoutMs)
    this.client = new Redis(url, {
      lazyConnect: true,
      connectTimeout: Math.max(PROBE_INTERVAL_MS, CONNECT_TIMEOUTS * timeoutMs),
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
    // Each failed attempt to connect; `markUnavailable` logs the first.
    this.client.on('error', () => undefined)
  }

  get isUnavailable(): boolean {
    return this.state !== 'here'
  }

  /** Connects. Resolves once Redis answers, or when the connection attempt has failed; never rejects. */
  async open(): Promise<void> {
    try {
      await this.client.connect()
      await this.checkConnection()
    } catch (error) {
      this.markUnavailable(error)
    }
  }

  /** Calls back each time Redis becomes available. */
  onReconnect(listener: () => void): void {
    this.listeners.push(listener)
  }

  /**
   * Resolves with the reply, or undefined if Redis is unavailable, fails or times out. `onLateReply` receives a reply after
   * the timeout, so that its effect can be undone.
   */
  execute<Reply>(command: () => Promise<Reply>, onLateReply?: (reply: Reply) => void): Promise<Reply | undefined> {
    if (this.isUnavailable) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const sentAtMs = performance.now()
      let isWaiting = true
      const settle = (answer?: Reply): void => {
        isWaiting = false
        deadline.clear()
        resolve(answer)
      }
      const deadline = new Deadline(this.timeout.milliseconds, () => {
        settle()
        this.markLate()
      })
      command().then(
        (answer) => {
          this.timeout.observe(performance.now() - sentAtMs)
          if (isWaiting) {
            settle(answer)
            return
          }
          if (this.state === 'late') this.markReady()
          onLateReply?.(answer)
        },
        (error: unknown) => {
          if (!isWaiting && this.state !== 'late') return
          if (isWaiting) settle()
          this.markUnavailable(error)
        },
      )
    })
  }

  /** Sends an undo command even while Redis is marked unavailable, if the socket is connected. Not awaited, never retried. */
  sendUndo(command: () => Promise<unknown>): void {
    if (this.client.status === 'ready') command().catch(() => undefined)
  }

  /** Lets commands under way finish, for a moment. Never rejects. */
  async close(): Promise<void> {
    const isReady = !this.isUnavailable
    this.state = 'closed'
    clearTimeout(this.probe)
    clearTimeout(this.lateTimer)
    try {
      if (isReady) await this.client.quit()
      else this.client.disconnect()
    } catch {
      this.client.disconnect()
    }
  }

  private async checkConnection(): Promise<void> {
    try {
      const sentAtMs = performance.now()
      await this.client.set(PROBE_KEY, '1', 'PX', PROBE_INTERVAL_MS)
      const replyMs = performance.now() - sentAtMs
      this.timeout.observe(replyMs)
      // Otherwise the next command would find it away again.
      if (replyMs > this.timeout.milliseconds) throw new Error('Redis answers too late.')
      this.markReady()
    } catch (error) {
      this.markUnavailable(error)
    }
  }

  private markReady(): void {
    if (this.state === 'here' || this.state === 'closed') return
    if (this.state === 'away') this.logger.info('redis is back: limits are shared again')
    this.state = 'here'
    clearTimeout(this.lateTimer)
    for (const listener of this.listeners) listener()
  }

  /** The command may still be answered: until then Redis is not used, and nothing is said about it. */
  private markLate(): void {
    if (this.state !== 'here') return
    this.state = 'late'
    this.lateTimer = setTimeout(() => {
      this.markUnavailable(new Error('Redis did not answer in time.'))
    }, LARGEST_GROWTH * this.timeoutMs).unref()
  }

  private markUnavailable(error: unknown): void {
    if (this.state === 'closed') return
    clearTimeout(this.lateTimer)
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
