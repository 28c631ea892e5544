import { Module } from '@nestjs/common'
import { UpstreamSockets } from './upstream-sockets.js'

/** The one door to WebSocket upstreams. */
@Module({ providers: [UpstreamSockets], exports: [UpstreamSockets] })
export class WebSocketModule {}
