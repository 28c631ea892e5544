import { Module } from '@nestjs/common'
import { UsageModule } from '../usage/usage.module.js'
import { AdminAccessModule } from './admin-access.module.js'
import { AuditController, AuditService } from './audit.controller.js'
import { ChannelsController, ChannelsService } from './channels.controller.js'
import { ReloadController, ReloadService } from './reload.controller.js'
import { UnknownRoutesController } from './unknown-routes.controller.js'
import { UsageSumsController, UsageSumsService } from './usage-totals.controller.js'

/** What the operator sees and does while the gateway runs, but for keys; they come before: the last route takes the rest. */
@Module({
  imports: [AdminAccessModule, UsageModule],
  controllers: [UsageSumsController, ChannelsController, ReloadController, AuditController, UnknownRoutesController],
  providers: [UsageSumsService, ChannelsService, ReloadService, AuditService],
})
export class AdminModule {}
