import type { RealtimeLimits } from '../config/settings.js'
import type { SessionContext } from './session-context.js'
import * as endings from './session-endings.js'
import { errorEvent } from './session-endings.js'
import type { SocketSide } from './socket.js'

const MAXIMUM_MISSES = 2

/**
 * Detects dead connections. Any received byte is a sign of life, not only a pong; so is progress in sending, as a pong
 * may wait behind a long message.
 */
export class Heartbeat {
  private misses = 0
  private isFirst = true
  private isPingTaken = true
  private bytesRead = 0
  private taken = 0
  private unsentBytes = 0

  constructor(private readonly side: SocketSide) {}

  /** Called once per ping interval: checks the time since the last ping, then pings again. False = dead. */
  beat(): boolean {
    this.misses = this.isFirst || this.showsLife() ? 0 : this.misses + 1
    if (this.misses >= MAXIMUM_MISSES) return false
    this.isFirst = false
    this.bytesRead = this.side.bytesRead
    this.taken = this.side.taken
    this.unsentBytes = this.side.unsentBytes
    if (this.isPingTaken) this.ping()
    return true
  }

  private showsLife(): boolean {
    const { side } = this
    const wasHeld = side.takeWasHeld()
    if (side.taken !== this.taken || side.unsentBytes < this.unsentBytes) return true
    // A side that sends but receives nothing for a whole interval will not read its responses either.
    return this.isPingTaken && (wasHeld || side.bytesRead !== this.bytesRead)
  }

  private ping(): void {
    this.isPingTaken = false
    this.side.socket.ping(undefined, undefined, () => {
      this.isPingTaken = true
    })
  }
}

const LONGEST_TICK_MS = 500
const SHORTEST_TICK_MS = 10
const TICKS_PER_PERIOD = 10

/**
 * The one timer of a running session: age, idleness, stuck readers and the heartbeat of both sides. Ticks are counted
 * and no clock is read, so that a stalled process does not time out sides that had no chance to send.
 */
export class SessionTimers {
  private readonly tickMs: number
  private timer: NodeJS.Timeout | undefined
  private ageTicks = 0
  private idleTicks = 0
  private clientStuckTicks = 0
  private upstreamStuckTicks = 0
  private wasBusy = false
  private readonly clientHeartbeat: Heartbeat
  private readonly upstreamHeartbeat: Heartbeat

  constructor(
    private readonly limits: RealtimeLimits,
    private readonly client: SocketSide,
    private readonly upstream: SocketSide,
    private readonly onEnd: (ending: endings.SessionEnding) => void,
  ) {
    const { realtimeStuckMs, realtimePingMs, realtimeIdleMs, realtimeAgeMs } = limits
    const shortestMs = Math.min(realtimeStuckMs, realtimePingMs, realtimeIdleMs, realtimeAgeMs)
    this.tickMs = Math.max(SHORTEST_TICK_MS, Math.min(LONGEST_TICK_MS, shortestMs / TICKS_PER_PERIOD))
    this.clientHeartbeat = new Heartbeat(client)
    this.upstreamHeartbeat = new Heartbeat(upstream)
  }

  start(): void {
    this.timer = setInterval(() => {
      const ending = this.tick()
      if (ending !== undefined) this.onEnd(ending)
    }, this.tickMs)
  }

  stop(): void {
    clearInterval(this.timer)
  }

  /** A message was received from either side. */
  onMessage(): void {
    this.wasBusy = true
  }

  private tick(): endings.SessionEnding | undefined {
    this.ageTicks++
    this.idleTicks = this.wasBusy ? 0 : this.idleTicks + 1
    this.wasBusy = false
    // The library reports a client's close only when its connection is closed, for which it waits half a minute.
    if (!this.client.isOpen) return endings.clientClosed
    const { realtimeAgeMs, realtimeIdleMs } = this.limits
    if (this.hasPassed(this.ageTicks, realtimeAgeMs)) return endings.expired(realtimeAgeMs)
    if (this.hasPassed(this.idleTicks, realtimeIdleMs)) return endings.idle(realtimeIdleMs)
    return this.stuckSide() ?? this.silentSide()
  }

  private stuckSide(): endings.SessionEnding | undefined {
    const { realtimeCloseBytes, realtimeStuckMs } = this.limits
    this.clientStuckTicks = this.client.waitingBytes > realtimeCloseBytes ? this.clientStuckTicks + 1 : 0
    this.upstreamStuckTicks = this.upstream.waitingBytes > realtimeCloseBytes ? this.upstreamStuckTicks + 1 : 0
    if (this.hasPassed(this.clientStuckTicks, realtimeStuckMs)) return endings.clientSlow
    return this.hasPassed(this.upstreamStuckTicks, realtimeStuckMs) ? endings.upstreamSlow : undefined
  }

