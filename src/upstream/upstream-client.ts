import { Injectable, type OnApplicationShutdown, Optional } from '@nestjs/common'
import type { UpstreamTimeouts } from '../config/channel-schema.js'
import { type Clock, processClock } from '../core/time.js'
import { ConnectionPool } from './connection-pool.js'
import { withoutEncodings } from './content-encoding.js'
import { type ExchangeContext, UpstreamExchange, type UpstreamResponse } from './exchange.js'
import { type OutgoingRequest, outgoingRequest, type RequestBody } from './http-request.js'
import { IdleLimit } from './connection.js'

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
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Begins with a slash; the target's prefix comes before it. */
  readonly path: string
  /** Names and values in turn; complete but for Host and framing. */
  readonly headers: readonly string[]
  /**
   * In one piece or several, or read from elsewhere: anew each time it is sent, and each piece is sent before the next one is read.
   * Such a body needs a Content-Length among the headers, or is sent in chunks.
   */
  readonly body?: Buffer | readonly Buffer[] | (() => AsyncIterable<Buffer>)
}

/**
 * HTTP client of all channels: a pool per channel, four deadlines, and an answer whose body has not been read.
 * Rejects with a `GatewayError` that says how far the attempt went.
 */
@Injectable()
export class UpstreamClient implements OnApplicationShutdown {
  private readonly pools = new Map<string, ConnectionPool>()

  /** The clock is set by tests only. */
  constructor(@Optional() private readonly nowMs: Clock = processClock) {}

  /** `deadlineAtMs` (the process's clock) bounds all attempts of a call together. */
  send(
    request: UpstreamRequest,
    target: UpstreamTarget,
    context: ExchangeContext,
    deadlineAtMs: number,
  ): Promise<UpstreamResponse> {
    context.disconnect.throwIfAborted()
    const { firstByteMs } = target.timeouts
    const pool = this.poolOf(target)
    return new Promise((resolve, reject) => {
      const settle = (response: UpstreamResponse): void => {
        resolve(withoutEncodings(response, context.disconnect))
      }
      // A request that cannot be sent begins nothing.
      const first = outgoing(request, target, pool.host, context, firstByteMs)
      const exchange = new UpstreamExchange(context, deadlineAtMs, firstByteMs, settle, reject, this.nowMs)
      if (context.canResend === true) {
        exchange.resend = () => {
          const leftMs = Math.max(1, exchange.firstByteLeftMs)
          pool.dispatch(outgoing(request, target, pool.host, context, leftMs), exchange, true)
        }
      }
      pool.dispatch(first, exchange)
    })
  }

  /** Closes the pools that no channel uses any more; their running requests finish first. */
  retain(poolKeys: ReadonlySet<string>): void {
    for (const [key, pool] of this.pools) {
      if (poolKeys.has(key)) continue
      this.pools.delete(key)
      void pool.close()
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.pools.values()].map((pool) => pool.destroy()))
  }

  private poolOf(target: UpstreamTarget): ConnectionPool {
    const { poolKey, origin, timeouts } = target
    const known = this.pools.get(poolKey)
    if (known !== undefined) return known
    const limit = new IdleLimit(this.nowMs)
    const pool = new ConnectionPool(origin, { connect: { timeout: timeouts.connectMs }, limit })
    this.pools.set(poolKey, pool)
    return pool
  }
}

const NO_ENCODING: readonly string[] = ['accept-encoding', 'identity']

function outgoing(
  { method, path, headers, body }: UpstreamRequest,
  { pathPrefix, timeouts }: UpstreamTarget,
  host: string,
  { traceHeaders = [] }: ExchangeContext,
  firstByteMs: number,
): OutgoingRequest {
  const parts = {
    method,
    path: pathPrefix + path,
    host,
    // Without the header, any encoding would do (RFC 9110, section 12.5.3).
    headers: headers.concat(NO_ENCODING, traceHeaders),
    body: bodyOf(body),
    keepsAlive: true,
  }
  return outgoingRequest(parts, { firstByteMs, idleMs: timeouts.idleMs, maximumBytes: Infinity })
}

function bodyOf(body: UpstreamRequest['body']): RequestBody {
  if (typeof body === 'function') return body()
  return Buffer.isBuffer(body) ? [body] : (body ?? [])
}
