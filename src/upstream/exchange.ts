import { type ByteSink, type ByteSource, joinedPieces } from '../core/byte-stream.js'
import { codeOf, type FailedAttempt, GatewayError } from '../core/errors.js'
import { type ClientDisconnect, clientDisconnected, type ExchangeRecord } from '../core/request-context.js'
import { type Clock, processClock } from '../core/time.js'
import type { Connection, ResponseReader } from './connection.js'
import type { ResponseHeaders } from './http-parser.js'

/** Failures that can only happen before a byte of the request was written. */
const UNSENT_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'UND_ERR_CONNECT_TIMEOUT',
])

const TIMEOUT_MESSAGES: Readonly<Record<string, string>> = {
  UND_ERR_CONNECT_TIMEOUT: 'The upstream could not be reached in time.',
  UND_ERR_HEADERS_TIMEOUT: 'The upstream did not answer in time.',
  UND_ERR_BODY_TIMEOUT: 'The upstream stopped sending in the middle of its answer.',
}

/**
 * What a transport failure means: timeout or failure, and whether the upstream may have seen the request.
 * Addresses and texts of the transport stay in `cause`, for the log.
 */
export function classifyFailure(error: Error, requestStarted: boolean): GatewayError {
  if (error instanceof GatewayError) return error
  const code = codeOf(error)
  const unsent = UNSENT_CODES.has(code) || !requestStarted
  const timeout = TIMEOUT_MESSAGES[code]
  const details = {
    cause: error,
    attempt: { phase: unsent ? 'unsent' : 'sent', channelError: true } as const,
    // Whatever was sent may have been done, and billed, although no answer came.
    retryable: unsent,
  }
  return timeout === undefined
    ? new GatewayError('upstream_failed', 'The connection to the upstream failed.', details)
    : new GatewayError('upstream_timeout', timeout, details)
}

export interface UpstreamResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<ResponseHeaders>
  readonly body: ByteSource
}

/** What ends an exchange early, and the record of its times and status. */
export interface ExchangeContext {
  readonly disconnect: ClientDisconnect
  readonly record: ExchangeRecord
  /** Names and values in turn, sent beside the request's own. */
  readonly traceHeaders?: readonly string[] | undefined
  /** The request may be sent once more after it was sent: absent for paid creates. */
  readonly canResend?: boolean
}

/** Bytes that may wait for a sink before the upstream is paused. */
const UNREAD_BYTES = 65_536

/**
 * One request to one upstream: the reader of its connection, and the source of the response body. Aborts the upstream request when
 * the client disconnects, unless the sink reads on, or the total deadline passes.
 */
export class UpstreamExchange implements ResponseReader, ByteSource {
  /** Sends the request once more, on a new connection; absent where that is not safe, and once it is done. */
  resend: (() => void) | undefined
  /** While the request is on it, or it is being made for the request. */
  private connection: Connection | undefined
  private wasSent = false
  /** Of a request that was sent before. */
  private firstError: Error | undefined
  private sink: ByteSink | undefined
  private unread: Buffer[] = []
  private unreadBytes = 0
  private hasResponded = false
  private isPaused = false
  /** From dispatch to the first byte. */
  private waitMs = 0
  private outcome: { readonly error?: GatewayError } | undefined
  readonly startedAtMs: number
  private readonly removeAbortListener: () => void
  private release: (() => void) | undefined
  private readonly totalTimer: NodeJS.Timeout

  constructor(
    private readonly context: ExchangeContext,
    /** On the process's clock; with `firstByteMs` it bounds everything that is sent for the exchange. */
    deadlineAtMs: number,
    private readonly firstByteMs: number,
    private readonly onResponse: (response: UpstreamResponse) => void,
    private readonly onFailure: (error: GatewayError) => void,
    private readonly nowMs: Clock = processClock,
  ) {
    this.startedAtMs = nowMs()
    const remainingMs = Math.max(1, deadlineAtMs - this.startedAtMs)
    this.totalTimer = setTimeout(() => {
      this.abandon(timedOut(this.wasSent || this.firstError !== undefined ? 'sent' : 'unsent'))
    }, remainingMs)
    this.removeAbortListener = context.disconnect.onAbort(() => {
      this.release = context.disconnect.hold()
      this.passOn()
      if (this.sink?.readOn?.() !== true) this.abandon(clientDisconnected())
    })
  }

