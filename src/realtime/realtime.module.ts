import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { RealtimeController } from './realtime.controller.js'
import { RealtimeGateway } from './realtime.gateway.js'
import { RealtimeMetrics, RealtimeSeats, RealtimeService } from './realtime.service.js'
import { RealtimeTraffic } from './session-context.js'

/** Realtime voice over WebSocket (specification: GET /v1/realtime). */
@Module({
  imports: [AuthModule, ProvidersModule],
  controllers: [RealtimeController],
  providers: [RealtimeService, RealtimeSeats, RealtimeTraffic, RealtimeMetrics, RealtimeGateway],
})
export class RealtimeModule {}
