import { Module } from '@nestjs/common'
import { AuthModule } from '../common/auth/auth.module.js'
import type { Logger } from '../common/observability/logger.js'
import { LOGGER } from '../common/observability/observability.module.js'
import { LogUsageRecorder } from '../common/usage/log-usage-recorder.js'
import { UsageRecorder } from '../common/usage/usage-recorder.js'
import { ProvidersModule } from '../providers/providers.module.js'
import { RealtimeController } from './realtime.controller.js'
import { RealtimeGateway } from './realtime.gateway.js'
import { RealtimeSeats } from './realtime-seats.js'
import { RealtimeService } from './realtime.service.js'

/** Realtime voice over WebSocket (specification: GET /v1/realtime). */
@Module({
  imports: [AuthModule, ProvidersModule],
  controllers: [RealtimeController],
  providers: [
    RealtimeService,
    RealtimeSeats,
    RealtimeGateway,
    { provide: UsageRecorder, inject: [LOGGER], useFactory: (logger: Logger) => new LogUsageRecorder(logger) },
  ],
})
export class RealtimeModule {}
