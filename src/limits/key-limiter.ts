import { LRUCache } from 'lru-cache'
import type { KeyLimits } from '../config/settings.js'
import {
  counterKey,
  type ConcurrencyLimitName,
  MINUTE_LIMIT_NAMES,
  MINUTE_LIMITS,
  type MinuteLimitName,
} from '../core/quota.js'
import {
  type Addition,
  type LimitLeases,
  type LimitWindows,
  LocalLeases,
  type MaybePromise,
  MemoryWindows,
  type WindowState,
} from './counters.js'

/** Cached states of windows; others are read when needed. */
const MAXIMUM_REMEMBERED = 10_000

/** Windows and leases of all keys, with a cache of the last seen state. Synchronous when counted in this process. */
export class LimitCounters {
  private readonly seen = new LRUCache<string, WindowState>({ max: MAXIMUM_REMEMBERED })

  constructor(
    private readonly windows: LimitWindows,
    readonly leases: LimitLeases,
  ) {}

  add(key: string, points: number, limit: number): MaybePromise<Addition | undefined> {
    return this.see(key, this.windows.add(key, points, limit))
  }

  debit(key: string, points: number, limit: number): MaybePromise<WindowState | undefined> {
    return this.see(key, this.windows.debit(key, points, limit))
  }

  giveBack(key: string, points: number, limit: number, addition: Addition): MaybePromise<WindowState | undefined> {
    const answer = addition.store.giveBack(key, points, limit, addition.endsAtMs)
    if (answer instanceof Promise) this.expectBack(key, points, addition)
    return this.see(key, answer)
  }

  peek(key: string, limit: number): MaybePromise<WindowState | undefined> {
    return this.see(key, this.windows.peek(key, limit))
  }

  /** The window as this process saw it last; undefined when it is over or was never seen. */
  lastSeen(key: string): WindowState | undefined {
    const state = this.seen.get(key)
    return state !== undefined && state.endsAtMs > performance.now() ? state : undefined
  }

  /** Updates the cached state without waiting for the reply, as the remaining amount may be needed at once. */
  private expectBack(key: string, points: number, { allowed, endsAtMs }: Addition): void {
    const seen = this.lastSeen(key)
    // Neither a later window is changed, nor this process's own, which counts while Redis is unavailable.
    if (seen?.allowed !== allowed || endsAtMs <= performance.now()) return
    this.seen.set(key, { used: Math.max(0, seen.used - points), allowed, endsAtMs: seen.endsAtMs })
  }

  private see<State extends WindowState>(
    key: string,
    state: MaybePromise<State | undefined>,
  ): MaybePromise<State | undefined> {
    if (!(state instanceof Promise)) return this.remember(key, state)
    return state.then((answer) => this.remember(key, answer))
  }

  private remember<State extends WindowState>(key: string, state: State | undefined): State | undefined {
    if (state !== undefined) this.seen.set(key, state)
    return state
  }
}

/** Where limits are counted: in this process, or in Redis with this process as the fallback. */
export interface CounterStore {
  readonly counters: LimitCounters
  readonly isShared: boolean
  readonly isUnavailable: () => boolean
  /** Never rejects; resolves also when Redis cannot be reached. */
  readonly open: () => Promise<void>
  readonly close: () => Promise<void>
}

/** In this process alone. */
export const localStore = (share: number): CounterStore => ({
  counters: new LimitCounters(new MemoryWindows(share), new LocalLeases(share)),
  isShared: false,
  isUnavailable: () => false,
  open: () => Promise.resolve(),
  close: () => Promise.resolve(),
})

/** Limits whose amounts are reserved before they are used. */
export type ReservedName = Extract<MinuteLimitName, 'tokensPerMinute' | 'audioSecondsPerMinute'>

export type ReservedPoints = (name: ReservedName, allowed: number) => number

/** The window in which one limit per minute of a key is counted. */
interface KeyWindow {
  readonly key: string
  readonly pointsPerUnit: number
  readonly limitPoints: number
}

