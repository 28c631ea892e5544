import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { LimitsController } from '../limits/limits.controller.js'
import { LimitsService } from '../limits/limits.service.js'
import { UsageController } from '../usage/usage.controller.js'
import { UsageService } from '../usage/usage.service.js'

/** `GET /v1/limits` and `GET /v1/usage`: what the caller's own key may still use, and what it has used. */
@Module({
  imports: [AuthModule],
  controllers: [UsageController, LimitsController],
  providers: [UsageService, LimitsService],
})
export class AccountModule {}
