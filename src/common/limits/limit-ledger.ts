import { LRUCache } from 'lru-cache'
import type { LimitLeases } from './limit-leases.js'
import type { Addition, LimitWindows, WindowState } from './limit-windows.js'

/** Windows whose last known state is remembered; of others it is asked for when it is needed. */
const MAXIMUM_REMEMBERED = 10_000

/** What counts, wherever it counts, and what was last seen of it here. */
export class LimitLedger {
  private readonly seen = new LRUCache<string, WindowState>({ max: MAXIMUM_REMEMBERED })

  constructor(
    private readonly windows: LimitWindows,
    readonly leases: LimitLeases,
  ) {}

  async add(key: string, points: number, limit: number): Promise<Addition | undefined> {
    const addition = await this.windows.add(key, points, limit)
    this.see(key, addition)
    return addition
  }

  async debit(key: string, points: number, limit: number): Promise<void> {
    this.see(key, await this.windows.debit(key, points, limit))
  }

  async giveBack(key: string, points: number, limit: number, { home, endsAtMs }: Addition): Promise<void> {
    this.see(key, await home.giveBack(key, points, limit, endsAtMs))
  }

  async peek(key: string, limit: number): Promise<WindowState | undefined> {
    const state = await this.windows.peek(key, limit)
    this.see(key, state)
    return state
  }

  /** The window as this process saw it last; undefined when it is over or was never seen. */
  lastSeen(key: string): WindowState | undefined {
    const state = this.seen.get(key)
    return state !== undefined && state.endsAtMs > performance.now() ? state : undefined
  }

  private see(key: string, state: WindowState | undefined): void {
    if (state !== undefined) this.seen.set(key, state)
  }
}
