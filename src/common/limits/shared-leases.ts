import { type LimitLeases, LocalLeases } from './limit-leases.js'
import type { RedisLeases } from './redis-leases.js'
import { shareOf } from './limit-names.js'

/**
 * Leases that all replicas share. What this process holds it also counts itself: that is what it goes by while the
 * others cannot be reached, and what it renews.
 */
export class SharedLeases implements LimitLeases {
  private readonly local = new LocalLeases()

  constructor(
    private readonly shared: RedisLeases,
    /** Of each limit, while the others cannot be reached. */
    private readonly localShare: number,
  ) {}

  async take(key: string, id: string, limit: number): Promise<boolean> {
    const answer = await this.shared.take(key, id, limit)
    const isTaken = answer ?? this.local.countHere(key) < shareOf(limit, this.localShare)
    if (isTaken) this.local.hold(key, id)
    return isTaken
  }

  release(key: string, id: string): void {
    this.local.release(key, id)
    void this.shared.release(key, id)
  }

  async count(key: string): Promise<number> {
    return (await this.shared.count(key)) ?? this.local.countHere(key)
  }

  /** Keeps what is held from ending, and tells of what was taken while nobody could be told. */
  async renew(): Promise<void> {
    for (const [key, ids] of [...this.local.all()]) await this.shared.renew(key, ids)
  }
}
