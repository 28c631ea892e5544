import type { GatewayError } from '../core/errors.js'
import type {
  Allowance,
  ExpectedUse,
  HeldLimitName,
  LimitName,
  MinuteLimitName,
  SpentLimit,
  TokensAndAudio,
  WorkReservation,
} from '../core/quota.js'
import { type Call, callerLeft } from '../core/request-context.js'
import type { CallOutcome } from '../observability/request-hooks.js'
import type { Addition, Soon } from './counters.js'
import type { LimitAccount } from './limit-account.js'
import { heldRefusal, neverFits, shownRefusal, windowRefusal, writeLimitHeaders } from './limit-errors.js'
import { CallReservation, usedBy, WorkReservations } from './reservations.js'

/** What a call is, as far as limits ask. */
export interface CallKind {
  /** Counts as a request of its minute. */
  readonly isWork: boolean
  readonly isSession: boolean
}

/** What is the same for all calls. */
export interface AllowanceTerms {
  readonly noteRefusal: (name: LimitName) => void
  /** Reserved for each answer that has no maximum. */
  readonly expectedOutputTokens: number
}

/**
 * The account of one call with its key's limits: what it holds, what it has reserved, and how both end. Where this process
 * counts by itself nothing is waited for: promises cost a limited call more than all the rest.
 */
export class CallAllowance implements Allowance {
  private request: Addition | undefined
  private hasPlace = false
  private hasSession = false
  private readonly reservation: CallReservation
  /** Of a session; other calls have but one reservation. */
  private work: WorkReservations | undefined
  private hasExpected = false
  private hasSpent = false
  private isOver = false

  constructor(
    private readonly call: Call,
    private readonly account: LimitAccount,
    /** Among the calls of all replicas. */
    private readonly id: string,
    private readonly terms: AllowanceTerms,
  ) {
    this.reservation = new CallReservation(account)
  }

  /** Counts the call in. Throws, or rejects with, `rate_limited`, holding nothing, when a limit is reached. */
  enter({ isWork, isSession }: CallKind): true | Promise<true> {
    const { account, id } = this
    const request = isWork ? account.add('requestsPerMinute', 1) : undefined
    const place = account.take('concurrency', id)
    const session = !isSession || account.take('realtimeSessions', id)
    const tokens = isSession ? account.peek('tokensPerMinute') : undefined
    const audio = isSession ? account.peek('audioSecondsPerMinute') : undefined
    if (
      !(request instanceof Promise || place instanceof Promise || session instanceof Promise) &&
      !(tokens instanceof Promise || audio instanceof Promise)
    )
      return this.entered(request, place, session, isSession)
    return Promise.all([request, place, session, tokens, audio]).then(([counted, hasPlace, hasSession]) =>
      this.entered(counted, hasPlace, hasSession, isSession),
    )
  }

  expect(use: ExpectedUse): Promise<void> | undefined {
    if (this.hasExpected) return undefined
    this.hasExpected = true
    const tooMuch = this.reservation.plan(use, this.terms.expectedOutputTokens)
    if (tooMuch !== undefined)
      throw this.refuse(tooMuch, neverFits(tooMuch, this.account, this.reservation.asked(tooMuch)))
    const making = this.reservation.make()
    if (making === undefined) this.reserved()
    return making?.then(() => {
      this.reserved()
    })
  }

  reserve(use: ExpectedUse): Soon<WorkReservation> {
    this.hasSpent = true
    return this.sessionWork().make(use)
  }

  spend(use: TokensAndAudio): void {
    this.hasSpent = true
    this.reservation.settle(use)
  }

  spentLimit(): SpentLimit | undefined {
    return this.sessionWork().spentLimit()
  }

  noteRefusal(limit: LimitName): void {
    this.terms.noteRefusal(limit)
  }

  /** The call is over: gives back what it held, and settles what it reserved. */
  end(outcome: CallOutcome): void {
    this.isOver = true
    this.letGo()
    this.work?.end()
    if (!this.hasSpent) this.reservation.settle(usedBy(this.call, outcome, this.reservation.hasAudio))
  }

  private entered(request: Addition | undefined, hasPlace: boolean, hasSession: boolean, isSession: boolean): true {
    this.request = request
    this.hasPlace = hasPlace
    this.hasSession = isSession && hasSession
    // The caller left before the call was counted in.
    if (this.isOver) {
      this.letGo()
      throw callerLeft()
    }
    if (!hasPlace) throw this.refuseHeld('concurrency')
    if (!hasSession) throw this.refuseHeld('realtimeSessions')
    if (request?.fits === false) throw this.refuseWindow('requestsPerMinute', 1)
    const spent = isSession ? this.account.spentName() : undefined
    if (spent !== undefined) throw this.refuseWindow(spent, 1)
    this.writeHeaders()
    return true
  }

  private sessionWork(): WorkReservations {
    this.work ??= new WorkReservations(this.account, this.terms.expectedOutputTokens)
    return this.work
  }

  private reserved(): void {
    const { refused } = this.reservation
    if (refused === undefined && !this.isOver) {
      this.writeHeaders()
      return
    }
    const asked = refused === undefined ? 0 : this.reservation.asked(refused)
    this.reservation.settle({ tokens: 0, audioSeconds: 0 })
    if (refused === undefined) throw callerLeft()
    throw this.refuseWindow(refused, asked)
  }

  private letGo(): void {
    if (this.hasPlace) this.account.release('concurrency', this.id)
    if (this.hasSession) this.account.release('realtimeSessions', this.id)
    this.hasPlace = this.hasSession = false
  }

  private refuseWindow(name: MinuteLimitName, asked: number): GatewayError {
    return this.refuse(name, windowRefusal(name, this.account, asked))
  }

  /** What is refused because of others is no request yet. */
  private refuseHeld(name: HeldLimitName): GatewayError {
    if (this.request?.fits === true) this.account.settle('requestsPerMinute', this.request, 0)
    return this.refuse(name, heldRefusal(name, this.account))
  }

  /** A refused call holds nothing, however long its caller takes to hear of it. */
  private refuse(name: LimitName, error: GatewayError): GatewayError {
    this.letGo()
    this.terms.noteRefusal(name)
    this.call.answerHeaders['x-gateway-limit'] = shownRefusal(name, this.account.scope, error)
    this.writeHeaders()
    return error
  }

  private writeHeaders(): void {
    const { answerHeaders, path } = this.call
    writeLimitHeaders(answerHeaders, path, this.account.limits, this.account)
  }
}
