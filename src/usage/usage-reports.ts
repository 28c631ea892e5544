import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { isOwnBearer } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { UsageRecord } from '../core/usage-record.js'
import { UsageQueue } from './usage-queue.js'
import { type UsagePage, type UsageQuery, UsageReports, UsageRepository, type UsageSum } from './usage.repository.js'

/** A statement may take three times as long; most take far less. */
const RETRY_AFTER_SECONDS = 1

/** All callers with bearers of their own: each bearer that somebody invents would be one more caller with a place. */
const UNKNOWN_CALLERS = 'bearer:'

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

/** More are nobody's to read. */
const MAXIMUM_GROUPS = 10_000

/** Of callers in this process: whatever else asks the store, keys above all, must find a connection. */
const CALLERS_AT_ONCE = 2
const LEAST_CONNECTIONS_EACH = 4

/** Reports of what the store has, after what this process still had to write. */
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

  override async sums(question: UsageQuery): Promise<readonly UsageSum[]> {
    const sums = await this.report(question.ownerId, () => this.records.sums(question, MAXIMUM_GROUPS + 1))
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
