import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { KeyRefresher } from '../auth/key-cache.js'
import { KyselyKeyRepository } from '../auth/key.pg.js'
import { KeyRepository } from '../auth/key.repository.js'
import { DatabaseModule } from '../storage/storage.module.js'
import { UsageModule } from '../usage/usage.module.js'
import { AdminAccess, AdminGuard, FailedAttemptLog } from './admin.guard.js'
import { AuditLog, AuditRepository } from './audit-log.js'
import { AuditRetention, KyselyAuditRepository } from './audit-log.pg.js'
import { AuditController, AuditService } from './audit.controller.js'
import { BackupController, BackupService } from './backup.controller.js'
import { ChannelsController, ChannelsService } from './channels.controller.js'
import { KeysController } from './keys.controller.js'
import { KeysService } from './keys.service.js'
import { ReloadController, ReloadService } from './reload.controller.js'
import { UnknownRoutesController } from './unknown-routes.controller.js'
import { UsageSumsController, UsageSumsService } from './usage-sums.controller.js'

/** The admin API: guard, audit log, keys, channels, usage and reload. */
@Module({
  imports: [AuthModule, DatabaseModule, UsageModule],
  controllers: [
    KeysController,
    UsageSumsController,
    ChannelsController,
    ReloadController,
    BackupController,
    AuditController,
    // Last, as it matches every other path below `/admin`.
    UnknownRoutesController,
  ],
  providers: [
    ...[AdminAccess, AdminGuard, AuditLog, AuditRetention],
    ...[AuditService, BackupService, ChannelsService, KeyRefresher, KeysService, ReloadService, UsageSumsService],
    { provide: AuditRepository, useClass: KyselyAuditRepository },
    { provide: FailedAttemptLog, useFactory: (log: AuditLog) => new FailedAttemptLog(log), inject: [AuditLog] },
    { provide: KeyRepository, useClass: KyselyKeyRepository },
  ],
})
export class AdminModule {}
