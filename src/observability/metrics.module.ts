import { Module } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { AttemptMetrics } from './attempt-metrics.js'
import { GatewayMetrics } from './gateway-metrics.js'
import { KnownRoutesModule } from './known-routes.module.js'
import { metricsAddress } from './metrics-address.js'
import { MetricsServer } from './metrics-server.js'
import { Metrics } from './metrics.js'
import { ProcessMetrics } from './process-metrics.js'
import { CallMetrics } from './request-metrics.js'

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
