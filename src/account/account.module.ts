import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { LimitsController, LimitsService, UsageController, UsageService } from './account.controller.js'
import { LIMITS, USAGE, USAGE_RECORDS } from './account.endpoints.js'

/** `GET /v1/limits` and `GET /v1/usage`: what the caller's own key may still use, and what it has used. */
@Module({
  imports: [AuthModule],
  controllers: [UsageController, LimitsController],
  providers: [UsageService, LimitsService],
})
export class AccountModule {
  static readonly endpoints = [LIMITS, USAGE, USAGE_RECORDS]
}
