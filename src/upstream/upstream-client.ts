import type { Readable } from 'node:stream'
import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { type Dispatcher, Pool } from 'undici'
import type { UpstreamTimeouts } from '../config/channel-schema.js'
import { type ByteSink, type ByteSource, joinedPieces } from '../core/byte-stream.js'
import { codeOf, GatewayError } from '../core/errors.js'
import { type ClientDisconnect, clientDisconnected, type ExchangeRecord } from '../core/request-context.js'

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
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: ByteSource
}

/** What ends an exchange early, and the record of its times and status. */
export interface ExchangeContext {
  readonly disconnect: ClientDisconnect
  readonly record: ExchangeRecord
  /** Names and values in turn, sent beside the request's own. */
  readonly traceHeaders?: readonly string[] | undefined
}

/** Bytes that may wait for a sink before the upstream is paused. */
const UNREAD_BYTES = 65_536

/**
 * One request to one upstream: undici's handler, and the source of the response body. Aborts the upstream request when
 * the client disconnects or the total deadline passes.
 */
export class UpstreamExchange implements Dispatcher.DispatchHandler, ByteSource {
  private controller: Dispatcher.DispatchController | undefined
  private sink: ByteSink | undefined
  private unread: Buffer[] = []
  private unreadBytes = 0
  private hasResponded = false
  private isPaused = false
  /** From dispatch to the first byte. */
  private waitMs = 0
  private outcome: { readonly error?: GatewayError } | undefined
  private readonly startedAtMs = performance.now()
  private readonly removeAbortListener: () => void
  private readonly totalTimer: NodeJS.Timeout

  constructor(
    private readonly context: ExchangeContext,
    /** On the performance clock. */
    deadlineAtMs: number,
    private readonly onResponse: (response: UpstreamResponse) => void,
    private readonly onFailure: (error: GatewayError) => void,
  ) {
    const remainingMs = Math.max(1, deadlineAtMs - this.startedAtMs)
    this.totalTimer = setTimeout(() => {
      this.abandon(tooLong())
    }, remainingMs)
    this.removeAbortListener = context.disconnect.onAbort(() => {
      this.abandon(clientDisconnected())
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.outcome !== undefined) controller.abort(this.outcome.error ?? clientDisconnected())
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // Informational answers (1xx) announce another one.
    if (status < 200 || this.outcome !== undefined) return
    this.hasResponded = true
    this.recordResponse(status, headers)
    this.onResponse({ status, headers, body: this })
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.outcome !== undefined) return
    this.unread.push(chunk)
    this.unreadBytes += chunk.length
    if (this.sink === undefined) {
      if (this.unreadBytes > UNREAD_BYTES) this.controller?.pause()
    } else if (this.unread.length === 1) {
      // All pieces of one turn of the event loop are handled, and written, together.
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
    const [first] = this.unread
    return first !== undefined && this.unread.length === 1 ? first : Buffer.concat(this.unread, this.unreadBytes)
  }

  start(sink: ByteSink): void {
    this.sink = sink
    const wasPaused = this.unreadBytes > UNREAD_BYTES
    this.passOn()
    if (this.outcome !== undefined) this.deliver(this.outcome)
    else if (wasPaused && !this.isPaused) this.controller?.resume()
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
    this.abandon(clientDisconnected())
  }

  /** Ends the exchange on the gateway's side; undici's own report of the abort then finds it finished. */
  private abandon(error: GatewayError): void {
    if (this.outcome !== undefined) return
    this.finish({ error })
    this.controller?.abort(error)
  }

  private finish(outcome: { readonly error?: GatewayError }): void {
    if (this.outcome !== undefined) return
    this.outcome = outcome
    clearTimeout(this.totalTimer)
    this.removeAbortListener()
    const { record } = this.context
    record.upstreamMs += performance.now() - this.startedAtMs
    record.openWaitMs -= this.waitMs
    if (!this.hasResponded) this.onFailure(outcome.error ?? noResponse())
    else if (this.sink !== undefined) this.deliver(outcome)
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
    this.waitMs = performance.now() - this.startedAtMs
    record.firstByteMs = this.waitMs
    record.openWaitMs += this.waitMs
    record.upstreamStatus = status
    const requestId = headers['x-request-id'] ?? headers['request-id']
    if (typeof requestId === 'string') record.upstreamRequestId = requestId
  }
}

const tooLong = (): GatewayError =>
  new GatewayError('upstream_timeout', 'The upstream did not finish within the total time allowed.', {
    attempt: { phase: 'sent' },
  })

const noResponse = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream closed the connection without an answer.', {
    attempt: { phase: 'sent' },
    retryable: false,
  })

/** Where a channel's requests go, and how long they may take. */
export interface UpstreamTarget {
  /** One connection pool per key; equal keys survive a reload of the configuration with their connections. */
  readonly poolKey: string
  readonly origin: string
  /** Without trailing slash; may be empty. */
  readonly pathPrefix: string
  readonly timeouts: UpstreamTimeouts
}

export interface UpstreamRequest {
  readonly method: 'GET' | 'POST'
  /** Begins with a slash; the target's prefix comes before it. */
  readonly path: string
  /** Names and values in turn; complete but for Host and framing. */
  readonly headers: readonly string[]
  readonly body?: Buffer | Readable
}

/**
 * HTTP client of all channels: a pool per channel, four deadlines, and an answer whose body has not been read.
 * Rejects with a `GatewayError` that says how far the attempt went.
 */
@Injectable()
export class UpstreamClient implements OnApplicationShutdown {
  private readonly pools = new Map<string, Pool>()

  /** `deadlineAtMs` (performance clock) bounds all attempts of a call together. */
  send(
    request: UpstreamRequest,
    target: UpstreamTarget,
    context: ExchangeContext,
    deadlineAtMs: number,
  ): Promise<UpstreamResponse> {
    context.disconnect.throwIfAborted()
    return new Promise((resolve, reject) => {
      const exchange = new UpstreamExchange(context, deadlineAtMs, resolve, reject)
      this.poolOf(target).dispatch(
        {
          method: request.method,
          path: target.pathPrefix + request.path,
          headers: headersOf(request, context),
          body: request.body ?? null,
          headersTimeout: target.timeouts.firstByteMs,
          bodyTimeout: target.timeouts.idleMs,
        },
        exchange,
      )
    })
  }

  /** Closes the pools that no channel uses any more; their running requests finish first. */
  retain(poolKeys: ReadonlySet<string>): void {
    for (const [key, pool] of this.pools) {
      if (poolKeys.has(key)) continue
      this.pools.delete(key)
      // A pool that cannot close in good order is destroyed with its process.
      pool.close().catch(() => undefined)
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.pools.values()].map((pool) => pool.destroy()))
  }

  private poolOf(target: UpstreamTarget): Pool {
    const { poolKey, origin, timeouts } = target
    const known = this.pools.get(poolKey)
    if (known !== undefined) return known
    // Without pipelining: a request must never wait behind another caller's response.
    const pool = new Pool(origin, { connect: { timeout: timeouts.connectMs }, pipelining: 1 })
    this.pools.set(poolKey, pool)
    return pool
  }
}

const headersOf = ({ headers }: UpstreamRequest, { traceHeaders }: ExchangeContext): string[] =>
  traceHeaders === undefined ? (headers as string[]) : [...headers, ...traceHeaders]
