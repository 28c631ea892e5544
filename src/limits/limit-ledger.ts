import { LRUCache } from 'lru-cache'
import type { LimitLeases } from './limit-leases.js'
import type { Addition, LimitWindows, Soon, WindowState } from './limit-windows.js'

/** Windows whose last known state is remembered; of others it is asked for when it is needed. */
const MAXIMUM_REMEMBERED = 10_000

/** What counts, wherever it counts, and what was last seen of it here. Answers at once where this process counts. */
export class LimitLedger {
  private readonly seen = new LRUCache<string, WindowState>({ max: MAXIMUM_REMEMBERED })

  constructor(
    private readonly windows: LimitWindows,
    readonly leases: LimitLeases,
  ) {}

  add(key: string, points: number, limit: number): Soon<Addition | undefined> {
    return this.see(key, this.windows.add(key, points, limit))
  }

  debit(key: string, points: number, limit: number): Soon<WindowState | undefined> {
    return this.see(key, this.windows.debit(key, points, limit))
  }

  giveBack(key: string, points: number, limit: number, addition: Addition): Soon<WindowState | undefined> {
    const answer = addition.home.giveBack(key, points, limit, addition.endsAtMs)
    if (answer instanceof Promise) this.expectBack(key, points, addition)
    return this.see(key, answer)
  }

  peek(key: string, limit: number): Soon<WindowState | undefined> {
    return this.see(key, this.windows.peek(key, limit))
  }

  /** The window as this process saw it last; undefined when it is over or was never seen. */
  lastSeen(key: string): WindowState | undefined {
    const state = this.seen.get(key)
    return state !== undefined && state.endsAtMs > performance.now() ? state : undefined
  }

  /** Whoever gives back waits for no answer, and may have to tell at once what is left then. */
  private expectBack(key: string, points: number, { allowed, endsAtMs }: Addition): void {
    const seen = this.lastSeen(key)
    // A later window is left as it is, and so is this process's own, which counts while Redis is away.
    if (seen?.allowed !== allowed || endsAtMs <= performance.now()) return
    this.seen.set(key, { used: Math.max(0, seen.used - points), allowed, endsAtMs: seen.endsAtMs })
  }

  private see<State extends WindowState>(key: string, state: Soon<State | undefined>): Soon<State | undefined> {
    if (!(state instanceof Promise)) return this.remember(key, state)
    return state.then((answer) => this.remember(key, answer))
  }

  private remember<State extends WindowState>(key: string, state: State | undefined): State | undefined {
    if (state !== undefined) this.seen.set(key, state)
    return state
  }
}
