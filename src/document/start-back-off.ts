const FIRST_REST_MS = 250
const LONGEST_REST_MS = 30_000

/** Keeps processes that die while they start from being started again and again. */
export class StartBackOff {
  private failures = 0
  private restsUntilMs = -Infinity

  /** 0 = may start now; otherwise how long not, in whole seconds and never less than one. */
  restSeconds(nowMs: number): number {
    return nowMs >= this.restsUntilMs ? 0 : Math.ceil((this.restsUntilMs - nowMs) / 1000)
  }

  failed(nowMs: number): void {
    this.restsUntilMs = nowMs + Math.min(FIRST_REST_MS * 2 ** this.failures, LONGEST_REST_MS)
    this.failures += 1
  }

  succeeded(): void {
    this.failures = 0
    this.restsUntilMs = -Infinity
  }
}
