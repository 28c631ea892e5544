import { Controller, Get, Injectable, Query, UseGuards } from '@nestjs/common'
import { ApiOkResponse, ApiOperation, ApiProperty, ApiQuery } from '@nestjs/swagger'
import type { Query as QueryMap } from '../core/dto.js'
import { ApiAdmin, ApiAdminErrors, pageOf, readQuery, wholeNumber } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditRepository, AuditLog, type AuditOutcome, type AuditRecord } from './audit-log.js'

class AuditRecordDto {
  @ApiProperty()
  readonly sequence: number

  @ApiProperty({ description: 'Unix milliseconds' })
  readonly at: number

  @ApiProperty({ description: 'Fingerprint of the admin key, cli, or - for somebody who was not let in' })
  readonly actor: string

  @ApiProperty({ example: 'keys.create' })
  readonly action: string

  @ApiProperty({ type: String, nullable: true })
  readonly target: string | null

  @ApiProperty({ enum: ['begun', 'done', 'refused', 'failed'], description: 'begun = its end was never written down' })
  readonly outcome: AuditOutcome

  @ApiProperty({ type: 'object', additionalProperties: true })
  readonly details: Readonly<Record<string, unknown>>

  @ApiProperty()
  readonly request_id: string

  constructor(record: AuditRecord) {
    this.sequence = record.sequence
    this.at = record.atMs
    this.actor = record.actor
    this.action = record.action
    this.target = record.target ?? null
    this.outcome = record.outcome
    this.details = record.details
    this.request_id = record.requestId
  }
}

class AuditPageDto extends pageOf(AuditRecordDto, 'Ask again with before=<last sequence>') {}

@Injectable()
export class AuditService {
  constructor(
    private readonly audit: AuditRepository,
    private readonly auditLog: AuditLog,
  ) {}

  page(admin: Admin, limit: number, before?: number): Promise<AuditPageDto> {
    return this.auditLog.read(admin, { action: 'audit.list' }, async () => {
      const records = await this.audit.page(limit + 1, before)
      const shown = records.slice(0, limit).map((record) => new AuditRecordDto(record))
      return new AuditPageDto(shown, records.length > limit)
    })
  }
}

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
