import type { Logger } from '../common/observability/logger.js'
import { mergedMetricsText } from '../common/observability/metrics.js'
import type { GatewayConfig } from '../config/gateway-config.js'
import { metricsAddress } from '../metrics/metrics-address.js'
import { MetricsServer } from '../metrics/metrics-server.js'
import { drainOnSignal } from '../shutdown.js'
import { WorkerFleet } from './worker-fleet.js'

/**
 * Serves by workers: starts them, replaces those that die, tells their metrics as those of one process, and hands signals
 * on. SIGHUP reloads all; the first SIGTERM or SIGINT drains all and exits with 0 when each of them did; the second
 * exits at once with 1. Resolves with the address once all listen; with undefined when they cannot, which the first
 * worker has explained. Rejects with `MetricsPortInUse`.
 */
export async function serveByWorkers(
  config: GatewayConfig,
  workers: number,
  logger: Logger,
): Promise<string | undefined> {
  const fleet = new WorkerFleet(workers, logger)
  const metricsServer = new MetricsServer(metricsAddress(config), async () =>
    mergedMetricsText(await fleet.snapshots()),
  )
  await metricsServer.listen()
  process.on('SIGHUP', () => {
    fleet.reload()
  })
  const drain = async (signal: string): Promise<void> => {
    logger.info({ signal, workers }, 'draining')
    const areGood = await fleet.drain(signal)
    await metricsServer.close()
    logger.info('stopped')
    process.exit(areGood ? 0 : 1)
  }
  drainOnSignal(drain, () => {
    fleet.kill()
  })
  return fleet.start()
}
