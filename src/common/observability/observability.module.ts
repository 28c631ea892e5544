import { Module } from '@nestjs/common'
import { Readiness } from './readiness.js'

/** What the process says about itself. */
@Module({ providers: [Readiness], exports: [Readiness] })
export class ObservabilityModule {}
