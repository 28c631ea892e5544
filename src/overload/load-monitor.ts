export interface LoopWatermarks {
  readonly loopDelayHighMs: number
  readonly loopDelayLowMs: number
}

/** Requests that a turn admits whatever it has lasted: neither one slow piece of work nor a burst is an overload. */
const FREE_IN_CALM = 512
/** The same while requests are refused: a trickle, by which the process sees whether it can work again. */
const FREE_IN_SHEDDING = 1

/** Turns above the high watermark for so long, and so many in a row, are an overload, whatever it comes from. */
const SLOW_MS = 1_000
const SLOW_TURNS = 5

/** Refusing ends after a time in which hardly anything was refused. */
const WINDOW_MS = 1_000
const HARDLY_ANYTHING = 0.05

/** A process that leaves so much of its processor unused is not overloaded by requests, however late its turns are. */
const BUSY_SHARE = 0.7

const SHRINK = 0.8
const GROW = 1.1
const LEAST_BUDGET_MS = 2

/** What one refusal takes, roughly. */
const REFUSAL_MS = 0.02

/** How often a calm loop is looked at; while requests are refused, every turn is. */
const CALM_INTERVAL_MS = 20
const SHEDDING_INTERVAL_MS = 1

/**
 * Judges by the event loop whether a new request can still be served promptly. One turn of the loop takes every socket
 * that is ready, so under too many requests the turns become longer and longer, and everybody waits for whole turns. When
 * they stay above the high watermark, or a burst is too large for one turn, new requests have a budget of each turn: those
 * that come while it is used up are refused, in the order they came. The budget shrinks while turns last longer than the
 * high watermark, for instance by streams that were admitted before, and grows while they are below the low one. A turn is only
 * as long as the process worked in it: one that waited for a processor others had does not work faster by refusing. All
 * times are on one clock, in milliseconds.
 */
export class LoopLoad {
  #turnStartedAtMs: number
  #admitted = 0
  #refused = 0
  #slowTurns = 0
  #slowMs = 0
  #windowStartedAtMs = 0
  #judgedInWindow = 0
  #refusedInWindow = 0
  #workedInWindowMs = 0
  #budgetMs: number
  #isShedding = false
  #delayMs = 0

  constructor(
    private readonly watermarks: () => LoopWatermarks,
    nowMs: number,
  ) {
    this.#turnStartedAtMs = nowMs
    this.#budgetMs = watermarks().loopDelayHighMs
  }

  /** Requests are being refused, or were a moment ago. */
  get isShedding(): boolean {
    return this.#isShedding
  }

  /** What the last turn lasted beyond what was slept in it. */
  get delayMs(): number {
    return this.#delayMs
  }

  /** When to call `turned` again. */
  get intervalMs(): number {
    if (this.#isShedding) return SHEDDING_INTERVAL_MS
    return Math.min(CALM_INTERVAL_MS, this.watermarks().loopDelayHighMs / 5)
  }

  /** Whether this turn has room for one more request. */
  admits(nowMs: number): boolean {
    const isFree = this.#admitted < (this.#isShedding ? FREE_IN_SHEDDING : FREE_IN_CALM)
    if (!isFree && nowMs - this.#turnStartedAtMs > this.#budgetMs) {
      this.#refused++
      return false
    }
    this.#admitted++
    return true
  }

  /** Called by a timer that was set to `sleptMs`: a new turn begins. In the last one the process worked for `workedMs`. */
  turned(nowMs: number, sleptMs: number, workedMs: number): void {
    const { loopDelayHighMs, loopDelayLowMs } = this.watermarks()
    this.#delayMs = Math.max(0, nowMs - this.#turnStartedAtMs - sleptMs)
    this.#workedInWindowMs += workedMs
    this.#noteTurn(Math.min(this.#delayMs, workedMs) > loopDelayHighMs)
    const isSlow = this.#slowTurns >= SLOW_TURNS && this.#slowMs >= SLOW_MS
    if (this.#refused > 0 || isSlow) this.#shed(nowMs, loopDelayLowMs)
    if (this.#isShedding) this.#adapt(nowMs, loopDelayLowMs)
    if (!this.#isShedding) this.#budgetMs = loopDelayHighMs
    this.#turnStartedAtMs = nowMs
    this.#admitted = 0
    this.#refused = 0
  }

  #noteTurn(isSlow: boolean): void {
    this.#slowTurns = isSlow ? this.#slowTurns + 1 : 0
    this.#slowMs = isSlow ? this.#slowMs + this.#delayMs : 0
  }

  #shed(nowMs: number, budgetMs: number): void {
    if (this.#isShedding) return
    this.#isShedding = true
    this.#budgetMs = budgetMs
    this.#beginWindow(nowMs)
  }

  #beginWindow(nowMs: number): void {
    this.#windowStartedAtMs = nowMs
    this.#judgedInWindow = 0
    this.#refusedInWindow = 0
    this.#workedInWindowMs = 0
  }

  /** Fewer admissions do not shorten what refusals take of a turn, so that part of it does not count. */
  #adapt(nowMs: number, lowMs: number): void {
    const workMs = this.#delayMs - this.#refused * REFUSAL_MS
    if (workMs > lowMs) this.#budgetMs = Math.max(LEAST_BUDGET_MS, this.#budgetMs * SHRINK)
    else if (workMs < lowMs / 2) this.#budgetMs = Math.min(lowMs, this.#budgetMs * GROW)
    this.#judgedInWindow += this.#admitted + this.#refused
    this.#refusedInWindow += this.#refused
    const windowMs = nowMs - this.#windowStartedAtMs
    if (windowMs < WINDOW_MS) return
    const isBusy = this.#workedInWindowMs > BUSY_SHARE * windowMs
    this.#isShedding = isBusy && this.#refusedInWindow > HARDLY_ANYTHING * this.#judgedInWindow
    this.#beginWindow(nowMs)
  }
}
