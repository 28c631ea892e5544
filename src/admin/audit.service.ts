import { Injectable } from '@nestjs/common'
import { AdminAuditRepository } from './admin-audit.repository.js'
import { type Admin, AdminTrail } from './audit-log.js'
import { AuditPageDto, AuditRecordDto } from './audit.dto.js'

/** What was done with the operator's powers. */
@Injectable()
export class AuditService {
  constructor(
    private readonly audit: AdminAuditRepository,
    private readonly trail: AdminTrail,
  ) {}

  page(admin: Admin, limit: number, before?: number): Promise<AuditPageDto> {
    return this.trail.look(admin, { action: 'audit.list' }, async () => {
      const records = await this.audit.page(limit + 1, before)
      const shown = records.slice(0, limit).map((record) => new AuditRecordDto(record))
      return new AuditPageDto(shown, records.length > limit)
    })
  }
}
