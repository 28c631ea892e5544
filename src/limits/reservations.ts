import type { EstimatedUse, ExhaustedLimit, TokensAndAudio, Reservation } from '../core/quota.js'
import type { RequestContext, RequestLog, Units } from '../core/request-context.js'
import { countedUnits } from '../core/usage-record.js'
import type { RequestOutcome } from '../observability/request-hooks.js'
import type { Addition, MaybePromise } from './counters.js'
import type { ReservedPoints, KeyLimiter, ReservedName } from './key-limiter.js'
import { resetMsOf, exhaustedMessage, windowRefusal } from './limit-errors.js'

const ERRORS_FROM = 400

/** Seconds of audio in a speech response: counted by the gateway, and not billed. */
const SPOKEN = 'spoken_seconds'

/** What the reservation of a finished request was, and whether its answer may hold more tokens than could be counted. */
interface Reserved {
  readonly tokens: number
  /** Seconds are limited. */
  readonly hasAudio: boolean
  readonly mayHideTokens: boolean
}

/**
 * What a finished request has used. A unit without reported usage is absent if the reservation stands for it (the response
 * was complete or in transfer, or the client disconnected while the upstream worked), and 0 if the request was not
 * served. A client that disconnects before the figures has used its reservation, or what was counted if that is more, where an
 * answer may hold tokens that cannot be counted.
 */
export function usedBy(
  { log, disconnect }: RequestContext,
  outcome: RequestOutcome,
  { tokens, hasAudio, mayHideTokens }: Reserved,
): TokensAndAudio {
  const hasFailed = !outcome.left && outcome.status >= ERRORS_FROM
  if (hasFailed || log.attempts.length === 0) return NOTHING
  const known = log.usage === undefined ? UNKNOWN : tokensAndAudio(log.usage.units)
  const audioSeconds = hasAudio ? (known.audioSeconds ?? countedSeconds(log)) : undefined
  const isPaid = disconnect.aborted ? log.bytesOut > 0 || (outcome.left && wasAtWork(log)) : log.failure === undefined
  if (!isPaid) return { tokens: known.tokens ?? 0, audioSeconds: audioSeconds ?? 0 }
  const isUncounted = outcome.left && (lacksResponse(log) || (mayHideTokens && log.usage?.estimated === true))
  return { tokens: isUncounted && (known.tokens ?? 0) <= tokens ? undefined : known.tokens, audioSeconds }
}

const NOTHING: TokensAndAudio = { tokens: 0, audioSeconds: 0 }
const UNKNOWN: TokensAndAudio = {}

/** Whether the upstream was working on the last attempt when the client disconnected. */
function wasAtWork({ attempts, upstreamMs }: RequestLog): boolean {
  const failure = attempts.at(-1)?.failure
  return upstreamMs > 0 && (failure === undefined || failure === 'caller_left')
}

/** An estimate of the prompt alone does not cover the response that the upstream was producing. */
const lacksResponse = ({ usage }: RequestLog): boolean =>
  usage?.estimated === true && countedUnits(usage.units).completionTokens === undefined

/** Also for an upstream that reports its usage in characters only. */
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

/** Reservation of tokens and seconds of audio for one request. */
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
   * The limit that is smaller than the requested amount, which then can never fit. A guess is reduced to the whole limit,
   * so that it always fits into an empty window.
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

  /** Reserves what was planned; undefined when counted in this process. */
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

  /** The limit that the reservation does not fit into. */
  get refused(): ReservedName | undefined {
    if (this.tokens?.fits === false) return 'tokensPerMinute'
    return this.seconds?.fits === false ? 'audioSecondsPerMinute' : undefined
  }

  /** Reserved points in the open window; none in an expired one, or in a local window used while Redis was unavailable. */
  held(name: ReservedName, allowed: number): number {
    const addition = name === 'tokensPerMinute' ? this.tokens : this.seconds
    if (addition === undefined || addition.allowed !== allowed || addition.endsAtMs <= performance.now()) return 0
    return addition.counted
  }

  /** Settles the reservation once. A unit whose use is unknown stays as reserved. */
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

/** Audio events come many times a second; the count in Redis is not read for each of them. */
const CHECK_INTERVAL_MS = 1000

/** Reservations of the responses of one session. All are settled when the session is over. */
export class SessionReservations {
  private readonly open = new Set<RequestReservation>()
  private isOver = false
  private checkedAtMs = -Infinity

  constructor(
    private readonly keyLimiter: KeyLimiter,
    /** Tokens reserved for a response without a maximum. */
    private readonly expectedOutputTokens: number,
  ) {}

  make(use: EstimatedUse): MaybePromise<Reservation> {
    const reservation = new RequestReservation(this.keyLimiter)
    reservation.plan({ ...use, isGuess: true }, this.expectedOutputTokens)
    const making = reservation.make()
    return making === undefined ? this.made(reservation) : making.then(() => this.made(reservation))
  }

  /** Implements `Quota.exhaustedLimit`. */
  exhaustedLimit(): ExhaustedLimit | undefined {
    const name = this.keyLimiter.exhaustedName(this.held)
    const state = name === undefined ? undefined : this.keyLimiter.lastSeen(name)
    if (name === undefined || state === undefined) return undefined
    this.checkAgain(name)
    return { limit: name, message: exhaustedMessage(name, this.keyLimiter, resetMsOf(state)), endsAtMs: state.endsAtMs }
  }

  /** Gives back all open reservations, and later ones at once. */
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

  /** Reads the window again: another process may have given back what it had only reserved. */
  private checkAgain(name: ReservedName): void {
    const nowMs = performance.now()
    if (nowMs - this.checkedAtMs < CHECK_INTERVAL_MS) return
    this.checkedAtMs = nowMs
    void this.keyLimiter.peek(name)
  }
}
