import { shareOf } from '../core/limit-names.js'
import { HeldLeases, type LimitLeases } from './limit-leases.js'
import type { RedisLeases } from './redis-counters.js'

/**
 * Leases that all replicas share. What this process holds it also counts itself: that is what it goes by while the
 * others cannot be reached, and what it renews.
 */
export class SharedLeases implements LimitLeases {
  private readonly local = new HeldLeases()
  private renewing: Promise<void> | undefined
  private isDueAgain = false

  constructor(
    private readonly shared: RedisLeases,
    /** Of each limit, while the others cannot be reached. */
    private readonly localShare: number,
  ) {}

  async take(key: string, id: string, limit: number): Promise<boolean> {
    const answer = await this.shared.take(key, id, limit, () => this.local.holds(key, id))
    const isTaken = answer ?? this.local.count(key) < shareOf(limit, this.localShare)
    if (isTaken) this.local.hold(key, id)
    return isTaken
  }

  release(key: string, id: string): void {
    this.local.release(key, id)
    this.shared.release(key, id)
  }

  async count(key: string): Promise<number> {
    return (await this.shared.count(key)) ?? this.local.count(key)
  }

  /**
   * Keeps what is held from ending, and tells of what was taken while nobody could be told. While one renewal is under
   * way, all others that are asked for are one, which follows it.
   */
  renew(): Promise<void> {
    this.isDueAgain = true
    this.renewing ??= this.renewWhileDue()
    return this.renewing
  }

  private async renewWhileDue(): Promise<void> {
    while (this.isDueAgain) {
      this.isDueAgain = false
      await this.shared.renew(this.local.all())
    }
    this.renewing = undefined
  }
}
