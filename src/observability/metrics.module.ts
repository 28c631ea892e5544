import { Module } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { metricsAddress, MetricsServer } from './metrics-server.js'
import { Metrics } from './metrics.js'
import { GatewayMetrics, ProcessMetrics } from './process-metrics.js'
import { AttemptMetrics, RequestMetrics } from './request-metrics.js'
import { KnownRoutesModule } from './routes.js'

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
