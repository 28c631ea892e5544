import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { KeyRefresher } from '../auth/key-cache.js'
import { KyselyKeyRepository } from '../auth/key.pg.js'
import { KeyRepository } from '../auth/key.repository.js'
import type { RouteSpec } from '../core/endpoint.js'
import { DatabaseModule } from '../storage/storage.module.js'
import { UsageModule } from '../usage/usage.module.js'
import { AdminAccess, AdminGuard, FailedAttemptLog } from './admin.guard.js'
import { AuditLog, AuditRepository } from './audit-log.js'
import { AuditRetention, KyselyAuditRepository } from './audit-log.pg.js'
import { AuditController, AuditService, LIST_AUDIT } from './audit.controller.js'
import { BACK_UP_STORE, BackupController, BackupService } from './backup.controller.js'
import { ChannelsController, ChannelsService, LIST_CHANNELS, RESET_CHANNEL } from './channels.controller.js'
import { CHANGE_KEY, CREATE_KEY, KeysController, LIST_KEYS, REVOKE_KEY, SHOW_KEY } from './keys.controller.js'
import { KeysService } from './keys.service.js'
import { RELOAD_CONFIGURATION, ReloadController, ReloadService } from './reload.controller.js'
import { UnknownRoutesController } from './unknown-routes.controller.js'
import { SHOW_USAGE, UsageSumsController, UsageSumsService } from './usage-sums.controller.js'

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
export class AdminModule {
  /** What operators may ask, in the order in which it is shown. */
  static readonly routes: readonly RouteSpec[] = [
    ...[CREATE_KEY, LIST_KEYS, SHOW_KEY, CHANGE_KEY, REVOKE_KEY],
    ...[LIST_AUDIT, SHOW_USAGE, RELOAD_CONFIGURATION, LIST_CHANNELS, RESET_CHANNEL, BACK_UP_STORE],
  ]
}
