import { Controller, Injectable, Query, UseGuards } from '@nestjs/common'
import { type Query as QueryMap, schemaOf, Shown } from '../core/dto.js'
import { described, nullable } from '../core/json-schema.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { adminRoute, LIMIT_PARAMETER, numberParameter, PAGE, pageOf, readQuery, wholeNumber } from './admin-request.js'
import { AdminGuard, CurrentAdmin } from './admin.guard.js'
import { type Admin, AuditRepository, AuditLog, type AuditOutcome, type AuditRecord } from './audit-log.js'

class AuditRecordDto {
  @Shown({ type: 'integer', description: 'Grows with every record' })
  readonly sequence: number

  @Shown({ type: 'integer', format: 'int64', description: 'Unix milliseconds' })
  readonly at: number

  @Shown(described('Fingerprint of the admin key, cli, or - for somebody who was not let in'))
  readonly actor: string

  @Shown({ ...described('What was done'), example: 'keys.create' })
  readonly action: string

  @Shown(nullable(described('What it was done to')))
  readonly target: string | null

  @Shown(described('done, refused, failed; or begun, whose end was never written down'))
  readonly outcome: AuditOutcome

  @Shown({ description: 'An object; its members depend on the action' })
  readonly details: Readonly<Record<string, unknown>>

  @Shown(described('x-request-id'))
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

const RECORD = schemaOf(AuditRecordDto, 'AuditRecord', 'Something that was done with the admin key')

class AuditPageDto extends pageOf<AuditRecordDto>(RECORD, 'Ask again with before=<last sequence>') {}

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

const SEQUENCES = [0, Number.MAX_SAFE_INTEGER] as const

export const LIST_AUDIT = adminRoute('GET', '/audit', {
  operationId: 'listAuditRecords',
  summary: 'What was done with the admin key, the newest first',
  description: 'Questions are recorded as well, this one too.',
  parameters: [LIMIT_PARAMETER, numberParameter('before', 'Only what has a smaller sequence', SEQUENCES)],
  answer: {
    description: 'A page of records',
    content: { 'application/json': schemaOf(AuditPageDto, 'AuditPage', 'A page of audit records') },
  },
})

@Controller()
@UseGuards(AdminGuard)
export class AuditController {
  constructor(private readonly audit: AuditService) {}

  @Endpoint(LIST_AUDIT, [])
  page(@Query() query: QueryMap, @CurrentAdmin() admin: Admin): Promise<AuditPageDto> {
    const { limit, before } = readQuery(query, ['limit', 'before'])
    return this.audit.page(
      admin,
      wholeNumber('limit', limit, PAGE.range) ?? PAGE.fallback,
      wholeNumber('before', before, SEQUENCES),
    )
  }
}
