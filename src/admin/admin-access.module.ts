import { Module } from '@nestjs/common'
import { DatabaseModule } from '../storage/storage.module.js'
import { AdminAccess, AdminGuard, StrangerTrail } from './admin.guard.js'
import { AdminAuditRepository, AdminTrail } from './audit-log.js'
import { AuditRetention, KyselyAdminAuditRepository } from './audit-log.pg.js'

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
