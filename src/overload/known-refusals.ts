import { type Dialect, dialectFor, endpointFor, type EndpointSpec, type PathMatch } from '../core/endpoint.js'
import type { Sharer } from '../core/fair-share.js'
import { type ErrorKind, GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import type { RequestOutcome } from '../observability/request-hooks.js'
import type { CallerHeaders } from './caller-resolver.js'

/** Refusals in one second that are made like any other; further ones are made without a request context. */
const ORDINARY_PER_SECOND = 100
const SECOND_MS = 1_000

const MAXIMUM_FAULTS = 256
const LONGEST_FAULT = 600

const OF_KEYS: ReadonlySet<ErrorKind> = new Set(['key_missing', 'key_malformed', 'unauthorized'])

/** A request that was refused, and how often another one was for the same reason. */
export interface KnownRefusal {
  readonly error: GatewayError
  /** Of the answer, beside the error's own: what is left of limits. */
  readonly headers: Readonly<Record<string, string>>
  readonly call: RequestContext
  readonly outcome: RequestOutcome
  readonly untilMs: number
  repeats: number
}

interface KnownRefusalParts {
  /** Why a request to this endpoint has no caller; undefined where it has one, or that is not known yet. Never throws. */
  readonly keyFault: (headers: CallerHeaders, endpoint: EndpointSpec) => GatewayError | undefined
  /** As many more requests have ended like this one. */
  readonly onRepeated: (call: RequestContext, outcome: RequestOutcome, times: number) => void
  readonly nowMs: () => number
}

/**
 * Answers floods of 401 and 429: requests without a valid key, or of a key whose requests per minute are used up. The first of a
 * second are made like any other, and are remembered for a second; further ones for the same reason at the same endpoint are
 * answered like these, for a quarter of the cost, and counted in the same places.
 */
export class KnownRefusals {
  private known = new Map<string, KnownRefusal>()
  /** Of this second, by what was sent. */
  private readonly faults = new Map<string, string | undefined>()
  private secondStartedAtMs = Number.NEGATIVE_INFINITY
  private inSecond = 0
  private timer: NodeJS.Timeout | undefined

  constructor(private readonly parts: KnownRefusalParts) {}

  /** Whether there are so many that `find` is worth its time. */
  get isBusy(): boolean {
    return this.inSecond >= ORDINARY_PER_SECOND && this.isSameSecond(this.parts.nowMs())
  }

  /** The refusal that a request would get, once there are too many to make each of them; it has been counted then. */
  find(match: PathMatch, method: string, sharer: Sharer, headers: CallerHeaders): KnownRefusal | undefined {
    const endpoint = this.isBusy ? endpointFor(match, method) : undefined
    if (endpoint === undefined || endpoint.keyHeaders.length === 0) return undefined
    const reason = sharer.member === undefined ? sharer.keyId : this.faultOf(headers, endpoint)
    if (reason === undefined) return undefined
    const found = this.known.get(keyOf(endpoint, dialectFor(match, headers.isOfMessages), reason))
    if (found === undefined || this.parts.nowMs() >= found.untilMs) return undefined
    found.repeats++
    return found
  }

  /** The message of a fault; a flood sends the same headers again and again. */
  private faultOf(headers: CallerHeaders, endpoint: EndpointSpec): string | undefined {
    const { authorization = '', apiKey = '' } = headers
    const text = `${endpoint.name} ${authorization} ${apiKey}`
    if (this.faults.has(text)) return this.faults.get(text)
    const message = this.parts.keyFault(headers, endpoint)?.message
    if (this.faults.size < MAXIMUM_FAULTS && text.length <= LONGEST_FAULT) this.faults.set(text, message)
    return message
  }

  /** Called at the end of every request. */
  learn(call: RequestContext, outcome: RequestOutcome): void {
    const { log, endpoint, caller } = call
    const { failure } = log
    if (!(failure instanceof GatewayError) || endpoint === undefined || log.attempts.length > 0) return
    const nowMs = this.parts.nowMs()
    const isOfKey = OF_KEYS.has(failure.kind)
    const untilMs = nowMs + (isOfKey ? SECOND_MS : Math.min(SECOND_MS, usedUpMs(call, failure)))
    if (untilMs <= nowMs) return
    if (!this.isSameSecond(nowMs)) this.beginSecond(nowMs)
    this.inSecond++
    const key = keyOf(endpoint, call.dialect, isOfKey ? failure.message : caller.keyId)
    const before = this.known.get(key)
    if (before !== undefined) this.count(before)
    const headers = isOfKey ? {} : limitHeadersOf(call)
    this.known.set(key, { error: failure, headers, call, outcome, untilMs, repeats: 0 })
    this.reportLater()
  }

  private isSameSecond(nowMs: number): boolean {
    return nowMs - this.secondStartedAtMs < SECOND_MS
  }

  /** What was learned in the last one is not valid any more. */
  private beginSecond(nowMs: number): void {
    this.report()
    this.faults.clear()
    this.secondStartedAtMs = nowMs
    this.inSecond = 0
  }

  readonly report = (): void => {
    clearTimeout(this.timer)
    this.timer = undefined
    for (const refusal of this.known.values()) this.count(refusal)
    if (this.isSameSecond(this.parts.nowMs())) this.reportLater()
    else this.known.clear()
  }

  private reportLater(): void {
    this.timer ??= setTimeout(this.report, SECOND_MS).unref()
  }

  private count(refusal: KnownRefusal): void {
    if (refusal.repeats > 0) this.parts.onRepeated(refusal.call, refusal.outcome, refusal.repeats)
    refusal.repeats = 0
  }
}

/** Some endpoints have clients of two dialects, which read errors in two forms. */
const keyOf = ({ name }: EndpointSpec, dialect: Dialect, reason: string): string => `${name} ${dialect} ${reason}`

/** For how long no request of this key can be served, in milliseconds; 0 where that depends on what ends meanwhile. */
function usedUpMs({ quota }: RequestContext, { details: { retryAfterSeconds = 0 } }: GatewayError): number {
  // The seconds were rounded up.
  return quota?.isUsedUp === true ? (retryAfterSeconds - 1) * SECOND_MS : 0
}

/** What belongs to a single response, or to the page that reads it. */
const OF_ONE_RESPONSE = /^(?:connection|vary|access-control-.*)$/

const limitHeadersOf = (call: RequestContext): Record<string, string> =>
  Object.fromEntries(
    Object.entries(call.ownHeaders()).filter(
      ([name, value]) => !OF_ONE_RESPONSE.test(name) && value !== call.requestId,
    ),
  )
