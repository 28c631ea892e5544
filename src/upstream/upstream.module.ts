import { Module } from '@nestjs/common'
import { SafeFetchClient } from './safe-fetch.js'
import { UpstreamClient } from './upstream-client.js'
import { UpstreamSockets } from './websocket-client.js'

/** HTTP and WebSocket clients. */
@Module({ providers: [UpstreamSockets], exports: [UpstreamSockets] })
export class WebSocketModule {}

/** The doors to HTTP upstreams: one for the operator's addresses, a guarded one for everyone else's. */
@Module({ providers: [UpstreamClient, SafeFetchClient], exports: [UpstreamClient, SafeFetchClient] })
export class HttpModule {}
