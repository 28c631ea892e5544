import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { gatewayVersion } from './gateway-version.js'
import { Metrics } from './metrics.js'
import { Readiness } from './readiness.js'
import { byLabel, registerCounter, registerGauge, single } from './readings.js'

/** What the gateway as a whole is and does: its version, its configuration, whether it is ready. */
@Injectable()
export class GatewayMetrics {
  constructor(store: ConfigStore, readiness: Readiness, metrics: Metrics) {
    const version = gatewayVersion()
    const build = { name: 'gateway_build_info', help: 'Always 1; what runs here.', labelNames: ['version', 'node'] }
    registerGauge(metrics, { ...build, aggregator: 'first' }, () => [
      { labels: { version, node: process.version }, value: 1 },
    ])
    const ready = { name: 'gateway_ready', help: '1 when traffic is welcome, as /health/ready says.', labelNames: [] }
    registerGauge(metrics, { ...ready, aggregator: 'min' }, () => single(readiness.isReady ? 1 : 0))
    const failures = { name: 'gateway_collect_failures_total', help: 'Metrics left out of a scrape.', labelNames: [] }
    registerCounter(metrics, failures, () => single(metrics.collectFailures))
    registerReloads(store, metrics)
  }
}

function registerReloads(store: ConfigStore, metrics: Metrics): void {
  registerCounter(
    metrics,
    { name: 'gateway_config_reloads_total', help: 'Reloads of the configuration.', labelNames: ['outcome'] },
    () => {
      const { applied, refused } = store.reloads
      return byLabel('outcome', { applied, refused })
    },
  )
  registerGauge(
    metrics,
    {
      name: 'gateway_config_applied_timestamp_seconds',
      help: 'When the configuration in force was read.',
      labelNames: [],
      aggregator: 'min',
    },
    () => single(store.reloads.lastAppliedAtMs / 1000),
  )
}
