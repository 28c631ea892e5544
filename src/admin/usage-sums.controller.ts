import { Controller, Get, Query as QueryString, UseGuards } from '@nestjs/common'
import { ApiOkResponse, ApiOperation, ApiQuery } from '@nestjs/swagger'
import type { Query } from '../core/query.js'
import { ApiAdmin, ApiAdminErrors } from './admin-operations.decorator.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import type { Admin } from './audit-log.js'
import { KeyUsageSumsDto } from './usage-sums.dto.js'
import { UsageSumsService } from './usage-totals.controller.js'

const TIME = 'ISO 8601 or Unix seconds'

@ApiAdmin()
@Controller('admin/v1/usage')
@UseGuards(AdminGuard)
export class UsageSumsController {
  constructor(private readonly usage: UsageSumsService) {}

  @Get()
  @ApiOperation({ summary: 'What everybody has used, and what it cost' })
  @ApiQuery({
    name: 'from',
    required: false,
    type: String,
    description: `${TIME}; by default 24 hours before to, at most 366 days`,
  })
  @ApiQuery({ name: 'to', required: false, type: String, description: `${TIME}, not included; by default now` })
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
