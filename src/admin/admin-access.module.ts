import { Module } from '@nestjs/common'
import { DatabaseModule } from '../storage/storage.module.js'
import { AdminAccess, AdminGuard, FailedAttemptLog } from './admin.guard.js'
import { AuditRepository, AuditLog } from './audit-log.js'
import { AuditRetention, KyselyAuditRepository } from './audit-log.pg.js'

/** The operator: the guard that knows the admin key, and the audit log. */
@Module({
  imports: [DatabaseModule],
  providers: [
    AdminAccess,
    AdminGuard,
    AuditLog,
    AuditRetention,
    { provide: AuditRepository, useClass: KyselyAuditRepository },
    { provide: FailedAttemptLog, useFactory: (trail: AuditLog) => new FailedAttemptLog(trail), inject: [AuditLog] },
  ],
  exports: [AdminAccess, AuditRepository, AdminGuard, AuditLog, FailedAttemptLog],
})
export class AdminAccessModule {}
