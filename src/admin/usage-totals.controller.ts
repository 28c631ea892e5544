import { Injectable } from '@nestjs/common'
import type { Query } from '../core/query.js'
import { DAY_MS, readPeriod } from '../usage/usage-query.js'
import { USAGE_GROUPS, type UsageGroup, type UsageQuestion, UsageReports } from '../usage/usage-usage-reports.js'
import { invalid, readQuery } from './admin-query.js'
import { type Admin, AdminTrail } from './audit-log.js'
import { KeyUsageSumsDto } from './usage-sums.dto.js'

/** A year, leap years included: the sums of all keys look through everything in it. */
const LONGEST_PERIOD_MS = 366 * DAY_MS

/** What everybody has used. */
@Injectable()
export class UsageSumsService {
  constructor(
    private readonly reports: UsageReports,
    private readonly trail: AdminTrail,
  ) {}

  /** Rejects with `invalid_request`, naming the parameter, and as `UsageReports` does. */
  sums(admin: Admin, query: Query): Promise<KeyUsageSumsDto> {
    const question = questionOf(query)
    return this.trail.look(
      admin,
      { action: 'usage.show' },
      async () => new KeyUsageSumsDto(question, await this.reports.sums(question)),
    )
  }
}

function questionOf(query: Query): UsageQuestion {
  const read = readQuery(query, ['from', 'to', 'group_by', 'key', 'model', 'channel'])
  return {
    // The record of this very millisecond is in.
    ...readPeriod(query, Date.now() + 1, LONGEST_PERIOD_MS),
    groupBy: groupsOf(read.group_by),
    ...(read.key === undefined ? {} : { keyId: read.key }),
    ...(read.model === undefined ? {} : { model: read.model }),
    ...(read.channel === undefined ? {} : { channelId: read.channel }),
  }
}

/** `day,key`: every group at most once. */
function groupsOf(text: string | undefined): readonly UsageGroup[] {
  if (text === undefined || text === 'none') return []
  const words = text.split(',')
  const groups = USAGE_GROUPS.filter((group) => words.includes(group))
  if (groups.length === words.length) return groups
  throw invalid('group_by', `Invalid 'group_by': expected none, or some of ${USAGE_GROUPS.join(', ')} with commas.`)
}