  onConnecting(connection: Connection): void {
    this.connection = connection
  }

  onRequestStart(connection: Connection): void {
    this.connection = connection
    this.wasSent = true
  }

  onResponseStart(status: number, headers: ResponseHeaders): void {
    this.hasResponded = true
    this.recordResponse(status, headers)
    this.onResponse({ status, headers, body: this })
  }

  onResponseData(piece: Buffer): void {
    this.unread.push(piece)
    this.unreadBytes += piece.length
    if (this.sink === undefined) {
      if (this.unreadBytes > UNREAD_BYTES) this.connection?.pause()
    } else if (this.unread.length === 1) {
      // All pieces of one turn of the event loop are handled, and written, together.
      process.nextTick(this.passOn)
    }
  }

  onResponseEnd(): void {
    this.finish({})
  }

  onResponseError(error: Error, wasStale: boolean): void {
    const { resend } = this
    if (wasStale && resend !== undefined && this.outcome === undefined && this.firstByteLeftMs > 0) {
      this.resend = undefined
      this.firstError = error
      this.connection = undefined
      this.wasSent = false
      resend()
      return
    }
    this.finish({ error: this.failureOf(error) })
  }

  /** For what is left to be sent. */
  get firstByteLeftMs(): number {
    return Math.floor(this.firstByteMs - (this.nowMs() - this.startedAtMs))
  }

  get complete(): Buffer | undefined {
    if (this.outcome === undefined || this.outcome.error !== undefined || this.sink !== undefined) return undefined
    const [first] = this.unread
    return first !== undefined && this.unread.length === 1 ? first : Buffer.concat(this.unread, this.unreadBytes)
  }

  start(sink: ByteSink): void {
    this.sink = sink
    const wasPaused = this.unreadBytes > UNREAD_BYTES
    this.passOn()
    if (this.outcome !== undefined) this.deliver(this.outcome)
    else if (wasPaused && !this.isPaused) this.connection?.resume()
  }

  pause(): void {
    this.isPaused = true
    this.connection?.pause()
  }

  resume(): void {
    this.isPaused = false
    this.connection?.resume()
  }

  cancel(): void {
    this.unread = []
    this.abandon(clientDisconnected())
  }

  /** What was sent before may have been done, however the second try failed. */
  private failureOf(error: Error): GatewayError {
    const failure = classifyFailure(error, this.wasSent)
    const wasSent = this.firstError !== undefined && failure.details.attempt?.phase === 'unsent'
    return wasSent ? classifyFailure(this.firstError ?? error, true) : failure
  }

  /** Ends the exchange on the gateway's side, and with it the connection. */
  private abandon(error: GatewayError): void {
    if (this.outcome !== undefined) return
    const { connection } = this
    this.finish({ error })
    connection?.end(error)
  }

  private finish(outcome: { readonly error?: GatewayError }): void {
    if (this.outcome !== undefined) return
    this.outcome = outcome
    // Another exchange may be the next on it.
    this.connection = undefined
    clearTimeout(this.totalTimer)
    this.removeAbortListener()
    const { record } = this.context
    record.upstreamMs += this.nowMs() - this.startedAtMs
    record.openWaitMs -= this.waitMs
    try {
      if (!this.hasResponded) this.onFailure(outcome.error ?? noResponse())
      else if (this.sink !== undefined) this.deliver(outcome)
    } finally {
      // A reader that throws would else keep the request's place, memory and usage for good.
      this.release?.()
    }
  }

  /** Pieces are taken out one by one: the sink may cancel, or get the end, while it handles one. */
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

  private recordResponse(status: number, headers: UpstreamResponse['headers']): void {
    const { record } = this.context
    this.waitMs = this.nowMs() - this.startedAtMs
    record.firstByteMs = this.waitMs
    record.openWaitMs += this.waitMs
    record.upstreamStatus = status
    const requestId = headers['x-request-id'] ?? headers['request-id']
    if (typeof requestId === 'string') record.upstreamRequestId = requestId
  }
}

/** The total time of a call has passed. */
export const timedOut = (phase: FailedAttempt['phase']): GatewayError =>
  new GatewayError('upstream_timeout', 'The upstream did not finish within the total time allowed.', {
    attempt: { phase },
  })

const noResponse = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream closed the connection without an answer.', {
    attempt: { phase: 'sent' },
    retryable: false,
  })
