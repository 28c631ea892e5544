import type { ClientRequest } from 'node:http'
import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { type ClientOptions, WebSocket } from 'ws'
import type { Call } from '../core/request-context.js'
import type { UpstreamTarget } from './upstream-client.js'
import { type SocketAnswer, SocketHandshake } from './websocket-client.js'

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

/**
 * The one door to WebSocket upstreams: a fresh connection per dial, never pooled, never compressed, never redirected.
 */
@Injectable()
export class UpstreamSockets implements OnApplicationShutdown {
  private readonly sockets = new Set<WebSocket>()

  /**
   * Connects and asks for the upgrade. Resolves with an open socket that is paused (attach listeners, then `resume`), so
   * that not even a message sent together with the 101 is lost, or with the HTTP answer that stood in the upgrade's
   * place. Rejects with a `GatewayError` that says how far the attempt went. `connectMs` bounds TCP and TLS,
   * `firstByteMs` the answer after that, `deadlineAtMs` (performance clock) both; the caller's leaving ends the dial at
   * once. An open socket is its user's to watch and to end: every ending arrives as `close`, and an `error` that nobody
   * listens to throws nothing.
   */
  dial(request: SocketRequest, target: UpstreamTarget, call: Call, deadlineAtMs: number): Promise<SocketAnswer> {
    call.assertPresent()
    return new Promise((resolve, reject) => {
      const finishRequest = (upgrade: ClientRequest): void => {
        upgrade.once('socket', (connection) => {
          handshake.awaitConnection(connection)
        })
        upgrade.end()
      }
      const options = { ...optionsFor(request, call), finishRequest }
      const socket = new WebSocket(addressOf(target, request), subprotocolsOf(request), options)
      const handshake = new SocketHandshake(socket, target.timeouts, deadlineAtMs, call, resolve, reject)
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

const optionsFor = ({ headers, maximumMessageBytes }: SocketRequest, { upstreamHeaders }: Call): CloseOptions => ({
  headers: { ...headers, ...namedPairs(upstreamHeaders) },
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
