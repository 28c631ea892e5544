/** A call that waits for its first byte, and its neighbours among those of its channel. */
export interface WaitingRequest {
  /** On the performance clock. */
  readonly beganAtMs: number
  older: WaitingRequest | undefined
  newer: WaitingRequest | undefined
}

/**
 * The calls that wait on one channel. Those that no later one has overtaken are linked with each other in the order
 * they began: who has waited longest is known at every choice of a channel, without a search and with nothing made.
 */
class WaitingCalls {
  private oldest: WaitingRequest | undefined
  private newest: WaitingRequest | undefined
  #count = 0

  /** All that wait, whether overtaken or not. */
  get count(): number {
    return this.#count
  }

  /**
   * For how long the channel has kept the oldest call waiting; 0 when it keeps none. One that was overtaken does not
   * count: the channel answers, and only this answer takes its time.
   */
  longestMs(nowMs: number): number {
    return this.oldest === undefined ? 0 : nowMs - this.oldest.beganAtMs
  }

  /** The same of the second of them; 0 when it keeps none but one, as the answer of that one may just take its time. */
  secondLongestMs(nowMs: number): number {
    const second = this.oldest?.newer
    return second === undefined ? 0 : nowMs - second.beganAtMs
  }

  /** Infinite where `longestMs` is 0. */
  get oldestBeganAtMs(): number {
    return this.oldest?.beganAtMs ?? Number.POSITIVE_INFINITY
  }

  /** Times must not decrease from call to call. */
  begin(call: WaitingRequest): void {
    this.#count++
    if (this.newest === undefined) this.oldest = call
    else this.newest.newer = call
    call.older = this.newest
    this.newest = call
  }

  /** It waits no more: called once for each call that began. */
  end(call: WaitingRequest): void {
    this.#count--
    if (this.isLinked(call)) this.unlink(call)
  }

  /** The same for a call that was answered: it has overtaken the calls that began before it. Each is overtaken only once. */
  settle(call: WaitingRequest): void {
    if (this.isLinked(call)) while (this.oldest !== undefined && this.oldest !== call) this.unlink(this.oldest)
    this.end(call)
  }

  private isLinked(call: WaitingRequest): boolean {
    return call.older !== undefined || this.oldest === call
  }

  private unlink(call: WaitingRequest): void {
    const { older, newer } = call
    if (older === undefined) this.oldest = newer
    else older.newer = newer
    if (newer === undefined) this.newest = older
    else newer.older = older
    // A call that is under way for long must not keep those that came after it in memory.
    call.older = undefined
    call.newer = undefined
  }
}

/** Weight of the newest sample in the average; older ones fade. */
const NEWEST_SHARE = 0.2
/**
 * An answer counts with at most so many times the average. One alone that took long makes no channel clearly slower than
 * its like (0.8 + 0.2 * 4 = 1.6 times the average), two in a row do.
 */
const LONGEST_SAMPLE = 4
/** Averages below say nothing, and none must stay at 0. */
const SHORTEST_AVERAGE_MS = 1
/** A channel unused for so long may have changed: its average says nothing any more. */
const LATENCY_LIFETIME_MS = 10_000

/** What is known of a channel. Times are on the performance clock. */
export class ChannelRecord {
  consecutiveFailures = 0
  /** 0 = closed. */
  openUntilMs = 0
  coolDownMs = 0
  /** How often it was opened: a call that began before the last time knows nothing new. */
  openings = 0
  isProbed = false
  /** Calls that wait for their first byte. */
  readonly waiting = new WaitingCalls()
  /** To the first byte, on average; says something only where `isKnown`. */
  latencyMs = 0
  private sampledAtMs = Number.NEGATIVE_INFINITY

  openFor(durationMs: number): void {
    this.openings++
    this.openUntilMs = Math.max(this.openUntilMs, performance.now() + durationMs)
    // What it was like until then says nothing any more: the probe will tell.
    this.sampledAtMs = Number.NEGATIVE_INFINITY
  }

  /** Whether it was learned a moment before. */
  isSampled(atMs: number): boolean {
    return atMs - this.sampledAtMs <= LATENCY_LIFETIME_MS
  }

  /**
   * The average holds for a while, and for as long as a call waits that began within it: that it is not answered is
   * knowledge as well. Calls that begin later do not make old knowledge new.
   */
  isKnown(nowMs: number): boolean {
    return this.isSampled(Math.min(nowMs, this.waiting.oldestBeganAtMs))
  }

  /**
   * What an answer takes at least, as far as is known; 0 where it is unknown. Two calls that wait side by side tell that
   * it is no less than the later of them has waited.
   */
  leastLatencyMs(nowMs: number): number {
    return Math.max(this.isKnown(nowMs) ? this.latencyMs : 0, this.waiting.secondLongestMs(nowMs))
  }

  /** Called for a call that is answered, while it still waits. */
  recordLatency(sampleMs: number, nowMs: number): void {
    const longestMs = LONGEST_SAMPLE * Math.max(SHORTEST_AVERAGE_MS, this.latencyMs)
    this.latencyMs = this.isKnown(nowMs) ? this.averageWith(Math.min(sampleMs, longestMs)) : sampleMs
    this.sampledAtMs = nowMs
  }

  /** Of a call that waited so long for nothing. It may raise the average, but what fails at once is not fast. */
  recordLeastLatency(leastMs: number, nowMs: number): void {
    if (!this.isKnown(nowMs) || leastMs <= this.latencyMs) return
    this.latencyMs = this.averageWith(leastMs)
    this.sampledAtMs = nowMs
  }

  private averageWith(sampleMs: number): number {
    return this.latencyMs + NEWEST_SHARE * (sampleMs - this.latencyMs)
  }
}
