import { Injectable } from '@nestjs/common'
import { Clock } from './clock.js'

/** However often callers ask for a task, its upstream is asked at most once in this time. */
const PAUSE_MS = 1000

/** Remembers which tasks were refreshed a moment ago in this process. */
@Injectable()
export class RefreshGate {
  /** In order of time: the first is the oldest. */
  private readonly refreshedAtMs = new Map<string, number>()

  constructor(private readonly clock: Clock) {}

  /** Whether a task may be refreshed now; a yes counts as a refresh. */
  enter(taskId: string): boolean {
    const nowMs = this.clock.nowMs()
    this.forgetBefore(nowMs - PAUSE_MS)
    if (this.refreshedAtMs.has(taskId)) return false
    this.refreshedAtMs.set(taskId, nowMs)
    return true
  }

  private forgetBefore(timeMs: number): void {
    for (const [taskId, atMs] of this.refreshedAtMs) {
      if (atMs > timeMs) return
      this.refreshedAtMs.delete(taskId)
    }
  }
}