/**
 * Counts the requests of one key against its limits. Amounts are in the units of the settings. Made once for many requests.
 * Synchronous when counted in this process.
 */
export class KeyLimiter {
  /** False for `limits: {}`. */
  readonly isLimited: boolean
  private readonly windows: Partial<Record<MinuteLimitName, KeyWindow>> = {}
  private readonly leaseKeys: Readonly<Record<ConcurrencyLimitName, string>>

  constructor(
    readonly limits: KeyLimits,
    readonly scope: string,
    private readonly counters: LimitCounters,
  ) {
    for (const name of MINUTE_LIMIT_NAMES) {
      const limit = limits[name]
      if (limit === undefined) continue
      const { pointsPerUnit } = MINUTE_LIMITS[name]
      this.windows[name] = { key: counterKey(name, scope), pointsPerUnit, limitPoints: limit * pointsPerUnit }
    }
    this.isLimited = Object.values<number | undefined>(limits).some((limit) => limit !== undefined)
    this.leaseKeys = {
      concurrency: counterKey('concurrency', scope),
      realtimeSessions: counterKey('realtimeSessions', scope),
    }
  }

  /** Uses an amount if it fits; undefined without such a limit. */
  add(name: MinuteLimitName, amount: number): MaybePromise<Addition | undefined> {
    const window = this.windows[name]
    return window && this.counters.add(window.key, pointsOf(window, amount), window.limitPoints)
  }

  /**
   * Corrects a reservation to the amount used in the end. A surplus is given back to the window it was reserved in; a
   * shortfall is debited to the open window. Not awaited.
   */
  settle(name: MinuteLimitName, reserved: Addition | undefined, used: number): void {
    const window = this.windows[name]
    if (window === undefined) return
    const difference = pointsOf(window, used) - (reserved?.counted ?? 0)
    if (difference > 0) void this.counters.debit(window.key, difference, window.limitPoints)
    if (difference < 0 && reserved !== undefined) {
      void this.counters.giveBack(window.key, -difference, window.limitPoints, reserved)
    }
  }

  peek(name: MinuteLimitName): MaybePromise<WindowState | undefined> {
    const window = this.windows[name]
    return window && this.counters.peek(window.key, window.limitPoints)
  }

  lastSeen(name: MinuteLimitName): WindowState | undefined {
    const window = this.windows[name]
    return window && this.counters.lastSeen(window.key)
  }

  /**
   * The limit of tokens or audio that is used up, as far as this process knows. `held`: reserved points of the open
   * window that do not count as used.
   */
  exhaustedName(held: ReservedPoints = nothingHeld): ReservedName | undefined {
    if (this.isExhausted('tokensPerMinute', held)) return 'tokensPerMinute'
    return this.isExhausted('audioSecondsPerMinute', held) ? 'audioSecondsPerMinute' : undefined
  }

  take(name: ConcurrencyLimitName, id: string): MaybePromise<boolean> {
    const limit = this.limits[name]
    return limit === undefined || this.counters.leases.take(this.leaseKeys[name], id, limit)
  }

  release(name: ConcurrencyLimitName, id: string): void {
    if (this.limits[name] !== undefined) this.counters.leases.release(this.leaseKeys[name], id)
  }

  /** Number in progress on all replicas. */
  inUse(name: ConcurrencyLimitName): MaybePromise<number> {
    return this.counters.leases.count(this.leaseKeys[name])
  }

  private isExhausted(name: ReservedName, held: ReservedPoints): boolean {
    const state = this.lastSeen(name)
    if (state === undefined || state.used < state.allowed) return false
    return state.used - held(name, state.allowed) >= state.allowed
  }
}

const nothingHeld = (): number => 0

const pointsOf = ({ pointsPerUnit }: KeyWindow, amount: number): number => Math.ceil(amount * pointsPerUnit)
