/**
 * The words of one answer while they are being sent: ends early at `limit` pieces or at a stop sequence, and knows
 * afterwards why it ended and how many pieces (counted as tokens) went out.
 */
export class TextRun implements Iterable<string> {
  /** Pieces handed out so far. */
  count = 0
  /** Valid when the iteration is over. */
  ended: 'complete' | 'limit' | 'stop' = 'complete'
  /** The stop sequence met, when `ended` is `stop`. */
  stoppedBy: string | undefined

  constructor(
    private readonly pieces: Iterable<string>,
    private readonly limit: number,
    private readonly stops: readonly string[],
  ) {}

  *[Symbol.iterator](): Generator<string> {
    for (const piece of this.stops.length > 0 ? this.#beforeStop() : this.pieces) {
      if (this.count >= this.limit) {
        this.ended = 'limit'
        return
      }
      this.count += 1
      yield piece
    }
    if (this.stoppedBy !== undefined) this.ended = 'stop'
  }

  /** Runs to the end at once. */
  join(): string {
    return [...this].join('')
  }

  #beforeStop(): readonly string[] {
    const whole = [...this.pieces].join('')
    let end = whole.length
    for (const stop of this.stops) {
      const at = whole.indexOf(stop)
      if (at < 0 || at >= end) continue
      end = at
      this.stoppedBy = stop
    }
    return whole.slice(0, end).match(/\s*\S+|\s+$/g) ?? []
  }
}
