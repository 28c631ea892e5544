import { LONGEST_TIMER_MS } from '../core/longest-timer.js'
import { callerLeft } from '../core/request-context.js'
import { outOfTime } from './parse-outcome.js'
import type { ParseTerms } from './parser.js'

interface Waiter<Grant> {
  readonly grant: (value: Grant) => void
  readonly refuse: (error: Error) => void
}

/** First come, first served; whoever leaves or runs out of time loses the place. */
export class WaitingLine<Grant> {
  private readonly waiters = new Set<Waiter<Grant>>()

  get length(): number {
    return this.waiters.size
  }

  /** Resolves with what is granted; rejects with `caller_left`, `upstream_timeout` or the reason of a refusal. */
  wait({ departure, deadlineAtMs }: ParseTerms): Promise<Grant> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter<Grant> = {
        grant: (value) => {
          leave()
          resolve(value)
        },
        refuse: (error) => {
          leave()
          reject(error)
        },
      }
      const leave = (): void => {
        this.waiters.delete(waiter)
        clearTimeout(timer)
        unsubscribe()
      }
      this.waiters.add(waiter)
      const remainingMs = Math.min(Math.max(deadlineAtMs - performance.now(), 0), LONGEST_TIMER_MS)
      const timer = setTimeout(() => {
        waiter.refuse(outOfTime())
      }, remainingMs)
      let unsubscribe = (): void => undefined
      unsubscribe = departure.onLeave(() => {
        waiter.refuse(callerLeft())
      })
    })
  }

  /** To the first in the line; there must be one. */
  grant(value: Grant): void {
    const [first] = this.waiters
    first?.grant(value)
  }

  refuseAll(error: () => Error): void {
    for (const waiter of [...this.waiters]) waiter.refuse(error())
  }
}
