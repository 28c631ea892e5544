import { Module } from '@nestjs/common'
import { AuthModule } from '../auth/auth.module.js'
import { REALTIME } from './realtime.endpoint.js'
import { RealtimeController } from './realtime.controller.js'
import { RealtimeGateway } from './realtime.gateway.js'
import { RealtimeMetrics, SessionSlots, RealtimeService } from './realtime.service.js'
import { SessionTraffic } from './session-context.js'

/** Realtime voice over WebSocket (specification: GET /v1/realtime). */
@Module({
  imports: [AuthModule],
  controllers: [RealtimeController],
  providers: [RealtimeService, SessionSlots, SessionTraffic, RealtimeMetrics, RealtimeGateway],
})
export class RealtimeModule {
  static readonly endpoints = [REALTIME]
}
