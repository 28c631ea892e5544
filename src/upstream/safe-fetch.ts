import { Injectable, type OnApplicationShutdown, type OnModuleInit, Optional } from '@nestjs/common'
import type { UpstreamTimeouts } from '../config/channel-schema.js'
import { ConfigStore } from '../config/config-store.js'
import type { ByteSource } from '../core/byte-stream.js'
import { GatewayError, hasCode } from '../core/errors.js'
import {
  AddressRefused,
  admit,
  assertGuardHolds,
  carriedHeaders,
  checkedLookup,
  literalAddress,
  readUrl,
  redirectLocation,
  redirectTarget,
  resolveChecked,
  type ResolveHost,
  resolveHost,
  TooManyRedirects,
} from './ssrf-guard.js'
import { ConnectionPool } from './connection-pool.js'
import { type ExchangeContext, UpstreamExchange, type UpstreamResponse } from './exchange.js'
import { outgoingRequest } from './http-request.js'

/**
 * A resolver with a limit of lookups at once. A lookup of the system cannot be cancelled and occupies one of the process's
 * few threads: abandoned lookups would delay all others. Beyond the limit it fails with `EAI_AGAIN`.
 */
export function boundedLookups(resolve: ResolveHost, most: number): ResolveHost {
  let running = 0
  return async (host) => {
    if (running >= most) throw Object.assign(new Error('too many names are being looked up'), { code: 'EAI_AGAIN' })
    running++
    try {
      return await resolve(host)
    } finally {
      running--
    }
  }
}

/** Runs the work; a refused address becomes the error of the party that gave the URL. */
async function explained<Result>(callersField: string | undefined, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    const refusal = refusalIn(error)
    throw refusal === undefined ? error : notAllowed(refusal, callersField)
  }
}

/** The guard's refusal in an error; undefined for every other error. */
export function refusalIn(error: unknown): AddressRefused | undefined {
  if (error instanceof AddressRefused) return error
  const cause = error instanceof GatewayError ? error.details.cause : undefined
  return cause instanceof AddressRefused ? cause : undefined
}

const notAllowed = (cause: AddressRefused, callersField: string | undefined): GatewayError =>
  callersField === undefined
    ? new GatewayError('upstream_failed', 'The upstream answered with a URL that may not be fetched.', {
        cause,
        attempt: { phase: 'answered', channelError: true },
      })
    : new GatewayError('invalid_request', publicAddressOnly(callersField), {
        cause,
        code: 'url_not_allowed',
        param: callersField,
      })

const publicAddressOnly = (field: string): string =>
  `Invalid '${field}': it must lead to a public address by http or https. The operator exempts others by ssrf.allow (host:port).`

/** Waits at most `limitMs` for the check of a host's addresses; rejects with `AddressRefused` alone, as a later use checks again. */
async function refusalWithin(limitMs: number, resolution: Promise<unknown>): Promise<void> {
  try {
    await checkedWithin(limitMs, resolution, '')
  } catch (error) {
    if (error instanceof AddressRefused) throw error
  }
}

/**
 * The same where no later check follows: a check without a result rejects, too, with `upstream_timeout` or
 * `upstream_failed`. A host that does not exist passes: another resolver may know that name.
 */
async function checkedWithin(limitMs: number, resolution: Promise<unknown>, callersField: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new GatewayError('upstream_timeout', `The host of '${callersField}' could not be looked up in time.`))
    }, limitMs)
  })
  const checked = resolution.catch((error: unknown) => {
    if (error instanceof AddressRefused) throw error
    if (!isUnknownHost(error)) throw notResolved(callersField, error)
  })
  await Promise.race([checked, limit]).finally(() => {
    clearTimeout(timer)
  })
}

/** The name server answered that there is no such name, or none with an address. */
const isUnknownHost = (error: unknown): boolean => hasCode(error, 'ENOTFOUND') || hasCode(error, 'ENODATA')

