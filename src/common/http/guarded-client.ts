import { Inject, Injectable, Optional, type OnApplicationShutdown } from '@nestjs/common'
import { Client } from 'undici'
import { ConfigStore } from '../../config/config-store.js'
import type { UpstreamTimeouts } from '../../config/gateway-config.js'
import { GatewayError } from '../errors/gateway-error.js'
import {
  AddressRefused,
  checkedLookup,
  isPublicAddress,
  literalAddress,
  resolveHost,
  type ResolveHost,
} from './address-guard.js'
import type { Call } from './call.js'
import { carriedHeaders, hostAndPort, readUrl, redirectLocation, redirectTarget } from './guarded-url.js'
import { UpstreamExchange, type UpstreamResponse } from './upstream-exchange.js'

export interface GuardedRequest {
  readonly call: Call
  /** On the performance clock; bounds all hops together, the body included. */
  readonly deadlineAtMs: number
  /** `connectMs` (the name's resolution included), `firstByteMs` and `idleMs` hold for each hop; `totalMs` is not read. */
  readonly timeouts: UpstreamTimeouts
  /** Names and values in turn. Only harmless ones follow a redirect to another origin. */
  readonly headers?: readonly string[]
  /** Default 3; 0 refuses the first. */
  readonly maximumRedirects?: number
  /** A body that grows beyond it fails with `upstream_failed`; absent = no limit here. */
  readonly maximumBytes?: number
  /** The caller's field that held the URL; absent = an upstream gave it. Decides whose fault a refused URL is. */
  readonly callersField?: string
}

/** Injected by tests only. */
export const RESOLVE_HOST = Symbol('resolve host')

/**
 * The guarded door for URLs that callers or upstreams send: it reaches public addresses only, and what the operator
 * exempts by `ssrf.allow`. Channels' own addresses go through `UpstreamClient` instead.
 *
 * Rejects with a `GatewayError`. A URL that is not allowed, at first or after a redirect, is `invalid_request` with code
 * `url_not_allowed` and the field as `param` where a caller sent it, otherwise `upstream_failed`, a broken answer of the
 * channel; its `cause` is an `AddressRefused`. Failures of the transport are those of `UpstreamClient`.
 */
@Injectable()
export class GuardedClient implements OnApplicationShutdown {
  private readonly running = new Set<Client>()

  constructor(
    private readonly store: ConfigStore,
    @Optional() @Inject(RESOLVE_HOST) private readonly resolve: ResolveHost = resolveHost,
  ) {}

  /** An answer of any status but a redirect that says where to; its body has not been read. */
  async get(url: string, request: GuardedRequest): Promise<UpstreamResponse> {
    try {
      return await this.follow(readUrl(url), request)
    } catch (error) {
      const refusal = refusalIn(error)
      throw refusal === undefined ? error : notAllowed(refusal, request.callersField)
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.running].map((client) => client.destroy()))
  }

  private async follow(first: URL, request: GuardedRequest): Promise<UpstreamResponse> {
    const { maximumRedirects = 3 } = request
    let url = first
    let headers = request.headers ?? []
    for (let redirects = 0; ; redirects++) {
      const response = await this.send(url, headers, request)
      const location = redirectLocation(response)
      if (location === undefined) return response
      response.body.cancel()
      if (redirects >= maximumRedirects) throw new AddressRefused('there are too many redirects')
      const next = redirectTarget(location, url)
      headers = carriedHeaders(headers, url, next)
      url = next
    }
  }

  private send(url: URL, headers: readonly string[], request: GuardedRequest): Promise<UpstreamResponse> {
    const { call, timeouts, deadlineAtMs } = request
    call.assertPresent()
    const client = this.clientFor(url, request)
    return new Promise((resolve, reject) => {
      const fail = (error: GatewayError): void => {
        reject(error)
        // A connection that is still being made has nobody left to wait for it.
        void client.destroy()
      }
      const exchange = new UpstreamExchange(call, Math.max(1, deadlineAtMs - performance.now()), resolve, fail)
      client.dispatch(
        {
          method: 'GET',
          path: url.pathname + url.search,
          headers: headers as string[],
          headersTimeout: timeouts.firstByteMs,
          bodyTimeout: timeouts.idleMs,
          reset: true,
        },
        exchange,
      )
      this.closeAfterUse(client)
    })
  }

  /** One connection for one request: a kept one would outlive its check, and could be found by another caller. */
  private clientFor(url: URL, { timeouts, maximumBytes }: GuardedRequest): Client {
    const isExempt = this.store.current.ssrf.allow.includes(hostAndPort(url))
    const isAccepted = isExempt ? () => true : isPublicAddress
    const literal = literalAddress(url)
    if (literal !== undefined && !isAccepted(literal)) throw new AddressRefused('the address is not public')
    return new Client(url.origin, {
      connect: { timeout: timeouts.connectMs, lookup: checkedLookup(this.resolve, isAccepted) },
      ...(maximumBytes === undefined ? {} : { maxResponseSize: maximumBytes }),
    })
  }

  private closeAfterUse(client: Client): void {
    this.running.add(client)
    const forget = (): void => {
      this.running.delete(client)
    }
    // Closing waits for the answer's end; it is refused where the request has failed already.
    client.close().then(forget, forget)
  }
}

function refusalIn(error: unknown): AddressRefused | undefined {
  if (error instanceof AddressRefused) return error
  const cause = error instanceof GatewayError ? error.details.cause : undefined
  return cause instanceof AddressRefused ? cause : undefined
}

const notAllowed = (cause: AddressRefused, callersField: string | undefined): GatewayError =>
  callersField === undefined
    ? new GatewayError('upstream_failed', 'The upstream answered with a URL that may not be fetched.', {
        cause,
        attempt: { phase: 'answered', channelFault: true },
      })
    : new GatewayError('invalid_request', 'The URL must lead to a public address by http or https.', {
        cause,
        code: 'url_not_allowed',
        param: callersField,
      })
