/** A bucket that holds as much as one second brings. */
export class RateLimit {
  private tokens: number
  private filledAtMs = performance.now()

  constructor(private readonly perSecond: number) {
    this.tokens = perSecond
  }

  /** False when more came than the rate allows. */
  take(): boolean {
    const nowMs = performance.now()
    this.tokens = Math.min(this.perSecond, this.tokens + ((nowMs - this.filledAtMs) * this.perSecond) / 1000)
    this.filledAtMs = nowMs
    if (this.tokens < 1) return false
    this.tokens--
    return true
  }
}
