import { Module } from '@nestjs/common'
import { KnownRoutesModule } from './known-routes.module.js'
import { Tracing } from './tracing.service.js'

/** OpenTelemetry traces of calls, where a collector is configured. */
@Module({ imports: [KnownRoutesModule], providers: [Tracing] })
export class TracingModule {}
