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
import { ChannelsController, ChannelsService } from './channels.controller.js'
import { KeysController } from './keys.controller.js'
import { KeysService } from './keys.service.js'
import { ReloadController, ReloadService } from './reload.controller.js'
import { UsageSumsController, UsageSumsService } from './usage-totals.controller.js'
import { UnknownRoutesController } from './unknown-routes.controller.js'

/** The operator's API: its guard and audit log, and what is read and changed while the gateway runs. */
@Module({
  imports: [AuthModule, DatabaseModule, UsageModule],
  controllers: [
    KeysController,
    UsageSumsController,
    ChannelsController,
    ReloadController,
    AuditController,
    // The last: it takes every other path below `/admin`.
    UnknownRoutesController,
  ],
  providers: [
    ...[AdminAccess, AdminGuard, AuditLog, AuditRetention],
    ...[AuditService, ChannelsService, KeyRefresher, KeysService, ReloadService, UsageSumsService],
    { provide: AuditRepository, useClass: KyselyAuditRepository },
    { provide: FailedAttemptLog, useFactory: (log: AuditLog) => new FailedAttemptLog(log), inject: [AuditLog] },
    { provide: KeyRepository, useClass: KyselyKeyRepository },
  ],
})
export class AdminModule {}