  private silentSide(): endings.SessionEnding | undefined {
    const pingTicks = Math.max(1, Math.round(this.limits.realtimePingMs / this.tickMs))
    if (this.ageTicks % pingTicks !== 0) return undefined
    if (!this.clientHeartbeat.beat()) return endings.clientSilent
    return this.upstreamHeartbeat.beat() ? undefined : endings.upstreamSilent
  }

  private hasPassed(ticks: number, milliseconds: number): boolean {
    return ticks * this.tickMs >= milliseconds
  }
}

/** A client may have a second of audio to read before the close frame reaches it. */
const CLIENT_WAIT_MS = 5_000
const UPSTREAM_WAIT_MS = 1_000

const ABNORMAL = 1006
const NO_REASON = Buffer.alloc(0)

/**
 * Closes both sockets of a session: the first reason counts, both sides get a close frame, and a side that does not
 * confirm it in time is terminated. Timers and listeners end with each socket.
 */
export class SessionClose {
  /** Resolves when both connections are gone. */
  readonly done: Promise<void>
  private chosen: endings.SessionEnding | undefined
  private clientTimer: NodeJS.Timeout | undefined
  private upstreamTimer: NodeJS.Timeout | undefined
  private resolveDone: () => void = () => undefined

  /** `onEnding` is called once, before any close frame is sent. */
  constructor(
    private readonly client: SocketSide,
    private readonly upstream: SocketSide,
    private readonly context: SessionContext,
    private readonly onEnding: () => void,
  ) {
    this.done = new Promise((resolve) => {
      this.resolveDone = resolve
    })
  }

  get ending(): endings.SessionEnding | undefined {
    return this.chosen
  }

  /** From here on a side that closes or fails ends the session. */
  watch(): void {
    const { client, upstream } = this
    client.socket.on('close', this.onClientClose).on('error', this.onClientError)
    upstream.socket.on('close', this.onUpstreamClose).on('error', this.onUpstreamError)
    // Either side may have closed between its opening and now.
    if (upstream.isClosed) this.onUpstreamClose(ABNORMAL, NO_REASON)
    if (client.isClosed) this.onClientClose(ABNORMAL)
  }

  readonly end = (ending: endings.SessionEnding): void => {
    if (this.chosen !== undefined) return
    this.chosen = ending
    const { call } = this.context
    if (ending.failure !== undefined) call.log.failure = ending.failure
    this.onEnding()
    const { client, upstream } = this
    client.readOn()
    upstream.readOn()
    if (ending.event !== undefined) call.log.bytesOut += client.send(errorEvent(ending.event), client)
    this.upstreamTimer = closeSide(upstream, ending.upstream, UPSTREAM_WAIT_MS)
    this.clientTimer = closeSide(client, ending.client, CLIENT_WAIT_MS)
    if (ending.cause === endings.clientLost.cause || ending.cause === endings.clientSilent.cause) {
      call.disconnect.abort()
    }
  }

  private readonly onClientClose = (code: number): void => {
    this.client.socket.off('close', this.onClientClose).off('error', this.onClientError)
    this.end(code === ABNORMAL ? endings.clientLost : endings.clientClosed)
    clearTimeout(this.clientTimer)
    this.finish()
  }

  private readonly onUpstreamClose = (code: number, reason: Buffer): void => {
    this.upstream.socket.off('close', this.onUpstreamClose).off('error', this.onUpstreamError)
    this.end(endings.upstreamClosed(code, reason, this.context.credentials))
    clearTimeout(this.upstreamTimer)
    this.finish()
  }

  private readonly onClientError = (): void => {
    this.end(endings.clientBroken)
  }

  private readonly onUpstreamError = (): void => {
    this.end(endings.upstreamLost)
  }

  private finish(): void {
    if (this.client.isClosed && this.upstream.isClosed) this.resolveDone()
  }
}

/** Sends the close frame, and terminates the side when it has not confirmed in time. A closed side needs no timer. */
function closeSide({ socket, isClosed }: SocketSide, close: endings.Close | undefined, waitMs: number) {
  if (isClosed) return undefined
  if (close === undefined) {
    socket.terminate()
    return undefined
  }
  socket.close(close.code, close.reason)
  return setTimeout(() => {
    socket.terminate()
  }, waitMs)
}
