import { LRUCache } from 'lru-cache'
import type { KeyLimits } from '../config/settings.js'
import {
  counterKey,
  type ConcurrencyLimitName,
  MINUTE_LIMIT_NAMES,
  MINUTE_LIMITS,
  type MinuteLimitName,
} from '../core/quota.js'
import type { Addition, LimitLeases, LimitWindows, MaybePromise, WindowState } from './counters.js'

/** Windows whose last known state is remembered; of others it is asked for when it is needed. */
const MAXIMUM_REMEMBERED = 10_000

/** What counts, wherever it counts, and what was last seen of it here. Answers at once where this process counts. */
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

  /** Giving back waits for no answer, and what is left then may have to be known at once. */
  private expectBack(key: string, points: number, { allowed, endsAtMs }: Addition): void {
    const seen = this.lastSeen(key)
    // A later window is left as it is, and so is this process's own, which counts while Redis is away.
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

/** Limits of what is reserved before it is used. */
export type ReservedName = Extract<MinuteLimitName, 'tokensPerMinute' | 'audioSecondsPerMinute'>

export type ReservedPoints = (name: ReservedName, allowed: number) => number

/** Where a limit by the minute is counted, and how much of it there is. */
interface KeyWindow {
  readonly key: string
  readonly pointsPerUnit: number
  readonly limitPoints: number
}

/**
 * The limits of one caller, and where they are counted. Amounts are in the units of the settings. Made once for many calls:
 * what can be known before is. Answers at once where this process counts.
 */
export class KeyLimiter {
  /** False where the limits are none: `limits: {}`. */
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
   * Brings what was reserved to what was used in the end. What was too much goes back to the window it came from; what
   * was too little is debited to the one that is open now. Not awaited.
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
   * The limit of tokens or audio of which nothing is left, as far as this process knows. `held`: points of the open
   * window that allows so many which are not to be taken for used.
   */
  exhaustedName(held: ReservedPoints = nothingHeld): ReservedName | undefined {
    if (this.isExhausted('tokensPerMinute', held)) return 'tokensPerMinute'
    return this.isExhausted('audioSecondsPerMinute', held) ? 'audioSecondsPerMinute' : undefined
  }

  /** False when as many are under way as the limit allows. */
  take(name: ConcurrencyLimitName, id: string): MaybePromise<boolean> {
    const limit = this.limits[name]
    return limit === undefined || this.counters.leases.take(this.leaseKeys[name], id, limit)
  }

  release(name: ConcurrencyLimitName, id: string): void {
    if (this.limits[name] !== undefined) this.counters.leases.release(this.leaseKeys[name], id)
  }

  /** How many are under way on all replicas. */
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
