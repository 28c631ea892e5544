import { Module } from '@nestjs/common'
import { ObservabilityModule } from '../common/observability/observability.module.js'
import { HealthController } from './health.controller.js'

/** Liveness and readiness for operators' probes. */
@Module({ imports: [ObservabilityModule], controllers: [HealthController] })
export class HealthModule {}
