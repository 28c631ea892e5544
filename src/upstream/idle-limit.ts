import { type Clock, processClock } from '../core/time.js'

/** What is learned is less than what was seen, by a share that covers the way there; what was seen once may change. */
const LEARNED_SHARE = 0.75
const LEARNED_FOR_MS = 600_000
/** Below it, what closes connections is no idle limit: they would hardly be used again at all. */
const SHORTEST_LEARNED_MS = 50
/** Idle times that differ by less are taken for the same limit. */
const SAME_SHARE = 0.2

/** How long connections to one upstream may have been idle to be used again, as far as the upstream has shown it. */
export class IdleLimit {
  private learnedMs = Infinity
  private learnedUntilMs = 0
  private lastClosedMs = Infinity

  constructor(readonly nowMs: Clock = processClock) {}

  get milliseconds(): number {
    if (this.learnedMs !== Infinity && this.nowMs() > this.learnedUntilMs) this.learnedMs = Infinity
    return this.learnedMs
  }

  /** The upstream has closed a connection in its idle time. One such end may be that of a restart; two alike are a rule. */
  closed(idleMs: number): void {
    const isAlike = Math.abs(idleMs - this.lastClosedMs) <= SAME_SHARE * idleMs
    this.lastClosedMs = idleMs
    if (isAlike) this.learn(idleMs)
  }

  /** The upstream did not answer on a connection that had been idle for so long. */
  learn(idleMs: number): void {
    this.learnedMs = Math.min(this.milliseconds, Math.max(SHORTEST_LEARNED_MS, idleMs * LEARNED_SHARE))
    this.learnedUntilMs = this.nowMs() + LEARNED_FOR_MS
  }
}
