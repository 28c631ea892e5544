import { type DynamicModule, Global, Module } from '@nestjs/common'
import { AdminModule } from '../admin/admin.module.js'
import { ConfigurationModule, type ConfigurationOptions } from '../config/config-store.js'
import { EndpointTable } from '../core/endpoint.js'
import type { Logger } from '../observability/logger.js'
import { MetricsModule, ObservabilityModule } from '../observability/observability.module.js'
import { HealthModule, type Readiness } from '../observability/readiness.js'
import type { RequestHooks } from '../observability/request-hooks.js'
import { TracingModule } from '../observability/tracing.js'
import type { Admission } from '../overload/admission.js'
import { OverloadModule } from '../overload/overload.module.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { UsageModule } from '../usage/usage.module.js'
import { CAPABILITIES, ENDPOINTS } from './capabilities.js'
import { PROVIDERS } from './providers.js'

/** Provides the table of endpoints for metrics by endpoint. */
@Global()
@Module({ providers: [{ provide: EndpointTable, useValue: ENDPOINTS }], exports: [EndpointTable] })
class EndpointsModule {}

/** The whole gateway: one module per capability, on one configuration. */
@Module({})
export class AppModule {
  static forRoot(
    configuration: ConfigurationOptions,
    readiness: Readiness,
    hooks: RequestHooks,
    admission: Admission,
    logger: Logger,
  ): DynamicModule {
    return {
      module: this,
      imports: [
        ConfigurationModule.forRoot(configuration),
        ObservabilityModule.forRoot(readiness, hooks, logger),
        OverloadModule.forRoot(admission),
        EndpointsModule,
        ProvidersModule.forManifests(PROVIDERS),
        ...CAPABILITIES,
        UsageModule,
        MetricsModule,
        TracingModule,
        AdminModule,
        HealthModule,
      ],
    }
  }
}
