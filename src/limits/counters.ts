import { shareOf } from '../core/quota.js'

/** Of every limit per minute; a window begins with the first use and ends this much later. */
export const WINDOW_SECONDS = 60

/** There at once where this process counts, and later where it has to ask. */
export type MaybePromise<Value> = Value | Promise<Value>

/** How a window stands, in points. */
export interface WindowState {
  readonly used: number
  /** What may be used at all: the limit, or this process's share of it. */
  readonly allowed: number
  /** On the performance clock. */
  readonly endsAtMs: number
}

/** What came of an attempt to use points. */
export interface Addition extends WindowState {
  /** False: nothing was counted. */
  readonly fits: boolean
  /** What was counted: never more than a whole window allows. */
  readonly counted: number
  /** The store that has counted it: only it can take it out again. */
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

/** What is under way at one time, by key; each of it has an id of its own. No method rejects. */
export interface LimitLeases {
  /** False when as many are under way as the limit allows. */
  take(key: string, id: string, limit: number): MaybePromise<boolean>
  /** What was taken, once. */
  release(key: string, id: string): void
  /** How many are under way. */
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

/** Leases that were granted elsewhere and are held here, by their ids. */
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

/** So close to its end a window is taken for over, as by those whose windows are elsewhere. */
const MARGIN_MS = 5

/** One minute of one key. */
interface Window {
  used: number
  readonly endsAtMs: number
}

/** The windows of this process alone, which may use `share` (above 0, at most 1) of each limit. Nothing is waited for. */
export class MemoryWindows implements LimitWindows, WindowStore {
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

  /** Opening a window removes those that are over: no timer is needed, and the rest stays in order. */
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
