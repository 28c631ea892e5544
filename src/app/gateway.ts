import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { INestApplication } from '@nestjs/common'
import { type ConfigSource, ConfigStore, configWarnings, reloadConfig } from '../config/config-store.js'
import type { GatewayConfig, ServerSection } from '../config/settings.js'
import type { Logger, Logging } from '../observability/logger.js'
import { MetricsServer } from '../observability/metrics-server.js'
import { Metrics, type MetricsSnapshot } from '../observability/metrics.js'
import { Readiness } from '../observability/readiness.js'
import { Database, StoreUnusable } from '../storage/database.js'
import { createApplication } from './create-app.js'
import { PROVIDERS } from './providers.js'
import { drain } from './shutdown.js'

/**
 * Connections that the kernel keeps until they are taken, as far as it is allowed to (`net.core.somaxconn`). Node takes one
 * in each turn of its event loop, so with its own default of 511 a rush of new clients overflows, and is heard seconds later.
 */
const WAITING_CONNECTIONS = 4096

export interface GatewayOptions {
  readonly config: GatewayConfig
  readonly logging: Logging
  /** Where a reload reads; absent in the sandbox. */
  readonly reloadFrom?: ConfigSource
  readonly inSandbox?: boolean
  /** Runs last, before the process exits. */
  readonly closeLast?: () => Promise<void>
  /** False for a worker, whose primary tells the metrics of all. */
  readonly servesMetrics: boolean
}

/** The gateway of this process. */
export interface Gateway {
  /**
   * Resolves with the address, as it is reached on this machine: `http://…`. Rejects with `StoreUnusable`,
   * `MetricsPortInUse`, or what the port says.
   */
  listen(): Promise<string>
  /** Reads the configuration again, from there if need be, and logs how that went. */
  reload(from?: ConfigSource): Promise<void>
  /** Ends the process once everything that runs has ended, or its time is up. */
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
      // The sandbox opens its store with the first task: most first minutes need none.
      if (!inSandbox && needsStore(config)) await openStore(application.get(Database), logger)
      if (servesMetrics) await metricsServer.listen()
      return listen(application, config.server)
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

/** Providers whose tasks the gateway creates, and must not forget. */
const TASK_PROVIDERS: ReadonlySet<string> = new Set(
  PROVIDERS.filter(({ capabilities }) => capabilities.video !== undefined).map(({ name }) => name),
)

/** Whether tasks can be created or keys issued here, or the operator asked for a store by name. */
const needsStore = ({ auth, channels, database, usage }: GatewayConfig): boolean =>
  database.url !== undefined ||
  auth.adminKey !== undefined ||
  usage.store === true ||
  channels.some(({ provider }) => TASK_PROVIDERS.has(provider))

/** A database that cannot be reached yet is waited for while everything that needs none is served. */
async function openStore(database: Database, logger: Logger): Promise<void> {
  try {
    await database.open()
  } catch (error) {
    if (error instanceof StoreUnusable) throw error
    logger.error({ err: error }, 'the store cannot be reached; tasks wait for it')
  }
}

async function listen(application: INestApplication, { host, port }: ServerSection): Promise<string> {
  const server = application.getHttpServer() as Server
  // By hand: Nest would log a port in use with its stack before a sentence explains it.
  server.listen({ port, host, backlog: WAITING_CONNECTIONS })
  await once(server, 'listening')
  application.get(Readiness).markReady()
  const shown = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${(server.address() as AddressInfo).port}`
}
