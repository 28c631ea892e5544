/** A call that waits for its first byte, and its neighbours among those of its channel. */
export interface WaitingCall {
  /** On the performance clock. */
  readonly beganAtMs: number
  older: WaitingCall | undefined
  newer: WaitingCall | undefined
}

/**
 * The calls that wait on one channel. Those that no later one has overtaken are linked with each other in the order
 * they began: who has waited longest is known at every choice of a channel, without a search and with nothing made.
 */
export class WaitingCalls {
  private oldest: WaitingCall | undefined
  private newest: WaitingCall | undefined
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

  /** Nobody may begin with an earlier time than the one before. */
  begin(call: WaitingCall): void {
    this.#count++
    if (this.newest === undefined) this.oldest = call
    else this.newest.newer = call
    call.older = this.newest
    this.newest = call
  }

  /** It waits no more: told once for each call that began. */
  end(call: WaitingCall): void {
    this.#count--
    if (this.isLinked(call)) this.unlink(call)
  }

  /** The same for a call that was answered: it has overtaken whoever began before it. Each is passed over only once. */
  answer(call: WaitingCall): void {
    if (this.isLinked(call)) while (this.oldest !== undefined && this.oldest !== call) this.unlink(this.oldest)
    this.end(call)
  }

  private isLinked(call: WaitingCall): boolean {
    return call.older !== undefined || this.oldest === call
  }

  private unlink(call: WaitingCall): void {
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
