import type { GatewayError } from '../errors/gateway-error.js'
import { type Call, callerLeft } from '../http/call.js'
import type { CallOutcome } from '../observability/call-endings.js'
import type { Allowance, SpentLimit, TokensAndAudio } from './allowance.js'
import type { LimitAccount } from './limit-account.js'
import { remainingOf, resetMsOf, writeLimitHeaders } from './limit-headers.js'
import { HELD_LIMIT_NAMES, type HeldLimitName, type LimitName, type MinuteLimitName } from './limit-names.js'
import { heldRefusal, neverFits, shownRefusal, spentMessage, windowRefusal } from './limit-refusal.js'
import type { Addition } from './limit-windows.js'
import { usedBy } from './settlement.js'

/** What a call uses, and the limit it counts against. */
const USES = [
  ['tokens', 'tokensPerMinute'],
  ['audioSeconds', 'audioSecondsPerMinute'],
] as const

/** What a call is, as far as limits ask. */
export interface CallKind {
  /** Counts as a request of its minute. */
  readonly isWork: boolean
  readonly isSession: boolean
}

/** The account of one call with its key's limits: what it holds, what it has reserved, and how both end. */
export class CallAllowance implements Allowance {
  private readonly held = new Set<HeldLimitName>()
  private readonly reserved = new Map<MinuteLimitName, Addition>()
  private hasExpected = false
  private hasSpent = false
  private isOver = false

  constructor(
    private readonly call: Call,
    private readonly account: LimitAccount,
    /** Among the calls of all replicas. */
    private readonly id: string,
    private readonly onRefusal: (name: LimitName) => void,
  ) {}

  /** Counts the call in. Throws `rate_limited`, holding nothing, when a limit is reached. */
  async enter({ isWork, isSession }: CallKind): Promise<true> {
    const [request] = await Promise.all([
      isWork ? this.account.add('requestsPerMinute', 1) : undefined,
      this.take('concurrency'),
      isSession ? this.take('realtimeSessions') : undefined,
      ...(isSession ? USES.map(([, name]) => this.account.peek(name)) : []),
    ])
    if (this.isOver) this.leave()
    const missing = HELD_LIMIT_NAMES.find((name) => this.wants(name, isSession) && !this.held.has(name))
    if (missing !== undefined) {
      // What is refused because of others is no request yet.
      if (request?.fits === true) void this.account.settle('requestsPerMinute', request, 0)
      throw this.refuse(missing, heldRefusal(missing, this.account))
    }
    if (request?.fits === false) throw this.refuse('requestsPerMinute', this.windowError('requestsPerMinute', 1))
    const spent = isSession ? this.spentName() : undefined
    if (spent !== undefined) throw this.refuse(spent, this.windowError(spent, 1))
    this.writeHeaders()
    return true
  }

  async expect(use: TokensAndAudio): Promise<void> {
    if (this.hasExpected) return
    this.hasExpected = true
    for (const [unit, name] of USES) {
      const asked = use[unit] ?? 0
      if (asked > (this.account.limits[name] ?? Infinity)) throw this.refuse(name, neverFits(name, this.account, asked))
    }
    await Promise.all(USES.map(([unit, name]) => this.reserve(name, use[unit] ?? 0)))
    const refused = USES.find(([, name]) => this.reserved.get(name)?.fits === false)
    if (refused === undefined && !this.isOver) {
      this.writeHeaders()
      return
    }
    this.settle({ tokens: 0, audioSeconds: 0 })
    if (refused === undefined) throw callerLeft()
    const [unit, name] = refused
    throw this.refuse(name, this.windowError(name, use[unit] ?? 0))
  }

  spend(use: TokensAndAudio): void {
    this.hasSpent = true
    for (const [unit, name] of USES) void this.account.settle(name, undefined, use[unit] ?? 0)
  }

  spentLimit(): SpentLimit | undefined {
    const name = this.spentName()
    const state = name === undefined ? undefined : this.account.lastSeen(name)
    if (name === undefined || state === undefined) return undefined
    return { message: spentMessage(name, this.account, resetMsOf(state)), endsAtMs: state.endsAtMs }
  }

  /** The call is over: gives back what it held, and settles what it reserved. */
  end(outcome: CallOutcome): void {
    this.isOver = true
    this.letGo()
    if (!this.hasSpent) this.settle(usedBy(this.call, outcome))
  }

  private wants(name: HeldLimitName, isSession: boolean): boolean {
    return this.account.limits[name] !== undefined && (name !== 'realtimeSessions' || isSession)
  }

  private async take(name: HeldLimitName): Promise<void> {
    if (this.account.limits[name] !== undefined && (await this.account.take(name, this.id))) this.held.add(name)
  }

  private async reserve(name: MinuteLimitName, amount: number): Promise<void> {
    const addition = amount > 0 ? await this.account.add(name, amount) : undefined
    if (addition !== undefined) this.reserved.set(name, addition)
  }

  /** A unit whose use is not known stays as it was reserved. */
  private settle(used: TokensAndAudio): void {
    for (const [unit, name] of USES) {
      const amount = used[unit]
      if (amount !== undefined) void this.account.settle(name, this.reserved.get(name), amount)
    }
    this.reserved.clear()
  }

  private letGo(): void {
    for (const name of this.held) this.account.release(name, this.id)
    this.held.clear()
  }

  /** The caller left before the call was counted in. */
  private leave(): never {
    this.letGo()
    throw callerLeft()
  }

  /** The limit of tokens or audio of which nothing is left. */
  private spentName(): MinuteLimitName | undefined {
    const isSpent = (name: MinuteLimitName): boolean => {
      const state = this.account.limits[name] === undefined ? undefined : this.account.lastSeen(name)
      return state !== undefined && state.used >= state.allowed
    }
    return USES.map(([, name]) => name).find(isSpent)
  }

  private windowError(name: MinuteLimitName, asked: number): GatewayError {
    const state = this.account.lastSeen(name)
    const remaining = remainingOf(name, this.account.limits[name] ?? 0, state)
    return windowRefusal(name, this.account, { resetMs: resetMsOf(state), remaining, asked })
  }

  /** A refused call holds nothing, however long its caller takes to hear of it. */
  private refuse(name: LimitName, error: GatewayError): GatewayError {
    this.letGo()
    this.onRefusal(name)
    this.call.answerHeaders['x-gateway-limit'] = shownRefusal(name, this.account.scope, error)
    this.writeHeaders()
    return error
  }

  private writeHeaders(): void {
    const { answerHeaders, path } = this.call
    writeLimitHeaders(answerHeaders, path, this.account.limits, (name) => this.account.lastSeen(name))
  }
}
