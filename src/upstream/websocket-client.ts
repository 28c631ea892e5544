import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { errors } from 'undici'
import { type ClientOptions, WebSocket } from 'ws'
import type { UpstreamTimeouts } from '../config/channel-schema.js'
import type { ByteSink, ByteSource } from '../core/byte-stream.js'
import { deferWrites } from '../core/deferred-writes.js'
import { GatewayError } from '../core/errors.js'
import { type ClientDisconnect, clientDisconnected, type ExchangeRecord } from '../core/request-context.js'
import { withoutEncodings } from './content-encoding.js'
import { classifyFailure, type ExchangeContext, timedOut, type UpstreamResponse } from './exchange.js'
import type { UpstreamTarget } from './upstream-client.js'

/** A body that is at hand already, for those who read bodies as they come. */
export class BytesSource implements ByteSource {
  constructor(readonly complete: Buffer) {}

  start(sink: ByteSink): void {
    sink.data(this.complete)
    sink.end()
  }

  pause(): void {
    // Everything was delivered at once.
  }

  resume(): void {
    // Nothing waits.
  }

  cancel(): void {
    // Nothing is held.
  }
}

/** An open socket, or the HTTP answer that stood in the upgrade's place; the headers are those of either. */
export type HandshakeResponse = { readonly headers: IncomingHttpHeaders } & (
  | { readonly socket: WebSocket; readonly refusal?: undefined }
  | { readonly refusal: UpstreamResponse; readonly socket?: undefined }
)

/** Readers of refusals look at no more: of a longer one the status alone counts, and the rest need not be waited for. */
const MAXIMUM_ERROR_BYTES = 262_144

/**
 * One upgrade, from the connection to its answer. Every ending lets go of both timers, of the listener for the client's
 * disconnect and of the listeners on the socket, but for one: the library throws an error without a listener.
 */
class SocketHandshake {
  private isConnected = false
  private isSettled = false
  private headers: IncomingHttpHeaders = {}
  private refusal: IncomingMessage | undefined
  private readonly refusalBody: Buffer[] = []
  private readonly startedAtMs = performance.now()
  private readonly disconnect: ClientDisconnect
  private readonly record: ExchangeRecord
  private readonly totalTimer: NodeJS.Timeout
  private stageTimer: NodeJS.Timeout
  private readonly removeAbortListener: () => void

  constructor(
    private readonly socket: WebSocket,
    private readonly timeouts: UpstreamTimeouts,
    deadlineAtMs: number,
    { disconnect, record }: ExchangeContext,
    private readonly onResponse: (answer: HandshakeResponse) => void,
    private readonly onFailure: (error: GatewayError) => void,
  ) {
    this.disconnect = disconnect
    this.record = record
    const remainingMs = Math.max(1, deadlineAtMs - performance.now())
    this.totalTimer = setTimeout(this.runOut, remainingMs, () => timedOut(this.isConnected ? 'sent' : 'unsent'))
    this.stageTimer = setTimeout(this.runOut, timeouts.connectMs, () => new errors.ConnectTimeoutError())
    this.removeAbortListener = disconnect.onAbort(() => {
      this.abandon(clientDisconnected())
    })
    socket.on('error', (error) => {
      this.abandon(classifyFailure(error, this.isConnected))
    })
    socket.on('upgrade', this.onUpgrade).on('open', this.onOpen).on('unexpected-response', this.onRefused)
  }

  /** Called with the connection as soon as there is one to wait for. */
  awaitConnection(connection: Socket): void {
    connection.once(this.socket.url.startsWith('wss:') ? 'secureConnect' : 'connect', () => {
      this.isConnected = true
      if (this.isSettled) return
      clearTimeout(this.stageTimer)
      this.stageTimer = setTimeout(this.runOut, this.timeouts.firstByteMs, () => new errors.HeadersTimeoutError())
    })
  }

  private readonly onUpgrade = ({ headers }: IncomingMessage): void => {
    this.headers = headers
  }

  private readonly onOpen = (): void => {
    // Messages that came together with the 101 are emitted before a promise's reader runs.
    this.socket.pause()
    this.record.upstreamStatus = 101
    this.settle()
    this.onResponse({ headers: this.headers, socket: this.socket })
  }

  private readonly onRefused = (_request: ClientRequest, response: IncomingMessage): void => {
    this.record.firstByteMs = performance.now() - this.startedAtMs
    if (response.statusCode !== undefined) this.record.upstreamStatus = response.statusCode
    this.refusal = response
    let received = 0
    response.on('data', (chunk: Buffer) => {
      received += chunk.length
      this.refusalBody.push(chunk)
      if (received > MAXIMUM_ERROR_BYTES) this.respondWithError(response)
    })
    // The status counts, with or without its whole body.
    response.on('error', () => undefined)
    response.once('close', () => {
      this.respondWithError(response)
    })
  }

