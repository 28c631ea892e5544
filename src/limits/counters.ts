import { shareOf } from '../core/quota.js'

/** Length of the window of each limit per minute, which begins with the first use. */
export const WINDOW_SECONDS = 60

/** A plain value when counted in this process, a promise when counted in Redis. */
export type MaybePromise<Value> = Value | Promise<Value>

/** A window's count in points: the units of its limit times `pointsPerUnit` of `MINUTE_LIMITS`. */
export interface WindowState {
  readonly used: number
  /** What may be used at all: the limit, or this process's share of it. */
  readonly allowed: number
  /** On the performance clock. */
  readonly endsAtMs: number
}

/** Result of an attempt to use points. */
export interface Addition extends WindowState {
  /** False: nothing was counted. */
  readonly fits: boolean
  /** What was counted: never more than a whole window allows. */
  readonly counted: number
  /** The store that counted it, to which it is given back. */
  readonly store: WindowStore
}

/** Fixed windows of one minute by key. No method rejects; one that cannot reach its counter resolves with undefined. */
export interface LimitWindows {
  /** Counts points if the window has them left, else nothing. */
  add(key: string, points: number, limit: number): MaybePromise<Addition | undefined>
  /** Counts points that are used already, left or not. */
  debit(key: string, points: number, limit: number): MaybePromise<WindowState | undefined>
  /** The open window; undefined also when there is none. */
  peek(key: string, limit: number): MaybePromise<WindowState | undefined>
}

export interface WindowStore {
  /** Takes points out again, if the window they were counted in, which ends at `endsAtMs`, is still open. */
  giveBack(key: string, points: number, limit: number, endsAtMs: number): MaybePromise<WindowState | undefined>
}

/** Requests or sessions in progress, by key, each with its own id. No method rejects. */
export interface LimitLeases {
  /** False when the limit is reached. */
  take(key: string, id: string, limit: number): MaybePromise<boolean>
  /** Called once for each lease taken. */
  release(key: string, id: string): void
  count(key: string): MaybePromise<number>
}

/** Leases of this process alone, which may use `share` (above 0, at most 1) of each limit; owners are not recorded. */
export class LocalLeases implements LimitLeases {
  private readonly counts = new Map<string, number>()

  constructor(private readonly share = 1) {}

  take(key: string, _id: string, limit: number): boolean {
    const count = this.count(key)
    if (count >= shareOf(limit, this.share)) return false
    this.counts.set(key, count + 1)
    return true
  }

  release(key: string, _id: string): void {
    const count = this.count(key) - 1
    if (count > 0) this.counts.set(key, count)
    else this.counts.delete(key)
  }

  count(key: string): number {
    return this.counts.get(key) ?? 0
  }
}

/** Ids of the leases that this process holds. */
export class HeldLeases {
  private readonly held = new Map<string, Set<string>>()

  hold(key: string, id: string): void {
    const ids = this.held.get(key)
    if (ids === undefined) this.held.set(key, new Set([id]))
    else ids.add(id)
  }

  release(key: string, id: string): void {
    const ids = this.held.get(key)
    ids?.delete(id)
    if (ids?.size === 0) this.held.delete(key)
  }

  holds(key: string, id: string): boolean {
    return this.held.get(key)?.has(id) === true
  }

  count(key: string): number {
    return this.held.get(key)?.size ?? 0
  }

  /** Everything held, by key. */
  all(): IterableIterator<[string, ReadonlySet<string>]> {
    return this.held.entries()
  }
}

const WINDOW_MS = 1000 * WINDOW_SECONDS

/** Nothing is given back this close to a window's end, as with windows in Redis. */
const MARGIN_MS = 5

/** One minute of one key. */
interface Window {
  used: number
  readonly endsAtMs: number
}

/** Windows of this process alone, which may use `share` (above 0, at most 1) of each limit. Synchronous. */
export class MemoryWindows implements LimitWindows, WindowStore {
  /** In the order in which they end, as all are equally long. */
  private readonly windows = new Map<string, Window>()

  constructor(private readonly share = 1) {}

  /** Number of windows in memory, including expired ones not yet removed. */
  get size(): number {
    return this.windows.size
  }

  add(key: string, points: number, limit: number): Addition {
    const allowed = shareOf(limit, this.share)
    // An amount above the share but within the limit uses a whole window.
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
      store: this,
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

  /** Opening a window removes expired ones, so that no timer is needed; the rest stays in order. */
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
