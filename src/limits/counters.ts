import { shareOf } from '../core/limit-names.js'
import { type Addition, type LimitWindows, WINDOW_SECONDS, type WindowHome, type WindowState } from './limit-windows.js'

const WINDOW_MS = 1000 * WINDOW_SECONDS

/** So close to its end a window is taken for over, as by those whose windows are elsewhere. */
const MARGIN_MS = 5

/** One minute of one key. */
interface Window {
  used: number
  readonly endsAtMs: number
}

/** The windows of this process alone, which may use `share` (above 0, at most 1) of each limit. Nothing is waited for. */
export class MemoryWindows implements LimitWindows, WindowHome {
  /** In the order in which they end, as all are equally long. */
  private readonly windows = new Map<string, Window>()

  constructor(private readonly share = 1) {}

  /** Windows that are remembered: those that were open within the last minute. */
  get size(): number {
    return this.windows.size
  }

  add(key: string, points: number, limit: number): Addition {
    const allowed = shareOf(limit, this.share)
    // What exceeds a share but not the limit gets a window for itself.
    const counted = Math.min(points, allowed)
    const window = this.open(key)
    const fits = window.used + counted <= allowed
    if (fits) window.used += counted
    return {
      used: Math.max(0, window.used),
      allowed,
      endsAtMs: window.endsAtMs,
      fits,
      counted: fits ? counted : 0,
      home: this,
    }
  }

  debit(key: string, points: number, limit: number): WindowState {
    const window = this.open(key)
    window.used += points
    return this.stateOf(window, limit)
  }

  giveBack(key: string, points: number, limit: number, endsAtMs: number): WindowState | undefined {
    const nowMs = performance.now()
    const window = this.windows.get(key)
    if (nowMs + MARGIN_MS >= endsAtMs || window === undefined || window.endsAtMs <= nowMs) return undefined
    window.used -= points
    return this.stateOf(window, limit)
  }

  peek(key: string, limit: number): WindowState | undefined {
    const window = this.windows.get(key)
    return window === undefined || window.endsAtMs <= performance.now() ? undefined : this.stateOf(window, limit)
  }

  private open(key: string): Window {
    const nowMs = performance.now()
    const known = this.windows.get(key)
    if (known !== undefined && known.endsAtMs > nowMs) return known
    this.forgetEnded(nowMs)
    const opened = { used: 0, endsAtMs: nowMs + WINDOW_MS }
    this.windows.set(key, opened)
    return opened
  }

  /** Whoever opens a window clears away those that are over: no timer has to, and what is kept stays in order. */
  private forgetEnded(nowMs: number): void {
    for (const [key, { endsAtMs }] of this.windows) {
      if (endsAtMs > nowMs) return
      this.windows.delete(key)
    }
  }

  private stateOf({ used, endsAtMs }: Window, limit: number): WindowState {
    return { used: Math.max(0, used), allowed: shareOf(limit, this.share), endsAtMs }
  }
}