  private respondWithError({ statusCode = 0, headers }: IncomingMessage): void {
    if (this.isSettled) return
    this.settle()
    this.socket.terminate()
    const body = new BytesSource(Buffer.concat(this.refusalBody))
    this.onResponse({ headers, refusal: withoutEncodings({ status: statusCode, headers, body }, this.disconnect) })
  }

  /** What ran out in the middle of a refusal's body only cuts that body short. */
  private readonly runOut = (errorOf: () => Error): void => {
    if (this.refusal !== undefined) this.respondWithError(this.refusal)
    else this.abandon(classifyFailure(errorOf(), this.isConnected))
  }

  private abandon(error: GatewayError): void {
    if (this.isSettled) return
    this.settle()
    this.socket.terminate()
    this.onFailure(error)
  }

  private settle(): void {
    this.isSettled = true
    clearTimeout(this.totalTimer)
    clearTimeout(this.stageTimer)
    this.removeAbortListener()
    this.socket.off('upgrade', this.onUpgrade).off('open', this.onOpen).off('unexpected-response', this.onRefused)
    this.record.upstreamMs += performance.now() - this.startedAtMs
  }
}

export interface SocketRequest {
  /** Begins with a slash and may carry a query; the target's prefix comes before it. */
  readonly path: string
  /** Complete but for Host and the handshake's own. */
  readonly headers: Readonly<Record<string, string>>
  /** When set, an upstream that does not choose it fails the handshake. */
  readonly subprotocol?: string
  /** A longer message ends the connection (1009). */
  readonly maximumMessageBytes: number
}

/** How long a socket may wait for the other side to agree to its closing; the library's own default is half a minute. */
const CLOSE_TIMEOUT_MS = 2_000

/** Not in the library's types yet. */
interface CloseOptions extends ClientOptions {
  readonly closeTimeout: number
}

/** WebSocket client of all channels: a fresh connection per dial, never pooled, never compressed, never redirected. */
@Injectable()
export class UpstreamSockets implements OnApplicationShutdown {
  private readonly sockets = new Set<WebSocket>()

  /**
   * Connects and asks for the upgrade. Resolves with an open socket that is paused (attach listeners, then `resume`), so that
   * not even a message sent together with the 101 is lost, or with the HTTP answer that stood in the upgrade's place. Rejects
   * with a `GatewayError` that says how far the attempt went. `connectMs` bounds TCP and TLS, `firstByteMs` the answer after
   * that, `deadlineAtMs` (performance clock) both; the caller's leaving ends the dial at once. An open socket is its user's to
   * watch and to end: every ending arrives as `close`, and an `error` without a listener throws nothing.
   */
  dial(
    request: SocketRequest,
    target: UpstreamTarget,
    context: ExchangeContext,
    deadlineAtMs: number,
  ): Promise<HandshakeResponse> {
    context.disconnect.throwIfAborted()
    return new Promise((resolve, reject) => {
      const finishRequest = (upgrade: ClientRequest): void => {
        upgrade.once('socket', (connection) => {
          deferWrites(connection)
          handshake.awaitConnection(connection)
        })
        upgrade.end()
      }
      const options = { ...optionsFor(request, context), finishRequest }
      const socket = new WebSocket(addressOf(target, request), subprotocolsOf(request), options)
      const handshake = new SocketHandshake(socket, target.timeouts, deadlineAtMs, context, resolve, reject)
      this.sockets.add(socket)
      socket.once('close', () => this.sockets.delete(socket))
    })
  }

  onApplicationShutdown(): void {
    for (const socket of this.sockets) socket.terminate()
  }
}

const addressOf = ({ origin, pathPrefix }: UpstreamTarget, { path }: SocketRequest): string =>
  origin.replace(/^http/, 'ws') + pathPrefix + path

const subprotocolsOf = ({ subprotocol }: SocketRequest): string[] => (subprotocol === undefined ? [] : [subprotocol])

const optionsFor = (
  { headers, maximumMessageBytes }: SocketRequest,
  { traceHeaders = [] }: ExchangeContext,
): CloseOptions => ({
  headers: { ...headers, ...namedPairs(traceHeaders) },
  maxPayload: maximumMessageBytes,
  perMessageDeflate: false,
  followRedirects: false,
  closeTimeout: CLOSE_TIMEOUT_MS,
})

/** Names and values in turn, as an object. */
function namedPairs(pairs: readonly string[]): Record<string, string> {
  const named: Record<string, string> = {}
  for (let index = 0; index < pairs.length; index += 2) named[pairs[index] ?? ''] = pairs[index + 1] ?? ''
  return named
}
