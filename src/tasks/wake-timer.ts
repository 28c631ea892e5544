import { Injectable } from '@nestjs/common'

/** The time of day; also the injection token, so that tests can let days pass. */
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

/** Ends the rests of whoever works in the background, when there is something to do earlier than it expected. */
@Injectable()
export class WakeTimer {
  /** The earliest time somebody has rung for and nobody has risen for. */
  private expectedAtMs = Infinity
  private isOff = false
  private isWoken = false
  private rearm: () => void = () => undefined

  constructor(private readonly clock: Clock) {}

  /** Something will be due at a time (Unix milliseconds). One that comes while nobody rests is kept. */
  scheduleAt(atMs: number): void {
    this.expectedAtMs = Math.min(this.expectedAtMs, atMs)
    this.rearm()
  }

  /** Ends the rest under way, or the next one, at once, but for its pace. */
  wake(): void {
    this.isWoken = true
    this.rearm()
  }

  /** Ends the rest under way and every later one at once. */
  switchOff(): void {
    this.isOff = true
    this.rearm()
  }

  /**
   * Rests at most `longestMs`, less when the alarm is rung for an earlier time, but never less than `shortestMs`; when it is
   * woken, never less than `paceMs`.
   */
  async cancel(longestMs: number, shortestMs: number, paceMs = 0): Promise<void> {
    const startedAtMs = performance.now()
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.rearm = () => {
        clearTimeout(timer)
        const restedMs = performance.now() - startedAtMs
        const remainingMs = Math.min(longestMs - restedMs, this.expectedAtMs - this.clock.nowMs())
        const leastMs = this.isWoken ? paceMs : Math.max(shortestMs, paceMs)
        const wantedMs = this.isWoken ? 0 : remainingMs
        timer = setTimeout(resolve, this.isOff ? 0 : Math.max(wantedMs, leastMs - restedMs, 0))
      }
      this.rearm()
    })
    this.rearm = () => undefined
    this.isWoken = false
    if (this.expectedAtMs <= this.clock.nowMs()) this.expectedAtMs = Infinity
  }
}

/** How whoever gives a task an early next poll tells the poller, which may be asleep for longer. */
@Injectable()
export class PollWakeTimer extends WakeTimer {}
