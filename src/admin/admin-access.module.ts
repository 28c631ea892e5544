import { Module } from '@nestjs/common'
import { DatabaseModule } from '../storage/database.module.js'
import { AdminAccess } from './admin-access.js'
import { AdminAuditRepository } from './admin-audit.repository.js'
import { AdminGuard } from './admin.guard.js'
import { AdminTrail } from './audit-log.js'
import { KyselyAdminAuditRepository } from './audit-log.pg.js'
import { AuditRetention } from './audit-retention.js'
import { StrangerTrail } from './stranger-trail.js'

/** The operator: the guard that knows the admin key, and the audit log. */
@Module({
  imports: [DatabaseModule],
  providers: [
    AdminAccess,
    AdminGuard,
    AdminTrail,
    AuditRetention,
    { provide: AdminAuditRepository, useClass: KyselyAdminAuditRepository },
    { provide: StrangerTrail, useFactory: (trail: AdminTrail) => new StrangerTrail(trail), inject: [AdminTrail] },
  ],
  exports: [AdminAccess, AdminAuditRepository, AdminGuard, AdminTrail, StrangerTrail],
})
export class AdminAccessModule {}
