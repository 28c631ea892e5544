import { Injectable } from '@nestjs/common'
import { ownerOf } from '../core/owner.js'
import type { Query } from '../core/query.js'
import type { Call } from '../core/request-context.js'
import {
  assertKnown,
  cursorOf,
  DAY_MS,
  type Period,
  readCursor,
  readGroups,
  readLimit,
  readPeriod,
} from '../usage/usage-query.js'
import { StoredUsageReports } from '../usage/usage-reports.js'
import { UsageRecordsDto, UsageSumsDto } from '../usage/usage.dto.js'

/** Three months, however they fall: what a report has to look through must have an end. */
const LONGEST_PERIOD_MS = 92 * DAY_MS

/** What a caller may know of its own usage, and of nobody else's. */
@Injectable()
export class UsageService {
  constructor(private readonly reports: StoredUsageReports) {}

  /** Rejects with `invalid_request`, naming the parameter, and as `UsageReports` does. */
  async sums(query: Query, call: Call): Promise<UsageSumsDto> {
    assertKnown(query, ['from', 'to', 'group_by'])
    const period = periodOf(query)
    const groupBy = readGroups(query)
    return new UsageSumsDto(period, await this.reports.sums({ ...period, groupBy, ownerId: ownerOf(call.caller) }))
  }

  /** The same for single records. */
  async records(query: Query, call: Call): Promise<UsageRecordsDto> {
    assertKnown(query, ['from', 'to', 'limit', 'cursor'])
    const period = periodOf(query)
    const limit = readLimit(query)
    const after = readCursor(query)
    const page = { ...period, ownerId: ownerOf(call.caller), ...(after === undefined ? {} : { after }) }
    // One more than is shown tells whether there is another page.
    const found = await this.reports.list({ ...page, limit: limit + 1 })
    const shown = found.slice(0, limit)
    const last = shown.at(-1)
    return new UsageRecordsDto(shown, last === undefined || found.length <= limit ? null : cursorOf(last))
  }
}

const periodOf = (query: Query): Period => readPeriod(query, Date.now() + 1, LONGEST_PERIOD_MS)
