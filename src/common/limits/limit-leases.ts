import { shareOf } from './limit-names.js'

/** What is under way at one time, by key; each of it has an id of its own. No method rejects. */
export interface LimitLeases {
  /** False when as many are under way as the limit allows. */
  take(key: string, id: string, limit: number): Promise<boolean>
  release(key: string, id: string): void
  /** How many are under way. */
  count(key: string): Promise<number>
}

/** Leases of this process, which may use `share` (above 0, at most 1) of each limit. */
export class LocalLeases implements LimitLeases {
  private readonly held = new Map<string, Set<string>>()

  constructor(private readonly share = 1) {}

  take(key: string, id: string, limit: number): Promise<boolean> {
    const isFree = this.countHere(key) < shareOf(limit, this.share)
    if (isFree) this.hold(key, id)
    return Promise.resolve(isFree)
  }

  release(key: string, id: string): void {
    const ids = this.held.get(key)
    ids?.delete(id)
    if (ids?.size === 0) this.held.delete(key)
  }

  count(key: string): Promise<number> {
    return Promise.resolve(this.countHere(key))
  }

  /** Notes a lease that was granted elsewhere. */
  hold(key: string, id: string): void {
    const ids = this.held.get(key)
    if (ids === undefined) this.held.set(key, new Set([id]))
    else ids.add(id)
  }

  countHere(key: string): number {
    return this.held.get(key)?.size ?? 0
  }

  /** Everything held, by key. */
  all(): IterableIterator<[string, ReadonlySet<string>]> {
    return this.held.entries()
  }
}
