import { Controller, Get, Query as QueryString, UseGuards } from '@nestjs/common'
import { ApiBearerAuth, ApiOkResponse, ApiOperation, ApiQuery, ApiTags } from '@nestjs/swagger'
import { KeyGuard } from '../auth/key.guard.js'
import type { Query } from '../core/query.js'
import type { Call } from '../core/request-context.js'
import { ApiChatErrors } from '../dialects/error-docs.js'
import { CurrentCall } from '../server/json-request.js'
import { UsageRecordsDto, UsageSumsDto } from '../usage/usage.dto.js'
import { UsageService } from './usage.service.js'

const TIME = 'ISO 8601 or Unix seconds'

@ApiTags('usage')
@ApiBearerAuth()
@Controller('v1/usage')
@UseGuards(KeyGuard)
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  @Get()
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
  sums(@QueryString() query: Query, @CurrentCall() call: Call): Promise<UsageSumsDto> {
    return this.usage.sums(query, call)
  }

  @Get('records')
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
  records(@QueryString() query: Query, @CurrentCall() call: Call): Promise<UsageRecordsDto> {
    return this.usage.records(query, call)
  }
}
