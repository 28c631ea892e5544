import { Injectable } from '@nestjs/common'

const SHARE_OF_ACTIVE = 0.2
const ALWAYS_ALLOWED = 3

/**
 * Keeps retries from multiplying an outage: at most a fifth of the active calls may be second attempts, at least 3.
 * Whatever begins must end.
 */
@Injectable()
export class RetryBudget {
  private active = 0
  private retrying = 0

  begin(): void {
    this.active++
  }

  end(): void {
    this.active--
  }

  /** False when the budget is spent; otherwise a second attempt has begun. */
  beginRetry(): boolean {
    if (this.retrying >= Math.max(ALWAYS_ALLOWED, this.active * SHARE_OF_ACTIVE)) return false
    this.retrying++
    return true
  }

  endRetry(): void {
    this.retrying--
  }
}
