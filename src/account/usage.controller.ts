import { Controller, Injectable, Query as QueryString } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiQuery, ApiTags } from '@nestjs/swagger'
import { ownerOf } from '../core/caller.js'
import type { Query } from '../core/query.js'
import type { RequestContext } from '../core/request-context.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest } from '../server/json-request.js'
import {
  assertKnown,
  cursorOf,
  DAY_MS,
  type Period,
  readCursor,
  readGroups,
  readLimit,
  readPeriod,
  UsageRecordsDto,
  UsageSumsDto,
} from '../usage/usage.dto.js'
import { UsageReports } from '../usage/usage.repository.js'
import { USAGE, USAGE_RECORDS } from './account.endpoints.js'

/** Three months, however they fall: what a report has to look through must have an end. */
const LONGEST_PERIOD_MS = 92 * DAY_MS

/** What a caller may know of its own usage, and of nobody else's. */
@Injectable()
export class UsageService {
  constructor(private readonly reports: UsageReports) {}

  /** Rejects with `invalid_request`, naming the parameter, and as `UsageReports` does. */
  async sums(query: Query, call: RequestContext): Promise<UsageSumsDto> {
    assertKnown(query, ['from', 'to', 'group_by'])
    const period = periodOf(query)
    const groupBy = readGroups(query)
    return new UsageSumsDto(period, await this.reports.sums({ ...period, groupBy, ownerId: ownerOf(call.caller) }))
  }

  /** The same for single records. */
  async records(query: Query, call: RequestContext): Promise<UsageRecordsDto> {
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

const TIME = 'ISO 8601 or Unix seconds'

@ApiTags('usage')
@ApiBearerAuth()
@Controller()
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  @Endpoint(USAGE)
  @ApiOperation({ summary: 'What this key has used, and what it cost' })
  @ApiQuery({
    name: 'from',
    required: false,
    type: String,
    description: `${TIME}; by default 24 hours before to, at most 92 days`,
  })
  @ApiQuery({ name: 'to', required: false, type: String, description: `${TIME}, not included; by default now` })
  @ApiQuery({ name: 'group_by', required: false, enum: ['none', 'day', 'model', 'channel'] })
  @ApiOkResponse({ type: UsageSumsDto })
  @ApiChatErrors()
  sums(@QueryString() query: Query, @CurrentRequest() call: RequestContext): Promise<UsageSumsDto> {
    return this.usage.sums(query, call)
  }

  @Endpoint(USAGE_RECORDS)
  @ApiOperation({ summary: 'The single records of this key, newest first' })
  @ApiQuery({
    name: 'from',
    required: false,
    type: String,
    description: `${TIME}; by default 24 hours before to, at most 92 days`,
  })
  @ApiQuery({ name: 'to', required: false, type: String, description: `${TIME}, not included; by default now` })
  @ApiQuery({ name: 'limit', required: false, type: Number, description: '1 to 1000, by default 100' })
  @ApiQuery({ name: 'cursor', required: false, type: String, description: 'next_cursor of the page before' })
  @ApiOkResponse({ type: UsageRecordsDto })
  @ApiChatErrors()
  records(@QueryString() query: Query, @CurrentRequest() call: RequestContext): Promise<UsageRecordsDto> {
    return this.usage.records(query, call)
  }
}
