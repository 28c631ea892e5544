import { Injectable } from '@nestjs/common'
import { GatewayError } from '../common/errors/gateway-error.js'
import { ConfigStore } from '../config/config-store.js'
import { UsageLedger } from './usage-ledger.js'
import type { UsageRecord } from './usage-record.js'
import { UsageReports, type UsageQuestion, type UsageSum } from './usage-reports.js'
import { type UsagePage, UsageRepository } from './usage.repository.js'

/** More are nobody's to read, and a caller may invent models by the thousand. */
const MAXIMUM_GROUPS = 10_000

/** Reports of what the store has, after what this process still had to write. */
@Injectable()
export class StoredUsageReports extends UsageReports {
  constructor(
    private readonly records: UsageRepository,
    private readonly ledger: UsageLedger,
    private readonly store: ConfigStore,
  ) {
    super()
  }

  override async sums(question: UsageQuestion): Promise<readonly UsageSum[]> {
    await this.assertCurrent()
    const sums = await this.records.sums(question, MAXIMUM_GROUPS + 1)
    if (sums.length <= MAXIMUM_GROUPS) return sums
    throw new GatewayError('invalid_request', 'There are too many groups: ask for a shorter period or fewer groups.', {
      param: 'group_by',
      code: 'too_many_groups',
    })
  }

  /** One caller's records, newest first. Rejects as `sums` does. */
  async list(page: UsagePage): Promise<readonly UsageRecord[]> {
    await this.assertCurrent()
    return await this.records.list(page)
  }

  private async assertCurrent(): Promise<void> {
    if (this.store.current.usage.store === false) {
      throw new GatewayError('not_found', 'Usage is not stored by this gateway.', { code: 'usage_not_stored' })
    }
    await this.ledger.flush()
  }
}
