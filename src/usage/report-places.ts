import { GatewayError } from '../core/gateway-error.js'
import { isOwnBearer } from '../core/owner.js'

/** A statement may take three times as long; most take far less. */
const RETRY_AFTER_SECONDS = 1

/** All callers with bearers of their own: each bearer that somebody invents would be one more caller with a place. */
const STRANGERS = 'bearer:'

/**
 * Who may have a report made now: some callers at once, each key one and all bearers of callers' own one together, and
 * always one operator. Further operators have the places that callers leave free.
 */
export class ReportPlaces {
  private readonly holders = new Set<string>()
  private operators = 0

  /**
   * Does the work in a place of that owner, or of an operator, who has no owner id. Rejects with `overloaded` where none is
   * free, and as the work does.
   */
  async during<Result>(
    ownerId: string | undefined,
    callersAtOnce: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const holder = ownerId !== undefined && isOwnBearer(ownerId) ? STRANGERS : ownerId
    const isFree = this.holders.size + Math.max(0, this.operators - 1) < callersAtOnce
    const mayBegin = holder === undefined ? isFree || this.operators === 0 : isFree && !this.holders.has(holder)
    if (!mayBegin) throw tooMany()
    this.enter(holder)
    try {
      return await work()
    } finally {
      this.leave(holder)
    }
  }

  private enter(holder: string | undefined): void {
    if (holder === undefined) this.operators++
    else this.holders.add(holder)
  }

  private leave(holder: string | undefined): void {
    if (holder === undefined) this.operators--
    else this.holders.delete(holder)
  }
}

const tooMany = (): GatewayError =>
  new GatewayError('overloaded', 'Other reports of usage are being made. Try again in a moment.', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
