import { shareOf } from '../core/limit-names.js'
import type { Soon } from './limit-windows.js'

/** What is under way at one time, by key; each of it has an id of its own. No method rejects. */
export interface LimitLeases {
  /** False when as many are under way as the limit allows. */
  take(key: string, id: string, limit: number): Soon<boolean>
  /** What was taken, once. */
  release(key: string, id: string): void
  /** How many are under way. */
  count(key: string): Soon<number>
}

/** Leases of this process alone, which may use `share` (above 0, at most 1) of each limit: nobody asks whose they are. */
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
