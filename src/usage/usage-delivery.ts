import { setTimeout as pause } from 'node:timers/promises'
import { isNativeError } from 'node:util/types'
import { GatewayError } from '../core/errors.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { Logger } from '../observability/logger.js'
import type { DroppedUsage } from './usage-metrics.js'
import { UsageRepository } from './usage.repository.js'

const FIRST_RETRY_MS = 500
const LONGEST_RETRY_MS = 15_000

/** SQLSTATE: data exceptions and violated constraints. All other errors concern the server. */
const ROW_ERROR_CODES = /^2[23]/

/**
 * Inserts records into the store, with retries until it has them. A record that was inserted before is ignored by its
 * id.
 */
export class RecordDelivery {
  private stopAtMs = Infinity
  private wake = new AbortController()
  private isFailing = false

  constructor(
    private readonly records: UsageRepository,
    private readonly lost: DroppedUsage,
    private readonly logger: Logger,
  ) {}

  /**
   * Stops retries after this time, on the performance clock. A delivery that waits for its next attempt makes it now.
   */
  stop(atMs: number): void {
    this.stopAtMs = atMs
    this.wake.abort()
  }

  /** Resolves with the records that could not be delivered in time, none before `stop`; never rejects. */
  async deliver(batch: readonly UsageRecord[]): Promise<readonly UsageRecord[]> {
    for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
      try {
        await this.records.insert(batch)
        this.isFailing = false
        return []
      } catch (error) {
        if (isRowError(error)) return this.deliverHalves(batch, error)
        this.log(error)
        if (performance.now() + retryMs >= this.stopAtMs) return batch
        await this.pauseFor(retryMs)
      }
    }
  }

  /** Splits the batch, so that one refused row does not hold back the others. */
  private async deliverHalves(batch: readonly UsageRecord[], error: unknown): Promise<readonly UsageRecord[]> {
    const [record] = batch
    if (batch.length === 1 && record !== undefined) {
      this.logger.error({ err: error }, 'a usage record was refused by the store')
      this.lost.log('refused', [record])
      return []
    }
    const middle = Math.ceil(batch.length / 2)
    const undelivered = await this.deliver(batch.slice(0, middle))
    return [...undelivered, ...(await this.deliver(batch.slice(middle)))]
  }

  /** An outage is logged by the database layer. */
  private log(error: unknown): void {
    const isAway = error instanceof GatewayError && error.kind === 'overloaded'
    if (!isAway && !this.isFailing) this.logger.warn({ err: error }, 'usage waits: the store does not take it')
    this.isFailing = !isAway
  }

  private async pauseFor(milliseconds: number): Promise<void> {
    this.wake = new AbortController()
    if (this.stopAtMs !== Infinity) return pause(milliseconds)
    await pause(milliseconds, undefined, { signal: this.wake.signal, ref: false }).catch(() => undefined)
  }
}

const isRowError = (error: unknown): boolean =>
  isNativeError(error) && 'code' in error && typeof error.code === 'string' && ROW_ERROR_CODES.test(error.code)
