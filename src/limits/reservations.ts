import type { EstimatedUse, ExhaustedLimit, TokensAndAudio, Reservation } from '../core/quota.js'
import type { RequestContext, RequestLog, Units } from '../core/request-context.js'
import { countedUnits } from '../core/usage-record.js'
import type { RequestOutcome } from '../observability/request-hooks.js'
import type { Addition, MaybePromise } from './counters.js'
import type { ReservedPoints, KeyLimiter, ReservedName } from './key-limiter.js'
import { resetMsOf, exhaustedMessage, windowRefusal } from './limit-errors.js'

const ERRORS_FROM = 400

/** What a speech has used of audio: counted by the gateway, and not billed. */
const SPOKEN = 'spoken_seconds'

/**
 * What a call that is over has used. A unit of which its usage says nothing is absent where what was expected of the
 * call has to do (its answer was complete or on its way, or its caller left while the upstream worked), and 0 where
 * the call was not served. `hasAudio`: seconds are of interest.
 */
export function usedBy(
  { log, disconnect }: RequestContext,
  outcome: RequestOutcome,
  hasAudio: boolean,
): TokensAndAudio {
  const hasFailed = !outcome.left && outcome.status >= ERRORS_FROM
  if (hasFailed || log.attempts.length === 0) return NOTHING
  const known = log.usage === undefined ? UNKNOWN : tokensAndAudio(log.usage.units)
  const audioSeconds = hasAudio ? (known.audioSeconds ?? countedSeconds(log)) : undefined
  const isPaid = disconnect.aborted ? log.bytesOut > 0 || (outcome.left && wasAtWork(log)) : log.failure === undefined
  if (!isPaid) return { tokens: known.tokens ?? 0, audioSeconds: audioSeconds ?? 0 }
  return { tokens: outcome.left && lacksResponse(log) ? undefined : known.tokens, audioSeconds }
}

const NOTHING: TokensAndAudio = { tokens: 0, audioSeconds: 0 }
const UNKNOWN: TokensAndAudio = {}

/** Whether the last attempt was with its upstream when the caller left. */
function wasAtWork({ attempts, upstreamMs }: RequestLog): boolean {
  const failure = attempts.at(-1)?.failure
  return upstreamMs > 0 && (failure === undefined || failure === 'caller_left')
}

/** An estimate of the prompt says nothing of the answer that the upstream was at. */
const lacksResponse = ({ usage }: RequestLog): boolean =>
  usage?.estimated === true && countedUnits(usage.units).completionTokens === undefined

/** Also where the upstream has reported its usage, but only in characters. */
function countedSeconds({ usage, usageReader: reader }: RequestLog): number | undefined {
  const seconds = usage?.units[SPOKEN] ?? reader?.estimate?.()?.units[SPOKEN]
  return typeof seconds === 'number' ? seconds : undefined
}

/** Prompt and completion together; seconds where the upstream counts any. */
export function tokensAndAudio(units: Units): TokensAndAudio {
  const { promptTokens, completionTokens, audioSeconds } = countedUnits(units)
  const hasTokens = promptTokens !== undefined || completionTokens !== undefined
  return { tokens: hasTokens ? (promptTokens ?? 0) + (completionTokens ?? 0) : undefined, audioSeconds }
}

/** The tokens and the seconds that one call has reserved, and what becomes of them. */
export class RequestReservation {
  private tokensRequested = 0
  private secondsRequested = 0
  private tokens: Addition | undefined
  private seconds: Addition | undefined

  constructor(private readonly keyLimiter: KeyLimiter) {}

  get hasAudio(): boolean {
    return this.seconds !== undefined
  }

  requested(name: ReservedName): number {
    return name === 'tokensPerMinute' ? this.tokensRequested : this.secondsRequested
  }

  /**
   * Which limit is less than what is asked for, so that no minute has room for it. What is guessed has room in an empty
   * one, however much it is.
   */
  plan(
    { tokens = 0, audioSeconds = 0, unboundedResponses = 0, isGuess = false }: EstimatedUse,
    expectedOutputTokens: number,
  ): ReservedName | undefined {
    const { tokensPerMinute = Infinity, audioSecondsPerMinute = Infinity } = this.keyLimiter.limits
    this.secondsRequested = isGuess ? Math.min(audioSecondsPerMinute, audioSeconds) : audioSeconds
    this.tokensRequested = isGuess ? Math.min(tokensPerMinute, tokens) : tokens
    if (this.tokensRequested > tokensPerMinute) return 'tokensPerMinute'
    if (this.secondsRequested > audioSecondsPerMinute) return 'audioSecondsPerMinute'
    this.tokensRequested = Math.min(tokensPerMinute, this.tokensRequested + unboundedResponses * expectedOutputTokens)
    return undefined
  }

