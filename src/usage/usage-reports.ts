import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { isOwnBearer } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { UsageRecord } from '../core/usage-record.js'
import { UsageQueue } from './usage-queue.js'
import { type UsagePage, type UsageQuery, UsageReports, UsageRepository, type UsageSum } from './usage.repository.js'

/** Most statements take far less; the limit is three times as long. */
const RETRY_AFTER_SECONDS = 1

/** All callers with bearers of their own share one slot: any invented bearer would be a caller of its own otherwise. */
const UNKNOWN_CALLERS = 'bearer:'

/**
 * Limits the reports that are made at once: a few of callers, one per key and one for all callers' own bearers
 * together, and always one of an operator. Further operators use slots that callers leave free.
 */
export class ReportPlaces {
  private readonly holders = new Set<string>()
  private operators = 0

  /**
   * Runs the work in a slot of that owner, or of an operator, who has no owner id. Rejects with `overloaded` when none
   * is free, and as the work does.
   */
  async during<Result>(
    ownerId: string | undefined,
    callersAtOnce: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const holder = ownerId !== undefined && isOwnBearer(ownerId) ? UNKNOWN_CALLERS : ownerId
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

const MAXIMUM_GROUPS = 10_000

/** Callers' reports at once in this process: all other queries, keys above all, must find a connection. */
const CALLERS_AT_ONCE = 2
const LEAST_CONNECTIONS_EACH = 4

/** Reports from the store, after this process has written its pending records. */
@Injectable()
export class StoredUsageReports extends UsageReports {
  private readonly places = new ReportPlaces()

  constructor(
    private readonly records: UsageRepository,
    private readonly queue: UsageQueue,
    private readonly store: ConfigStore,
  ) {
    super()
  }

  override async sums(query: UsageQuery): Promise<readonly UsageSum[]> {
    const sums = await this.report(query.ownerId, () => this.records.sums(query, MAXIMUM_GROUPS + 1))
    if (sums.length <= MAXIMUM_GROUPS) return sums
    throw new GatewayError('invalid_request', 'There are too many groups: ask for a shorter period or fewer groups.', {
      param: 'group_by',
      code: 'too_many_groups',
    })
  }

  override list(page: UsagePage): Promise<readonly UsageRecord[]> {
    return this.report(page.ownerId, () => this.records.list(page))
  }

  private async report<Result>(ownerId: string | undefined, make: () => Promise<Result>): Promise<Result> {
    const { usage, database } = this.store.current
    if (usage.store === false) {
      throw new GatewayError('not_found', 'Usage is not stored by this gateway.', { code: 'usage_not_stored' })
    }
    const callersAtOnce = Math.min(CALLERS_AT_ONCE, Math.ceil(database.maxConnections / LEAST_CONNECTIONS_EACH))
    return this.places.during(ownerId, callersAtOnce, async () => {
      await this.queue.flush()
      return make()
    })
  }
}
