import type { GatewayError } from '../core/errors.js'
import type {
  Quota,
  EstimatedUse,
  ConcurrencyLimitName,
  LimitName,
  MinuteLimitName,
  ExhaustedLimit,
  TokensAndAudio,
  Reservation,
} from '../core/quota.js'
import { type RequestContext, type RequestLog, clientDisconnected } from '../core/request-context.js'
import type { RequestOutcome } from '../observability/request-hooks.js'
import type { Addition, MaybePromise } from './counters.js'
import type { KeyLimiter } from './key-limiter.js'
import { concurrencyRefusal, neverFits, shownRefusal, windowRefusal, writeLimitHeaders } from './limit-errors.js'
import { RequestReservation, usedBy, SessionReservations } from './reservations.js'

/** Which limits apply to a request. */
export interface CallKind {
  /** Counts against `requestsPerMinute`. */
  readonly countsAsRequest: boolean
  readonly isSession: boolean
}

/** Settings shared by all requests. */
export interface QuotaSettings {
  readonly countRefusal: (name: LimitName) => void
  /** Tokens reserved for each response without a maximum. */
  readonly expectedOutputTokens: number
  /** Whether the model thinks without showing it. */
  readonly mayHideTokens: (log: RequestLog) => boolean
  readonly isRedisAway: () => boolean
}

/**
 * What one request holds and has reserved of its key's limits. Synchronous when counted in this process: promises would cost
 * a limited request more than all the rest.
 */
export class RequestQuota implements Quota {
  refusedBy: LimitName | undefined
  isUsedUp = false
  private request: Addition | undefined
  private hasSlot = false
  private hasSession = false
  private readonly reservation: RequestReservation
  /** Reservations of a session; other requests have just one. */
  private work: SessionReservations | undefined
  private hasReserved = false
  private hasConsumed = false
  private isOver = false

  constructor(
    private readonly call: RequestContext,
    private readonly keyLimiter: KeyLimiter,
    /** Unique among the requests of all replicas. */
    private readonly id: string,
    private readonly settings: QuotaSettings,
  ) {
    this.reservation = new RequestReservation(keyLimiter)
  }

  /** Counts the request. Throws, or rejects with, `rate_limited`, holding nothing, when a limit is reached. */
  enter({ countsAsRequest, isSession }: CallKind): true | Promise<true> {
    const { keyLimiter, id } = this
    const request = countsAsRequest ? keyLimiter.add('requestsPerMinute', 1) : undefined
    const slot = keyLimiter.take('concurrency', id)
    const session = !isSession || keyLimiter.take('realtimeSessions', id)
    const tokens = isSession ? keyLimiter.peek('tokensPerMinute') : undefined
    const audio = isSession ? keyLimiter.peek('audioSecondsPerMinute') : undefined
    if (
      !(request instanceof Promise || slot instanceof Promise || session instanceof Promise) &&
      !(tokens instanceof Promise || audio instanceof Promise)
    )
      return this.entered(request, slot, session, isSession)
    return Promise.all([request, slot, session, tokens, audio]).then(([counted, hasSlot, hasSession]) =>
      this.entered(counted, hasSlot, hasSession, isSession),
    )
  }

  reserveEstimate(use: EstimatedUse): Promise<void> | undefined {
    if (this.hasReserved) return undefined
    this.hasReserved = true
    const tooMuch = this.reservation.plan(use, this.settings.expectedOutputTokens)
    if (tooMuch !== undefined)
      throw this.refuse(tooMuch, neverFits(tooMuch, this.keyLimiter, this.reservation.requested(tooMuch)))
    const making = this.reservation.make()
    if (making === undefined) this.reserved()
    return making?.then(() => {
      this.reserved()
    })
  }

  reserve(use: EstimatedUse): MaybePromise<Reservation> {
    this.hasConsumed = true
    return this.sessionWork().make(use)
  }

  consume(use: TokensAndAudio): void {
    this.hasConsumed = true
    this.reservation.settle(use)
  }

  exhaustedLimit(): ExhaustedLimit | undefined {
    return this.sessionWork().exhaustedLimit()
  }

  countRefusal(limit: LimitName): void {
    this.settings.countRefusal(limit)
  }

  addHeaders(headers: Record<string, unknown>): void {
    writeLimitHeaders(headers, this.call.dialect, this.keyLimiter.limits, this.keyLimiter)
  }

  /** Releases the leases and settles the reservation of a request that is over. */
  end(outcome: RequestOutcome): void {
    this.isOver = true
    this.release()
    this.work?.end()
    if (this.hasConsumed) return
    const { reservation, call } = this
    this.reservation.settle(
      usedBy(call, outcome, {
        tokens: reservation.requested('tokensPerMinute'),
        hasAudio: reservation.hasAudio,
        mayHideTokens: this.settings.mayHideTokens(call.log),
      }),
    )
  }

  private entered(request: Addition | undefined, hasSlot: boolean, hasSession: boolean, isSession: boolean): true {
    this.request = request
    this.hasSlot = hasSlot
    this.hasSession = isSession && hasSession
    // The client disconnected before the request was counted.
    if (this.isOver) {
      this.release()
      throw clientDisconnected()
    }
    if (!hasSlot) throw this.refuseConcurrency('concurrency')
    if (!hasSession) throw this.refuseConcurrency('realtimeSessions')
    if (request?.fits === false) throw this.refuseWindow('requestsPerMinute', 1)
    const exhausted = isSession ? this.keyLimiter.exhaustedName() : undefined
    if (exhausted !== undefined) throw this.refuseWindow(exhausted, 1)
    return true
  }

  private sessionWork(): SessionReservations {
    this.work ??= new SessionReservations(this.keyLimiter, this.settings.expectedOutputTokens)
    return this.work
  }

  private reserved(): void {
    const { refused } = this.reservation
    if (refused === undefined && !this.isOver) return
    const requested = refused === undefined ? 0 : this.reservation.requested(refused)
    this.reservation.settle({ tokens: 0, audioSeconds: 0 })
    if (refused === undefined) throw clientDisconnected()
    throw this.refuseWindow(refused, requested)
  }

  private release(): void {
    if (this.hasSlot) this.keyLimiter.release('concurrency', this.id)
    if (this.hasSession) this.keyLimiter.release('realtimeSessions', this.id)
    this.hasSlot = this.hasSession = false
  }

  private refuseWindow(name: MinuteLimitName, requested: number): GatewayError {
    return this.refuse(name, windowRefusal(name, this.keyLimiter, requested))
  }

  /** A request refused because of others in progress does not count against `requestsPerMinute`. */
  private refuseConcurrency(name: ConcurrencyLimitName): GatewayError {
    if (this.request?.fits === true) this.keyLimiter.settle('requestsPerMinute', this.request, 0)
    return this.refuse(name, concurrencyRefusal(name, this.keyLimiter))
  }

  /** Releases the leases at once, however long the client takes to read the refusal. */
  private refuse(name: LimitName, error: GatewayError): GatewayError {
    this.release()
    this.refusedBy = name
    this.isUsedUp = name === 'requestsPerMinute' && !this.settings.isRedisAway()
    this.settings.countRefusal(name)
    this.call.responseHeaders['x-gateway-limit'] = shownRefusal(name, this.keyLimiter.scope, error)
    return error
  }
}
