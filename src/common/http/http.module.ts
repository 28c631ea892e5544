import { Module } from '@nestjs/common'
import { UpstreamClient } from './upstream-client.js'

/** The one door to HTTP upstreams. */
@Module({ providers: [UpstreamClient], exports: [UpstreamClient] })
export class HttpModule {}
