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
import { type RequestContext, clientDisconnected } from '../core/request-context.js'
import type { RequestOutcome } from '../observability/request-hooks.js'
import type { Addition, MaybePromise } from './counters.js'
import type { KeyLimiter } from './key-limiter.js'
import { concurrencyRefusal, neverFits, shownRefusal, windowRefusal, writeLimitHeaders } from './limit-errors.js'
import { RequestReservation, usedBy, SessionReservations } from './reservations.js'

/** What a call is, as far as limits ask. */
export interface CallKind {
  /** Counts as a request of its minute. */
  readonly countsAsRequest: boolean
  readonly isSession: boolean
}

/** What is the same for all calls. */
export interface QuotaSettings {
  readonly countRefusal: (name: LimitName) => void
  /** Reserved for each answer that has no maximum. */
  readonly expectedOutputTokens: number
}

/**
 * The account of one call with its key's limits: what it holds, what it has reserved, and how both end. Where this process
 * counts by itself nothing is waited for: promises cost a limited call more than all the rest.
 */
export class RequestQuota implements Quota {
  private request: Addition | undefined
  private hasSlot = false
  private hasSession = false
  private readonly reservation: RequestReservation
  /** Of a session; other calls have but one reservation. */
  private work: SessionReservations | undefined
  private hasReserved = false
  private hasConsumed = false
  private isOver = false

  constructor(
    private readonly call: RequestContext,
    private readonly keyLimiter: KeyLimiter,
    /** Among the calls of all replicas. */
    private readonly id: string,
    private readonly settings: QuotaSettings,
  ) {
    this.reservation = new RequestReservation(keyLimiter)
  }

  /** Counts the call in. Throws, or rejects with, `rate_limited`, holding nothing, when a limit is reached. */
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

  /** The call is over: gives back what it held, and settles what it reserved. */
  end(outcome: RequestOutcome): void {
    this.isOver = true
    this.release()
    this.work?.end()
    if (!this.hasConsumed) this.reservation.settle(usedBy(this.call, outcome, this.reservation.hasAudio))
  }

  private entered(request: Addition | undefined, hasSlot: boolean, hasSession: boolean, isSession: boolean): true {
    this.request = request
    this.hasSlot = hasSlot
    this.hasSession = isSession && hasSession
    // The caller left before the call was counted in.
    if (this.isOver) {
      this.release()
      throw clientDisconnected()
    }
    if (!hasSlot) throw this.refuseConcurrency('concurrency')
    if (!hasSession) throw this.refuseConcurrency('realtimeSessions')
    if (request?.fits === false) throw this.refuseWindow('requestsPerMinute', 1)
    const exhausted = isSession ? this.keyLimiter.exhaustedName() : undefined
    if (exhausted !== undefined) throw this.refuseWindow(exhausted, 1)
    this.writeHeaders()
    return true
  }

  private sessionWork(): SessionReservations {
    this.work ??= new SessionReservations(this.keyLimiter, this.settings.expectedOutputTokens)
    return this.work
  }

  private reserved(): void {
    const { refused } = this.reservation
    if (refused === undefined && !this.isOver) {
      this.writeHeaders()
      return
    }
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

  /** What is refused because of others is no request yet. */
  private refuseConcurrency(name: ConcurrencyLimitName): GatewayError {
    if (this.request?.fits === true) this.keyLimiter.settle('requestsPerMinute', this.request, 0)
    return this.refuse(name, concurrencyRefusal(name, this.keyLimiter))
  }

  /** A refused call holds nothing, however long its caller takes to hear of it. */
  private refuse(name: LimitName, error: GatewayError): GatewayError {
    this.release()
    this.settings.countRefusal(name)
    this.call.responseHeaders['x-gateway-limit'] = shownRefusal(name, this.keyLimiter.scope, error)
    this.writeHeaders()
    return error
  }

  private writeHeaders(): void {
    const { responseHeaders, dialect } = this.call
    writeLimitHeaders(responseHeaders, dialect, this.keyLimiter.limits, this.keyLimiter)
  }
}
