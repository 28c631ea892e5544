import { Injectable } from '@nestjs/common'

const SHARE_OF_ACTIVE = 0.2
const ALWAYS_ALLOWED = 3

/** Keeps retries from multiplying an outage: at most a fifth of the active calls may be second attempts, at least 3. */
@Injectable()
export class RetryBudget {
  private active = 0
  private retrying = 0

  async spend<Result>(work: () => Promise<Result>): Promise<Result> {
    this.active++
    try {
      return await work()
    } finally {
      this.active--
    }
  }

  /** Runs a second attempt when the budget allows one, otherwise gives the first attempt's error back. */
  async retry<Result>(error: unknown, work: () => Promise<Result>): Promise<Result> {
    if (this.retrying >= Math.max(ALWAYS_ALLOWED, this.active * SHARE_OF_ACTIVE)) throw error
    this.retrying++
    try {
      return await work()
    } finally {
      this.retrying--
    }
  }
}
