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

/** Injection token of the process log, for lines that concern no single request. */
export const LOGGER = Symbol('logger')

/** `Readiness`, `RequestHooks` and the logger are shared with the HTTP server, which answers before Nest does. */
@Module({})
export class ObservabilityModule {
  static forRoot(readiness: Readiness, hooks: RequestHooks, logger: Logger): DynamicModule {
    return {
      module: this,
      global: true,
      providers: [
        { provide: Readiness, useValue: readiness },
        { provide: RequestHooks, useValue: hooks },
        Metrics,
        { provide: LOGGER, useValue: logger },
      ],
      exports: [Readiness, RequestHooks, Metrics, LOGGER],
    }
  }
}

/** Metrics and their server, which listens when `MetricsServer.listen` is called. */
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
