import cluster from 'node:cluster'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { INestApplication } from '@nestjs/common'
import { type ConfigSource, ConfigStore, configWarnings, reloadConfig } from '../config/config-store.js'
import { type Environment, environmentConfig } from '../config/environment.js'
import type { GatewayConfig, ServerSection } from '../config/settings.js'
import type { Logger, Logging } from '../observability/logger.js'
import { MetricsServer } from '../observability/metrics-server.js'
import { Metrics, type MetricsSnapshot } from '../observability/metrics.js'
import { Readiness } from '../observability/readiness.js'
import { Database, StoreUnusable } from '../storage/database.js'
import { filesIn } from '../storage/embedded-files.js'
import { exists } from '../storage/file-sync.js'
import { PendingUsageMarker } from '../storage/pending-usage.js'
import { Admission } from '../overload/admission.js'
import { AcceptQueue, acceptMore } from '../server/acceptors.js'
import type { UpgradableServer } from '../server/upgrade.js'
import { createApplication } from './create-app.js'
import { PROVIDERS } from './providers.js'
import { drain } from './shutdown.js'

/**
 * Listen backlog (limited by `net.core.somaxconn`). Few connections are accepted per turn of the event loop, so that a rush of clients
 * overflows the default of 511 and is delayed by seconds.
 */
const WAITING_CONNECTIONS = 4096

export interface GatewayOptions {
  readonly config: GatewayConfig
  readonly logging: Logging
  /** Source of reloads; absent in the sandbox. */
  readonly reloadFrom?: ConfigSource
  readonly inSandbox?: boolean
  /** Runs last, before the process exits. */
  readonly closeLast?: () => Promise<void>
  /** False for a worker, as the primary serves the metrics of all. */
  readonly servesMetrics: boolean
}

/** The gateway of this process. */
export interface Gateway {
  /**
   * Resolves with the local address: `http://…`. Rejects with `StoreUnusable`, `MetricsPortInUse`, or the error of the port.
   */
  listen(): Promise<string>
  /** Reloads the configuration, from another source if given, and logs the outcome. */
  reload(from?: ConfigSource): Promise<void>
  /** Ends the process once all work has ended or the grace time is over. */
  drain(signal: string): Promise<void>
  collectMetrics(): Promise<MetricsSnapshot>
}

/** Nothing listens yet, and no store is open. */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, logging, reloadFrom, inSandbox = false, servesMetrics } = options
  const { logger } = logging
  const application = await createApplication({
    config,
    logging,
    sandbox: inSandbox,
    ...(reloadFrom === undefined ? {} : { reloadFrom }),
  })
  const store = application.get(ConfigStore)
  warn(config, logger)
  store.onChange((next) => {
    logger.level = next.logging.level
    warn(next, logger)
  })
  const metricsServer = application.get(MetricsServer)
  return {
    collectMetrics: () => application.get(Metrics).collectSnapshot(),
    listen: async () => {
      const database = application.get(Database)
      // The sandbox serves chat and audio without one; the store itself says what kept it from opening. A new one is made for
      // the first task: until then no task waits, and usage does so in its files.
      if (inSandbox) {
        const { dataDirectory } = application.get<Environment>(environmentConfig.KEY)
        if (config.database.url !== undefined || (await exists(filesIn(dataDirectory))))
          await openStore(database, logger).catch(() => undefined)
      } else if (needsStore(config) || application.get(PendingUsageMarker).isThere) await openStore(database, logger)
      if (servesMetrics) await metricsServer.listen()
      return listen(application, config.server, logger)
    },
    reload: (from) => reloadConfig(store, logger, from),
    drain: (signal) =>
      drain(application, signal, {
        logger,
        timeouts: () => store.current.timeouts,
        closeOthers: async () => {
          await metricsServer.close()
          await options.closeLast?.()
        },
      }),
  }
}

function warn(config: GatewayConfig, logger: Logger): void {
  for (const warning of configWarnings(config)) logger.warn(warning)
}

/** Providers whose tasks must be stored durably. */
const TASK_PROVIDERS: ReadonlySet<string> = new Set(
  PROVIDERS.filter(({ capabilities }) => capabilities.video !== undefined).map(({ name }) => name),
)

/** Whether the store is needed: for tasks, issued keys, or by configuration. */
const needsStore = ({ auth, channels, database, usage }: GatewayConfig): boolean =>
  database.url !== undefined ||
  auth.adminKey !== undefined ||
  usage.store === true ||
  channels.some(({ provider }) => TASK_PROVIDERS.has(provider))

/** Opens the store in the background if the database is not reachable yet; requests without a store are served meanwhile. */
async function openStore(database: Database, logger: Logger): Promise<void> {
  try {
    await database.open()
  } catch (error) {
    if (error instanceof StoreUnusable) throw error
    logger.error({ err: error }, 'the store cannot be reached; tasks wait for it')
  }
}

async function listen(application: INestApplication, { host, port }: ServerSection, logger: Logger): Promise<string> {
  const server = application.getHttpServer() as UpgradableServer
  application.get(Admission).acceptQueue = new AcceptQueue(server)
  // Not through Nest, which would log a port in use with its stack before our explanation.
  server.listen({ port, host, backlog: WAITING_CONNECTIONS })
  await once(server, 'listening')
  // A worker gets its connections from the primary, whose turns are short.
  if (cluster.isPrimary) {
    void acceptMore(server, WAITING_CONNECTIONS).then((handles) => {
      if (handles === 1 && server.listening)
        logger.warn('new connections are accepted one by one: they wait under load')
    })
  }
  application.get(Readiness).markReady()
  const shown = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${(server.address() as AddressInfo).port}`
}
