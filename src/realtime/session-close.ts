import type { SessionContext } from './session-context.js'
import * as endings from './session-endings.js'
import { errorEvent } from './session-endings.js'
import type { SocketSide } from './socket.js'

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
function closeSide({ socket, isClosed: isClosed }: SocketSide, close: endings.Close | undefined, waitMs: number) {
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
