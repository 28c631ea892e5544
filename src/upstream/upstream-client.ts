import type { Readable } from 'node:stream'
import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { Pool } from 'undici'
import type { UpstreamTimeouts } from '../config/channel-config.js'
import type { Call } from '../core/request-context.js'
import { UpstreamExchange, type UpstreamResponse } from './upstream-exchange.js'

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
 * The one door to HTTP upstreams: a pool per channel, four deadlines, and an answer whose body has not been read.
 * Rejects with a `GatewayError` that says how far the attempt went.
 */
@Injectable()
export class UpstreamClient implements OnApplicationShutdown {
  private readonly pools = new Map<string, Pool>()

  /** `deadlineAtMs` (performance clock) bounds all attempts of a call together. */
  send(request: UpstreamRequest, target: UpstreamTarget, call: Call, deadlineAtMs: number): Promise<UpstreamResponse> {
    call.assertPresent()
    return new Promise((resolve, reject) => {
      const exchange = new UpstreamExchange(call, deadlineAtMs, resolve, reject)
      this.poolOf(target).dispatch(
        {
          method: request.method,
          path: target.pathPrefix + request.path,
          headers: headersOf(request, call),
          body: request.body ?? null,
          headersTimeout: target.timeouts.firstByteMs,
          bodyTimeout: target.timeouts.idleMs,
        },
        exchange,
      )
    })
  }

  /** Lets go of the pools no channel uses any more; their running requests finish first. */
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
    const known = this.pools.get(target.poolKey)
    if (known !== undefined) return known
    const pool = new Pool(target.origin, {
      connect: { timeout: target.timeouts.connectMs },
      // A caller's connection must never wait behind another caller's answer.
      pipelining: 1,
    })
    this.pools.set(target.poolKey, pool)
    return pool
  }
}

const headersOf = ({ headers }: UpstreamRequest, { upstreamHeaders }: Call): string[] =>
  upstreamHeaders.length === 0 ? (headers as string[]) : [...headers, ...upstreamHeaders]
