import type { GatewayConfig } from '../config/settings.js'
import type { MetricsAddress } from './metrics-server.js'

/** Where `/metrics` listens by the configuration; without a port when it is off. */
export const metricsAddress = ({
  server,
  observability,
}: Pick<GatewayConfig, 'server' | 'observability'>): MetricsAddress => ({
  host: observability.metricsHost ?? server.host,
  ...(server.metricsPort === 0 ? {} : { port: server.metricsPort }),
})
