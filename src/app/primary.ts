import { type ConfigSource, ConfigStore } from '../config/config-store.js'
import type { GatewayConfig } from '../config/settings.js'
import type { Logging } from '../observability/logger.js'
import { metricsAddress } from '../observability/metrics-address.js'
import { MetricsServer } from '../observability/metrics-server.js'
import { mergedMetricsText } from '../observability/metrics.js'
import { WorkerFleet } from './cluster-primary.js'
import { drainOnSignal } from './shutdown.js'

/** What a worker may take once its requests are over: the ten seconds of its work in the background, and a little. */
const CLOSING_MS = 12_000

export interface PrimaryOptions {
  /** With the number of workers. */
  readonly config: GatewayConfig
  readonly workers: number
  readonly logging: Logging
  readonly readConfig: ConfigSource
}

/**
 * Serves by workers: starts them, replaces those that die, tells their metrics as those of one process, and hands signals
 * on. It alone reads the configuration: SIGHUP has it read and hands it to all, and whoever replaces another worker gets
 * what was accepted last. The first SIGTERM or SIGINT drains all and exits with 0 when each of them did; the second
 * ends all now, as far as they have kept what is not stored, and exits with 1, unless the drain was just over. Resolves
 * with the address once all listen; with undefined when they cannot, which the first worker has explained; never once a
 * signal has come before that. Rejects with `MetricsPortInUse`.
 */
export async function serveByWorkers(options: PrimaryOptions): Promise<string | undefined> {
  const { config, workers, readConfig } = options
  const { logger, sink } = options.logging
  const store = new ConfigStore(config, readConfig)
  store.onChange((next) => {
    logger.level = next.logging.level
  })
  const fleet = new WorkerFleet({ workers, store, logger, sink })
  const metricsServer = new MetricsServer(metricsAddress(config), async () =>
    mergedMetricsText(await fleet.snapshots()),
  )
  await metricsServer.listen()
  process.on('SIGHUP', () => void fleet.reload())
  let draining: Promise<void> | undefined
  const drain = async (signal: string): Promise<void> => {
    const { drainDelayMs, shutdownGraceMs } = store.current.timeouts
    logger.info({ signal, workers }, 'draining')
    const areGood = await fleet.drain(signal, drainDelayMs + shutdownGraceMs + CLOSING_MS)
    await metricsServer.close()
    logger.info('stopped')
    process.exit(areGood ? 0 : 1)
  }
  drainOnSignal(
    (signal) => (draining = drain(signal)),
    () => fleet.end(),
  )
  const address = await fleet.start()
  // Its end is that of the process: workers that ended on the way to listening did as they were told.
  await draining
  return address
}
