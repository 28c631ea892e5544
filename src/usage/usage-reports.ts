import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/gateway-error.js'
import type { UsageRecord } from '../core/usage-record.js'
import { ReportPlaces } from './report-places.js'
import { UsageLedger } from './usage-queue.js'
import { type UsageQuestion, UsageReports, type UsageSum } from './usage-usage-reports.js'
import { type UsagePage, UsageRepository } from './usage.repository.js'

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
    private readonly ledger: UsageLedger,
    private readonly store: ConfigStore,
  ) {
    super()
  }

  override async sums(question: UsageQuestion): Promise<readonly UsageSum[]> {
    const sums = await this.report(question.ownerId, () => this.records.sums(question, MAXIMUM_GROUPS + 1))
    if (sums.length <= MAXIMUM_GROUPS) return sums
    throw new GatewayError('invalid_request', 'There are too many groups: ask for a shorter period or fewer groups.', {
      param: 'group_by',
      code: 'too_many_groups',
    })
  }

  /** One caller's records, newest first. Rejects as `sums` does. */
  list(page: UsagePage): Promise<readonly UsageRecord[]> {
    return this.report(page.ownerId, () => this.records.list(page))
  }

  private async report<Result>(ownerId: string | undefined, make: () => Promise<Result>): Promise<Result> {
    const { usage, database } = this.store.current
    if (usage.store === false) {
      throw new GatewayError('not_found', 'Usage is not stored by this gateway.', { code: 'usage_not_stored' })
    }
    const callersAtOnce = Math.min(CALLERS_AT_ONCE, Math.ceil(database.maxConnections / LEAST_CONNECTIONS_EACH))
    return this.places.during(ownerId, callersAtOnce, async () => {
      await this.ledger.flush()
      return make()
    })
  }
}
