import { Controller, Get, Query, UseGuards } from '@nestjs/common'
import { ApiOkResponse, ApiOperation, ApiQuery } from '@nestjs/swagger'
import type { Query as QueryMap } from '../core/query.js'
import { ApiAdmin, ApiAdminErrors } from './admin-operations.decorator.js'
import { readQuery, wholeNumber } from './admin-query.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import type { Admin } from './audit-log.js'
import { AuditPageDto } from './audit.dto.js'
import { AuditService } from './audit.service.js'

const DEFAULT_PAGE = 100
const LARGEST_PAGE = 1000

@ApiAdmin()
@Controller('admin/v1/audit')
@UseGuards(AdminGuard)
export class AuditController {
  constructor(private readonly audit: AuditService) {}

  @Get()
  @ApiOperation({ summary: 'What was done with the admin key, the newest first' })
  @ApiQuery({ name: 'limit', required: false, type: Number, description: '1 to 1000; 100 without it' })
  @ApiQuery({ name: 'before', required: false, type: Number, description: 'Only what has a smaller sequence' })
  @ApiOkResponse({ type: AuditPageDto })
  @ApiAdminErrors([400, 401, 404, 429, 503])
  page(@Query() query: QueryMap, @CurrentAdmin() admin: Admin): Promise<AuditPageDto> {
    const { limit, before } = readQuery(query, ['limit', 'before'])
    return this.audit.page(
      admin,
      wholeNumber('limit', limit, [1, LARGEST_PAGE]) ?? DEFAULT_PAGE,
      wholeNumber('before', before, [0, Number.MAX_SAFE_INTEGER]),
    )
  }
}
