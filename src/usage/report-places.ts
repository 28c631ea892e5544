import { GatewayError } from '../common/errors/gateway-error.js'

/** A statement may take three times as long; most take far less. */
const RETRY_AFTER_SECONDS = 1

/**
 * Who may have a report made now: some callers at once, each of them one, and always one operator. Further operators have
 * the places that callers leave free.
 */
export class ReportPlaces {
  private readonly owners = new Set<string>()
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
    const isFree = this.owners.size + Math.max(0, this.operators - 1) < callersAtOnce
    const mayBegin = ownerId === undefined ? isFree || this.operators === 0 : isFree && !this.owners.has(ownerId)
    if (!mayBegin) throw tooMany()
    this.enter(ownerId)
    try {
      return await work()
    } finally {
      this.leave(ownerId)
    }
  }

  private enter(ownerId: string | undefined): void {
    if (ownerId === undefined) this.operators++
    else this.owners.add(ownerId)
  }

  private leave(ownerId: string | undefined): void {
    if (ownerId === undefined) this.operators--
    else this.owners.delete(ownerId)
  }
}

const tooMany = (): GatewayError =>
  new GatewayError('overloaded', 'Other reports of usage are being made. Try again in a moment.', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