const notResolved = (callersField: string, cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', `The host of '${callersField}' could not be looked up.`, { cause })

export interface SafeFetchRequest {
  readonly context: ExchangeContext
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
  /** Called with each URL before it is requested, the first one included; its error is the request's error. */
  readonly assertWanted?: (url: string) => void
  /** The caller's field that held the URL; absent = an upstream gave it. Decides whose fault a refused URL is. */
  readonly callersField?: string
}

export interface SafeFetchPost extends Omit<SafeFetchRequest, 'maximumRedirects' | 'maximumBytes' | 'assertWanted'> {
  readonly body: Buffer
  /** The URL may name this machine; absent = no. */
  readonly mayBeLoopback?: boolean
}

export interface SafeFetchResponse extends UpstreamResponse {
  /** Where the answer came from, after all redirects. */
  readonly url: string
}

/** The receiver's response is not used; this much of it is read, so that its connection is not cut. */
const DROPPED_BYTES = 65_536

/** At once, abandoned ones included. Two at a time have a thread. */
const MAXIMUM_LOOKUPS = 128

interface Outgoing {
  readonly method: 'GET' | 'POST'
  readonly headers: readonly string[]
  readonly body: Buffer | null
}

/**
 * HTTP client for URLs that callers or upstreams send: it reaches public addresses only, and those in `ssrf.allow`.
 * Channels' own addresses go through `UpstreamClient` instead.
 *
 * Rejects with a `GatewayError`. A URL that is not allowed, at first or after a redirect, is `invalid_request` with code
 * `url_not_allowed` and the field as `param` where a caller sent it, otherwise `upstream_failed`, a broken answer of the
 * channel; its `cause` is an `AddressRefused`. Failures of the transport are those of `UpstreamClient`.
 */
@Injectable()
export class SafeFetchClient implements OnModuleInit, OnApplicationShutdown {
  private readonly running = new Set<ConnectionPool>()
  private readonly resolve: ResolveHost

  /** The resolver is set by tests only. */
  constructor(
    private readonly store: ConfigStore,
    @Optional() resolve: ResolveHost = resolveHost,
  ) {
    this.resolve = boundedLookups(resolve, MAXIMUM_LOOKUPS)
  }

  /** Rejects, so that nothing starts, when the guard lets something through that it must refuse. */
  async onModuleInit(): Promise<void> {
    await assertGuardHolds()
  }

  /** An answer of any status but a redirect that says where to; its body has not been read. */
  get(url: string, request: SafeFetchRequest): Promise<SafeFetchResponse> {
    return explained(request.callersField, () => this.follow(readUrl(url), request))
  }

  /**
   * Sends a body once. An answer of any status, redirects included, which are not followed; its own body is dropped. The
   * answer counts from its head on: a body that breaks off, or goes on too long, changes nothing.
   */
  async post(url: string, request: SafeFetchPost): Promise<Pick<UpstreamResponse, 'status' | 'headers'>> {
    const { body, headers = [], callersField } = request
    const outgoing = { method: 'POST', headers, body } as const
    const response = await explained(callersField, () =>
      this.send(readUrl(url), outgoing, { ...request, maximumBytes: DROPPED_BYTES }),
    )
    await ended(response.body)
    return { status: response.status, headers: response.headers }
  }

  /**
   * Checks a caller's URL before it is used: rejects as `get` would. A host that no name server knows within `resolveMs`
   * passes, as it may be known later; every URL is checked again when it is used.
   */
  assertAllowed(url: string, callersField: string, resolveMs: number, mayBeLoopback = false): Promise<void> {
    return this.check(url, callersField, (resolution) => refusalWithin(resolveMs, resolution), mayBeLoopback)
  }

  /**
   * The same for a URL that another server will fetch, so that no later check follows: a check that takes longer than
   * `resolveMs` fails with `upstream_timeout` or `upstream_failed`. A host that does not exist passes.
   */
  assertAllowedElsewhere(url: string, callersField: string, resolveMs: number): Promise<void> {
    return this.check(url, callersField, (resolution) => checkedWithin(resolveMs, resolution, callersField))
  }

  private check(
    url: string,
    callersField: string,
    settle: (resolution: Promise<unknown>) => Promise<void>,
    mayBeLoopback = false,
  ): Promise<void> {
    return explained(callersField, async () => {
      const target = readUrl(url)
      const isAccepted = admit(target, this.store.current.ssrf.allow, mayBeLoopback)
      if (literalAddress(target) !== undefined) return
      await settle(resolveChecked(target.hostname, this.resolve, isAccepted))
    })
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.running].map((pool) => pool.destroy()))
  }

  private async follow(first: URL, request: SafeFetchRequest): Promise<SafeFetchResponse> {
    const { maximumRedirects = 3 } = request
    let url = first
    let headers = request.headers ?? []
    for (let redirects = 0; ; redirects++) {
      request.assertWanted?.(url.href)
      const response = await this.send(url, { method: 'GET', headers, body: null }, request)
      const location = redirectLocation(response)
      if (location === undefined) return { ...response, url: url.href }
      response.body.cancel()
      if (redirects >= maximumRedirects) throw new TooManyRedirects()
      const next = redirectTarget(location, url)
      headers = carriedHeaders(headers, url, next)
      url = next
    }
  }

  private send(
    url: URL,
    outgoing: Outgoing,
    request: SafeFetchRequest & Pick<SafeFetchPost, 'mayBeLoopback'>,
  ): Promise<UpstreamResponse> {
    const { context, timeouts, deadlineAtMs, maximumBytes = Infinity } = request
    const { firstByteMs, idleMs } = timeouts
    context.disconnect.throwIfAborted()
    const pool = this.poolFor(url, request)
    const { method, headers, body } = outgoing
    const path = url.pathname + url.search
    const parts = { method, path, host: pool.host, headers, body: body === null ? [] : [body], keepsAlive: false }
    const sent = outgoingRequest(parts, { firstByteMs, idleMs, maximumBytes })
    return new Promise((resolve, reject) => {
      const fail = (error: GatewayError): void => {
        reject(error)
        void pool.destroy()
      }
      const exchange = new UpstreamExchange(context, deadlineAtMs, firstByteMs, resolve, fail)
      pool.dispatch(sent, exchange)
      this.running.add(pool)
      void pool.close().then(() => this.running.delete(pool))
    })
  }

  /** One connection for one request: a kept one would outlive its check, and could be found by another caller. */
  private poolFor(
    url: URL,
    { timeouts, mayBeLoopback }: SafeFetchRequest & Pick<SafeFetchPost, 'mayBeLoopback'>,
  ): ConnectionPool {
    const isAccepted = admit(url, this.store.current.ssrf.allow, mayBeLoopback)
    const connect = { timeout: timeouts.connectMs, lookup: checkedLookup(this.resolve, isAccepted) }
    return new ConnectionPool(url.origin, { connect, keepsIdle: false })
  }
}

/** Waits for the rest of a response that is not read; its end makes no difference. */
function ended(body: ByteSource): Promise<void> {
  return new Promise((resolve) => {
    body.start({
      data: () => undefined,
      end: resolve,
      fail: () => {
        resolve()
      },
    })
  })
}
