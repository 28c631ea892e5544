import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import { shareOf } from './limit-names.js'
import { type Addition, type LimitWindows, WINDOW_SECONDS, type WindowHome, type WindowState } from './limit-windows.js'

/** So close to its end a window is taken for over: what is given back would else open the next one below zero. */
const MARGIN_MS = 5

/** The windows of this process alone, which may use `share` (above 0, at most 1) of each limit. */
export class MemoryWindows implements LimitWindows, WindowHome {
  /** Judges nothing itself: a limiter has one limit, and every key has its own, which a reload changes. */
  private readonly limiter = new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: WINDOW_SECONDS })

  constructor(private readonly share = 1) {}

  async add(key: string, points: number, limit: number): Promise<Addition> {
    const allowed = shareOf(limit, this.share)
    // What exceeds a share but not the limit gets a window for itself.
    const counted = Math.min(points, allowed)
    const state = this.stateOf(await this.limiter.penalty(key, counted), limit)
    const outcome = { ...state, counted, home: this }
    if (state.used <= allowed) return { ...outcome, fits: true }
    await this.giveBack(key, counted, limit, state.endsAtMs)
    return { ...outcome, fits: false, counted: 0, used: state.used - counted }
  }

  async debit(key: string, points: number, limit: number): Promise<WindowState> {
    return this.stateOf(await this.limiter.penalty(key, points), limit)
  }

  async giveBack(key: string, points: number, limit: number, endsAtMs: number): Promise<WindowState | undefined> {
    if (performance.now() + MARGIN_MS >= endsAtMs) return undefined
    return this.stateOf(await this.limiter.reward(key, points), limit)
  }

  async peek(key: string, limit: number): Promise<WindowState | undefined> {
    const found = await this.limiter.get(key)
    return found === null ? undefined : this.stateOf(found, limit)
  }

  private stateOf({ consumedPoints, msBeforeNext }: RateLimiterRes, limit: number): WindowState {
    return {
      used: Math.max(0, consumedPoints),
      allowed: shareOf(limit, this.share),
      endsAtMs: performance.now() + Math.max(0, msBeforeNext),
    }
  }
}
