import { type DynamicModule, Module } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Logger } from './logger.js'
import { Metrics } from './metrics.js'
import { metricsAddress, MetricsServer } from './metrics-server.js'
import { GatewayMetrics, ProcessMetrics } from './process-metrics.js'
import { Readiness } from './readiness.js'
import { RequestHooks } from './request-hooks.js'
import { AttemptMetrics, RequestMetrics } from './request-metrics.js'
import { KnownRoutesModule } from './routes.js'

/** The process's own log, for lines that are about no single request; injected as `Logger`. */
export const LOGGER = Symbol('logger')

/** What the process says about itself; the server shares `Readiness` and `RequestHooks`, as it answers before Nest does. */
@Module({})
export class ObservabilityModule {
  static forRoot(readiness: Readiness, endings: RequestHooks, logger: Logger): DynamicModule {
    return {
      module: ObservabilityModule,
      global: true,
      providers: [
        { provide: Readiness, useValue: readiness },
        { provide: RequestHooks, useValue: endings },
        Metrics,
        { provide: LOGGER, useValue: logger },
      ],
      exports: [Readiness, RequestHooks, Metrics, LOGGER],
    }
  }
}

/** What the gateway counts about itself, and where it tells it; listens when `MetricsServer.listen` is called. */
@Module({
  imports: [KnownRoutesModule],
  providers: [
    AttemptMetrics,
    RequestMetrics,
    GatewayMetrics,
    ProcessMetrics,
    {
      provide: MetricsServer,
      inject: [ConfigStore, Metrics],
      useFactory: (store: ConfigStore, metrics: Metrics) =>
        new MetricsServer(metricsAddress(store.current), () => metrics.collectText()),
    },
  ],
})
export class MetricsModule {}
