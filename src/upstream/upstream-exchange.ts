import type { Dispatcher } from 'undici'
import type { ByteSink, ByteSource } from '../core/byte-source.js'
import { GatewayError } from '../core/gateway-error.js'
import { joinedPieces } from '../core/joined-pieces.js'
import { type Call, callerLeft } from '../core/request-context.js'
import { classifyFailure } from './upstream-failure.js'

export interface UpstreamResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: ByteSource
}

const EMPTY = Buffer.alloc(0)

/** Bytes that may wait for a sink before the upstream is paused. */
const UNREAD_BYTES = 65_536

/**
 * One request to one upstream: the handler undici drives, and the source of the answer's body.
 * Ends the upstream call at once when the caller leaves or the total deadline passes.
 */
export class UpstreamExchange implements Dispatcher.DispatchHandler, ByteSource {
  private controller: Dispatcher.DispatchController | undefined
  private sink: ByteSink | undefined
  private unread: Buffer[] = []
  private unreadBytes = 0
  private answered = false
  private isPaused = false
  /** From dispatch to the first byte. */
  private waitMs = 0
  private outcome: { readonly error?: GatewayError } | undefined
  private readonly startedAtMs = performance.now()
  private readonly forgetDeparture: () => void
  private readonly totalTimer: NodeJS.Timeout

  constructor(
    private readonly call: Call,
    /** On the performance clock. */
    deadlineAtMs: number,
    private readonly onAnswer: (response: UpstreamResponse) => void,
    private readonly onFailure: (error: GatewayError) => void,
  ) {
    this.totalTimer = setTimeout(
      () => {
        this.abandon(
          new GatewayError('upstream_timeout', 'The upstream did not finish within the total time allowed.', {
            attempt: { phase: 'sent' },
          }),
        )
      },
      Math.max(1, deadlineAtMs - this.startedAtMs),
    )
    this.forgetDeparture = call.departure.onLeave(() => {
      this.abandon(callerLeft())
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.outcome !== undefined) controller.abort(this.outcome.error ?? callerLeft())
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // Informational answers (1xx) announce another one.
    if (status < 200 || this.outcome !== undefined) return
    this.answered = true
    this.noteAnswer(status, headers)
    this.onAnswer({ status, headers, body: this })
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.outcome !== undefined) return
    this.unread.push(chunk)
    this.unreadBytes += chunk.length
    if (this.sink === undefined) {
      if (this.unreadBytes > UNREAD_BYTES) this.controller?.pause()
    } else if (this.unread.length === 1) {
      // Whatever else arrives in this turn of the event loop is looked at, and written, together with it.
      process.nextTick(this.passOn)
    }
  }

  onResponseEnd(): void {
    this.finish({})
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.finish({ error: classifyFailure(error, this.controller !== undefined) })
  }

  get complete(): Buffer | undefined {
    if (this.outcome === undefined || this.outcome.error !== undefined || this.sink !== undefined) return undefined
    const [first = EMPTY] = this.unread
    return this.unread.length <= 1 ? first : Buffer.concat(this.unread, this.unreadBytes)
  }

  start(sink: ByteSink): void {
    this.sink = sink
    const hadToWait = this.unreadBytes > UNREAD_BYTES
    this.passOn()
    if (this.outcome !== undefined) this.deliver(this.outcome)
    else if (hadToWait && !this.isPaused) this.controller?.resume()
  }

  pause(): void {
    this.isPaused = true
    this.controller?.pause()
  }

  resume(): void {
    this.isPaused = false
    this.controller?.resume()
  }

  cancel(): void {
    this.unread = []
    this.abandon(callerLeft())
  }

  /** Ends the exchange from our side; undici's own report of the abort then finds it finished. */
  private abandon(error: GatewayError): void {
    if (this.outcome !== undefined) return
    this.finish({ error })
    this.controller?.abort(error)
  }

  private finish(outcome: { readonly error?: GatewayError }): void {
    if (this.outcome !== undefined) return
    this.outcome = outcome
    clearTimeout(this.totalTimer)
    this.forgetDeparture()
    const { log } = this.call
    log.upstreamMs += performance.now() - this.startedAtMs
    log.openWaitMs -= this.waitMs
    if (this.answered) {
      if (this.sink !== undefined) this.deliver(outcome)
      return
    }
    this.onFailure(outcome.error ?? noAnswer())
  }

  /** Whoever takes a piece may give the rest up, or be told meanwhile that there is no more: the rest is taken out one by one. */
  private readonly passOn = (): void => {
    if (this.sink === undefined) return
    if (this.unread.length > 1) this.unread = joinedPieces(this.unread)
    for (let piece = this.unread.shift(); piece !== undefined; piece = this.unread.shift()) {
      this.unreadBytes -= piece.length
      this.sink.data(piece)
    }
  }

  private deliver(outcome: { readonly error?: GatewayError }): void {
    this.passOn()
    if (outcome.error === undefined) this.sink?.end()
    else this.sink?.fail(outcome.error)
  }

  private noteAnswer(status: number, headers: UpstreamResponse['headers']): void {
    const { log } = this.call
    this.waitMs = performance.now() - this.startedAtMs
    log.firstByteMs = this.waitMs
    log.openWaitMs += this.waitMs
    log.upstreamStatus = status
    const requestId = headers['x-request-id'] ?? headers['request-id']
    if (typeof requestId === 'string') log.upstreamRequestId = requestId
  }
}

const noAnswer = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream closed the connection without an answer.', {
    attempt: { phase: 'sent' },
    retryable: false,
  })
