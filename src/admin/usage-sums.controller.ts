import { Controller, Get, Injectable, Query as QueryString, UseGuards } from '@nestjs/common'
import { ApiOkResponse, ApiOperation, ApiProperty, ApiQuery } from '@nestjs/swagger'
import type { Query } from '../core/dto.js'
import { ApiPeriod, DAY_MS, type Period, readPeriod, UsageReportDto, UsageSumDto } from '../usage/usage.dto.js'
import {
  USAGE_GROUPS,
  type UsageGroup,
  type UsageQuery,
  UsageReports,
  type UsageSum,
} from '../usage/usage.repository.js'
import { ApiAdmin, ApiAdminErrors, invalid, readQuery } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditLog } from './audit-log.js'

/** Usage sum, optionally grouped by key. */
class KeyUsageSumDto extends UsageSumDto {
  @ApiProperty({ required: false, description: 'With group_by=key; caller = all with an upstream key of their own' })
  readonly key?: string

  constructor(sum: UsageSum) {
    super(sum)
    if (sum.keyId !== undefined) this.key = sum.keyId
  }
}

class KeyUsageSumsDto extends UsageReportDto {
  @ApiProperty({ type: [KeyUsageSumDto] })
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

@ApiAdmin()
@Controller('admin/v1/usage')
@UseGuards(AdminGuard)
export class UsageSumsController {
  constructor(private readonly usage: UsageSumsService) {}

  @Get()
  @ApiOperation({ summary: 'What everybody has used, and what it cost' })
  @ApiPeriod(MAXIMUM_PERIOD_MS)
  @ApiQuery({ name: 'group_by', required: false, type: String, description: 'none, or some of day,model,channel,key' })
  @ApiQuery({ name: 'key', required: false, type: String, description: 'Only this key id' })
  @ApiQuery({ name: 'model', required: false, type: String, description: 'Only this model' })
  @ApiQuery({ name: 'channel', required: false, type: String, description: 'Only this channel' })
  @ApiOkResponse({ type: KeyUsageSumsDto })
  @ApiAdminErrors([400, 401, 404, 429, 503])
  sums(@QueryString() query: Query, @CurrentAdmin() admin: Admin): Promise<KeyUsageSumsDto> {
    return this.usage.sums(admin, query)
  }
}
