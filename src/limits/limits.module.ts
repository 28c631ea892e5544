import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import { LimitsController } from './limits.controller.js'
import { LimitsService } from './limits.service.js'

/** `GET /v1/limits`: what the caller's own key may still use. */
@Module({ imports: [AuthModule], controllers: [LimitsController], providers: [LimitsService] })
export class LimitsModule {}
