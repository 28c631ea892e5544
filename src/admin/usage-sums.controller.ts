import { Controller, Injectable, Query as QueryString, UseGuards } from '@nestjs/common'
import { type Query, schemaOf, Shown } from '../core/dto.js'
import { described, listOf, TEXT } from '../core/json-schema.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { DAY_MS, type Period, periodParameters, readPeriod, UsageReportDto, UsageSumDto } from '../usage/usage.dto.js'
import {
  USAGE_GROUPS,
  type UsageGroup,
  type UsageQuery,
  UsageReports,
  type UsageSum,
} from '../usage/usage.repository.js'
import { adminRoute, invalid, readQuery, textParameter } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditLog } from './audit-log.js'

/** Usage sum, optionally grouped by key. */
class KeyUsageSumDto extends UsageSumDto {
  @Shown(described('With group_by=key; caller = all with an upstream key of their own'), false)
  readonly key?: string

  constructor(sum: UsageSum) {
    super(sum)
    if (sum.keyId !== undefined) this.key = sum.keyId
  }
}

class KeyUsageSumsDto extends UsageReportDto {
  @Shown(listOf(schemaOf(KeyUsageSumDto, 'KeyUsageSum', 'What one group has used'), 'In the order of their groups'))
  readonly data: readonly KeyUsageSumDto[]

  constructor(period: Period, sums: readonly UsageSum[]) {
    super(period)
    this.data = sums.map((sum) => new KeyUsageSumDto(sum))
  }
}

/** A year, leap years included: the query scans all records of the period. */
const MAXIMUM_PERIOD_MS = 366 * DAY_MS

@Injectable()
export class UsageSumsService {
  constructor(
    private readonly reports: UsageReports,
    private readonly auditLog: AuditLog,
  ) {}

  /** Rejects with `invalid_request`, naming the parameter, and as `UsageReports` does. */
  sums(admin: Admin, query: Query): Promise<KeyUsageSumsDto> {
    const usageQuery = queryOf(query)
    return this.auditLog.read(
      admin,
      { action: 'usage.show' },
      async () => new KeyUsageSumsDto(usageQuery, await this.reports.sums(usageQuery)),
    )
  }
}

function queryOf(query: Query): UsageQuery {
  const read = readQuery(query, ['from', 'to', 'group_by', 'key', 'model', 'channel'])
  return {
    // `to` is exclusive; +1 includes the current millisecond.
    ...readPeriod(query, Date.now() + 1, MAXIMUM_PERIOD_MS),
    groupBy: parseGroupBy(read.group_by),
    ...(read.key === undefined ? {} : { keyId: read.key }),
    ...(read.model === undefined ? {} : { model: read.model }),
    ...(read.channel === undefined ? {} : { channelId: read.channel }),
  }
}

/** `day,key`: every group at most once. */
function parseGroupBy(text: string | undefined): readonly UsageGroup[] {
  if (text === undefined || text === 'none') return []
  const words = text.split(',')
  const groups = USAGE_GROUPS.filter((group) => words.includes(group))
  if (groups.length === words.length) return groups
  throw invalid('group_by', `Invalid 'group_by': expected none, or some of ${USAGE_GROUPS.join(', ')} with commas.`)
}

const GROUP_LIST = `(${USAGE_GROUPS.join('|')})`

export const SHOW_USAGE = adminRoute('GET', '/usage', {
  operationId: 'getGatewayUsage',
  summary: 'What everybody has used, and what it cost',
  description: 'Sums of the records of a period, by group.',
  parameters: [
    ...periodParameters(MAXIMUM_PERIOD_MS),
    {
      in: 'query',
      name: 'group_by',
      description: `none, or some of ${USAGE_GROUPS.join(',')}, each once`,
      schema: { ...TEXT, pattern: `^(none|${GROUP_LIST}(,${GROUP_LIST})*)$` },
    },
    textParameter('key', 'Only this key id'),
    textParameter('model', 'Only this model'),
    textParameter('channel', 'Only this channel'),
  ],
  answer: {
    description: 'One sum for each group',
    content: { 'application/json': schemaOf(KeyUsageSumsDto, 'KeyUsageSums', 'Sums of usage, also by key') },
  },
})

@Controller()
@UseGuards(AdminGuard)
export class UsageSumsController {
  constructor(private readonly usage: UsageSumsService) {}

  @Endpoint(SHOW_USAGE, [])
  sums(@QueryString() query: Query, @CurrentAdmin() admin: Admin): Promise<KeyUsageSumsDto> {
    return this.usage.sums(admin, query)
  }
}
