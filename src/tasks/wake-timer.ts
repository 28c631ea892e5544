import { Injectable } from '@nestjs/common'

/** Wall clock; also the injection token, so that tests can move the time. */
export abstract class Clock {
  /** Unix milliseconds. */
  abstract nowMs(): number
}

@Injectable()
export class SystemClock extends Clock {
  nowMs(): number {
    return Date.now()
  }
}

/** Sleep of background workers that ends early when work is due sooner than expected. */
@Injectable()
export class WakeTimer {
  /** The earliest scheduled time that has not passed. */
  private scheduledAtMs = Infinity
  private isOff = false
  private isWoken = false
  private rearm: () => void = () => undefined

  constructor(private readonly clock: Clock) {}

  /** Schedules a wake-up (Unix milliseconds). Without a sleep under way it applies to the next one. */
  scheduleAt(atMs: number): void {
    this.scheduledAtMs = Math.min(this.scheduledAtMs, atMs)
    this.rearm()
  }

  /** Ends the sleep under way, or the next one, at once, apart from its pace. */
  wake(): void {
    this.isWoken = true
    this.rearm()
  }

  /** Ends the sleep under way and every later one at once. */
  switchOff(): void {
    this.isOff = true
    this.rearm()
  }

  /**
   * Sleeps at most `longestMs`, less when a wake-up is scheduled earlier, but never less than `shortestMs`; after
   * `wake`, never less than `paceMs`.
   */
  async sleep(longestMs: number, shortestMs: number, paceMs = 0): Promise<void> {
    const startedAtMs = performance.now()
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.rearm = () => {
        clearTimeout(timer)
        const sleptMs = performance.now() - startedAtMs
        const remainingMs = Math.min(longestMs - sleptMs, this.scheduledAtMs - this.clock.nowMs())
        const leastMs = this.isWoken ? paceMs : Math.max(shortestMs, paceMs)
        const desiredMs = this.isWoken ? 0 : remainingMs
        timer = setTimeout(resolve, this.isOff ? 0 : Math.max(desiredMs, leastMs - sleptMs, 0))
      }
      this.rearm()
    })
    this.rearm = () => undefined
    this.isWoken = false
    if (this.scheduledAtMs <= this.clock.nowMs()) this.scheduledAtMs = Infinity
  }
}

/** The timer of the poller; creates and upstream callbacks schedule early polls on it. */
@Injectable()
export class PollWakeTimer extends WakeTimer {}
