import type { BeforeApplicationShutdown } from '@nestjs/common'
import type { AdminTrail } from './audit-log.js'

const NOBODY = '-'
const TRAIL_WINDOW_MS = 60_000
const NAMED_ADDRESSES = 10

/** A request that was not let in. */
export interface Refusal {
  readonly requestId: string
  readonly reason: string
  readonly method: string
  readonly address: string
}

/**
 * Writes down whoever was not let in: the first of a minute as it was, and of all others of that minute one row with their
 * number. The audit log must not be anybody's to fill.
 */
export class StrangerTrail implements BeforeApplicationShutdown {
  private timer: NodeJS.Timeout | undefined
  /** After the first one. */
  private refused = 0
  private readonly addresses = new Set<string>()

  constructor(
    private readonly trail: Pick<AdminTrail, 'note'>,
    private readonly windowMs = TRAIL_WINDOW_MS,
  ) {}

  /** Resolves when the first one is written down, or could not be; at once for others. */
  async note({ requestId, ...details }: Refusal): Promise<void> {
    if (this.timer !== undefined) {
      this.refused++
      if (this.addresses.size < NAMED_ADDRESSES) this.addresses.add(details.address)
      return
    }
    this.timer = setTimeout(() => void this.sumUp(), this.windowMs).unref()
    await this.trail.note({ actor: NOBODY, requestId }, { action: 'authorize', details: { ...details } }, 'refused')
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.sumUp()
  }

  private async sumUp(): Promise<void> {
    clearTimeout(this.timer)
    this.timer = undefined
    const { refused } = this
    const details = { refused, seconds: this.windowMs / 1000, addresses: [...this.addresses] }
    this.refused = 0
    this.addresses.clear()
    if (refused === 0) return
    await this.trail.note({ actor: NOBODY, requestId: NOBODY }, { action: 'authorize', details }, 'refused')
  }
}
