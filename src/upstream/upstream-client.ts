import type { Readable } from 'node:stream'
import { Injectable, type OnApplicationShutdown, Optional } from '@nestjs/common'
import type { Pool } from 'undici'
import type { UpstreamTimeouts } from '../config/channel-schema.js'
import { type Clock, processClock } from '../core/time.js'
import { connectionPool, type ExchangeOptions } from './connection.js'
import { withoutEncodings } from './content-encoding.js'
import { type ExchangeContext, UpstreamExchange, type UpstreamResponse } from './exchange.js'

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
  private readonly pools = new Map<string, Pool>()

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
    return new Promise((resolve, reject) => {
      const settle = (response: UpstreamResponse): void => {
        resolve(withoutEncodings(response, context.disconnect))
      }
      const { firstByteMs } = target.timeouts
      const exchange = new UpstreamExchange(context, deadlineAtMs, firstByteMs, settle, reject, this.nowMs)
      const pool = this.poolOf(target)
      const dispatch = (isNewNeeded: boolean): void => {
        pool.dispatch(optionsOf(request, target, exchange, context, isNewNeeded), exchange)
      }
      if (context.canResend === true) exchange.resend = dispatch
      dispatch(false)
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
    const pool = connectionPool(origin, timeouts.connectMs, this.nowMs)
    this.pools.set(poolKey, pool)
    return pool
  }
}

function bodyOf(body: UpstreamRequest['body']): Buffer | Readable | null {
  if (typeof body === 'function' || (isInPieces(body) && body.length !== 1)) {
    // Undici takes any sequence of pieces, as its documentation says; its types leave that out.
    return (typeof body === 'function' ? body() : body) as unknown as Readable
  }
  return (isInPieces(body) ? body[0] : body) ?? null
}

const isInPieces = (body: UpstreamRequest['body']): body is readonly Buffer[] => Array.isArray(body)

const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0)

const NO_ENCODING: readonly string[] = ['accept-encoding', 'identity']

function optionsOf(
  { method, path, headers, body }: UpstreamRequest,
  { pathPrefix, timeouts }: UpstreamTarget,
  exchange: UpstreamExchange,
  { traceHeaders }: ExchangeContext,
  isNewNeeded: boolean,
): ExchangeOptions {
  // Without the header, any encoding would do (RFC 9110, section 12.5.3).
  const allHeaders =
    traceHeaders === undefined ? headers.concat(NO_ENCODING) : headers.concat(NO_ENCODING, traceHeaders)
  return {
    method,
    path: pathPrefix + path,
    headers:
      isInPieces(body) && body.length !== 1 ? allHeaders.concat('content-length', String(lengthOf(body))) : allHeaders,
    body: bodyOf(body),
    headersTimeout: isNewNeeded ? Math.max(1, exchange.firstByteLeftMs) : timeouts.firstByteMs,
    bodyTimeout: timeouts.idleMs,
    exchange,
    isNewNeeded,
  }
}