  /** Reserves what was planned; undefined where there is nothing to wait for. */
  make(): Promise<void> | undefined {
    const tokens = this.add('tokensPerMinute', this.tokensRequested)
    const seconds = this.add('audioSecondsPerMinute', this.secondsRequested)
    if (!(tokens instanceof Promise) && !(seconds instanceof Promise)) {
      this.tokens = tokens
      this.seconds = seconds
      return undefined
    }
    return Promise.all([tokens, seconds]).then((additions) => {
      ;[this.tokens, this.seconds] = additions
    })
  }

  /** The limit that had no room. */
  get refused(): ReservedName | undefined {
    if (this.tokens?.fits === false) return 'tokensPerMinute'
    return this.seconds?.fits === false ? 'audioSecondsPerMinute' : undefined
  }

  /** Points in the open window that allows so many: in none that is over, nor in one that stood in for it meanwhile. */
  held(name: ReservedName, allowed: number): number {
    const addition = name === 'tokensPerMinute' ? this.tokens : this.seconds
    if (addition === undefined || addition.allowed !== allowed || addition.endsAtMs <= performance.now()) return 0
    return addition.counted
  }

  /** A unit whose use is not known stays as it was reserved. What was reserved is settled once. */
  settle({ tokens, audioSeconds }: TokensAndAudio): void {
    if (tokens !== undefined) this.keyLimiter.settle('tokensPerMinute', this.tokens, tokens)
    if (audioSeconds !== undefined) this.keyLimiter.settle('audioSecondsPerMinute', this.seconds, audioSeconds)
    this.tokens = undefined
    this.seconds = undefined
  }

  private add(name: ReservedName, amount: number): MaybePromise<Addition | undefined> {
    return amount > 0 ? this.keyLimiter.add(name, amount) : undefined
  }
}

/** Sound comes many times a second, and what is counted elsewhere is not asked for each of them. */
const CHECK_INTERVAL_MS = 1000

/** What the pieces of work of one session hold of its key's limits. None of it is left when the session is over. */
export class SessionReservations {
  private readonly open = new Set<RequestReservation>()
  private isOver = false
  private checkedAtMs = -Infinity

  constructor(
    private readonly keyLimiter: KeyLimiter,
    /** Reserved for an answer that has no maximum. */
    private readonly expectedOutputTokens: number,
  ) {}

  make(use: EstimatedUse): MaybePromise<Reservation> {
    const reservation = new RequestReservation(this.keyLimiter)
    reservation.plan({ ...use, isGuess: true }, this.expectedOutputTokens)
    const making = reservation.make()
    return making === undefined ? this.made(reservation) : making.then(() => this.made(reservation))
  }

  /** As `Allowance` has it. */
  exhaustedLimit(): ExhaustedLimit | undefined {
    const name = this.keyLimiter.exhaustedName(this.held)
    const state = name === undefined ? undefined : this.keyLimiter.lastSeen(name)
    if (name === undefined || state === undefined) return undefined
    this.checkAgain(name)
    return { limit: name, message: exhaustedMessage(name, this.keyLimiter, resetMsOf(state)), endsAtMs: state.endsAtMs }
  }

  /** The session is over: what is not settled is given back, and so is what is still to come. */
  end(): void {
    this.isOver = true
    for (const reservation of this.open) reservation.settle(NOTHING)
    this.open.clear()
  }

  private made(reservation: RequestReservation): Reservation {
    const { refused } = reservation
    const refusal = refused && {
      limit: refused,
      message: windowRefusal(refused, this.keyLimiter, reservation.requested(refused)).message,
    }
    if (refused !== undefined || this.isOver) reservation.settle(NOTHING)
    else this.open.add(reservation)
    const settle = (use: TokensAndAudio): void => {
      this.open.delete(reservation)
      reservation.settle(use)
    }
    return { refusal, settle }
  }

  private readonly held: ReservedPoints = (name, allowed) => {
    let points = 0
    for (const reservation of this.open) points += reservation.held(name, allowed)
    return points
  }

  /** What is missing may only be reserved, and be given back where this process does not see it. */
  private checkAgain(name: ReservedName): void {
    const nowMs = performance.now()
    if (nowMs - this.checkedAtMs < CHECK_INTERVAL_MS) return
    this.checkedAtMs = nowMs
    void this.keyLimiter.peek(name)
  }
}
