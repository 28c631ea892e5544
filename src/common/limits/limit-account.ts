import type { KeyLimits } from '../../config/gateway-config.js'
import type { LimitLedger } from './limit-ledger.js'
import { counterKey, type HeldLimitName, MINUTE_LIMITS, type MinuteLimitName } from './limit-names.js'
import type { Addition, WindowState } from './limit-windows.js'

/** The limits of one caller, and where they are counted. Amounts are in the units of the settings. */
export class LimitAccount {
  constructor(
    readonly limits: KeyLimits,
    readonly scope: string,
    private readonly ledger: LimitLedger,
  ) {}

  /** Uses an amount if it fits; undefined without such a limit. */
  async add(name: MinuteLimitName, amount: number): Promise<Addition | undefined> {
    const limit = this.limits[name]
    if (limit === undefined) return undefined
    return await this.ledger.add(this.key(name), pointsOf(name, amount), pointsOf(name, limit))
  }

  /**
   * Brings what was reserved to what was used in the end. What was too much goes back to the window it came from; what
   * was too little is debited to the one that is open now.
   */
  async settle(name: MinuteLimitName, reserved: Addition | undefined, used: number): Promise<void> {
    const limit = this.limits[name]
    if (limit === undefined) return
    const difference = pointsOf(name, used) - (reserved?.counted ?? 0)
    if (difference > 0) await this.ledger.debit(this.key(name), difference, pointsOf(name, limit))
    if (difference < 0 && reserved !== undefined) {
      await this.ledger.giveBack(this.key(name), -difference, pointsOf(name, limit), reserved)
    }
  }

  async peek(name: MinuteLimitName): Promise<WindowState | undefined> {
    const limit = this.limits[name]
    return limit === undefined ? undefined : await this.ledger.peek(this.key(name), pointsOf(name, limit))
  }

  lastSeen(name: MinuteLimitName): WindowState | undefined {
    return this.ledger.lastSeen(this.key(name))
  }

  /** False when as many are under way as the limit allows. */
  async take(name: HeldLimitName, id: string): Promise<boolean> {
    const limit = this.limits[name]
    return limit === undefined || (await this.ledger.leases.take(this.key(name), id, limit))
  }

  release(name: HeldLimitName, id: string): void {
    if (this.limits[name] !== undefined) this.ledger.leases.release(this.key(name), id)
  }

  /** How many are under way on all replicas. */
  inUse(name: HeldLimitName): Promise<number> {
    return this.ledger.leases.count(this.key(name))
  }

  private key(name: MinuteLimitName | HeldLimitName): string {
    return counterKey(name, this.scope)
  }
}

const pointsOf = (name: MinuteLimitName, amount: number): number =>
  Math.ceil(amount * MINUTE_LIMITS[name].pointsPerUnit)
