import { Module } from '@nestjs/common'
import { KnownRoutesModule } from '../common/observability/known-routes.module.js'
import { Metrics } from '../common/observability/metrics.js'
import { ConfigStore } from '../config/config-store.js'
import { AttemptMetrics } from './attempt-metrics.js'
import { CallMetrics } from './call-metrics.js'
import { GatewayMetrics } from './gateway-metrics.js'
import { metricsAddress } from './metrics-address.js'
import { MetricsServer } from './metrics-server.js'
import { ProcessMetrics } from './process-metrics.js'

/** What the gateway counts about itself, and where it tells it; listens when `MetricsServer.listen` is called. */
@Module({
  imports: [KnownRoutesModule],
  providers: [
    AttemptMetrics,
    CallMetrics,
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
