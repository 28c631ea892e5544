import 'reflect-metadata'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createApplication } from './app.setup.js'
import { Database } from './common/database/database.js'
import { StoreUnusable } from './common/database/store-unusable.js'
import { createLogging, type Logger } from './common/observability/logger.js'
import { Readiness } from './common/observability/readiness.js'
import { ConfigError } from './config/config-fault.js'
import { loadConfigFile } from './config/config-loader.js'
import { reloadOnSighup } from './config/config-reload.js'
import { ConfigStore } from './config/config-store.js'
import type { GatewayConfig } from './config/gateway-config.js'
import { configWarnings } from './config/config-warnings.js'
import { processEnvironment, readEnvironment } from './config/environment.config.js'
import { type Sandbox, startSandbox } from './sandbox/sandbox.module.js'
import { drainOnSignal } from './shutdown.js'

async function main(): Promise<void> {
  const variables = processEnvironment()
  const { configFile } = readEnvironment(variables)
  const readConfig = () => loadConfigFile(configFile, variables)
  const loaded = await readConfig()
  const sandbox: Sandbox | undefined = loaded === undefined ? await startSandbox(variables) : undefined
  const config = loaded?.config ?? sandbox?.config
  if (config === undefined) throw new Error('there is neither a configuration nor a sandbox')
  const logging = createLogging(config.logging.level)
  const { logger } = logging
  const application = await createApplication({
    config,
    logging,
    sandbox: sandbox !== undefined,
    ...(sandbox === undefined ? { reloadFrom: readConfig } : {}),
  })
  const store = application.get(ConfigStore)
  for (const warning of configWarnings(config)) logger.warn(warning)
  store.onChange((next) => {
    logger.level = next.logging.level
    for (const warning of configWarnings(next)) logger.warn(warning)
  })
  reloadOnSighup(store, {
    info: (message) => {
      logger.info(message)
    },
    error: (message) => {
      logger.error(message)
    },
  })
  drainOnSignal(application, {
    logger,
    graceMs: () => store.current.timeouts.shutdownGraceMs,
    closeOthers: async () => sandbox?.close(),
  })
  // The sandbox opens its store when somebody creates a task: most first minutes need none.
  if (sandbox === undefined && needsStore(config)) await openStore(application.get(Database), logger)
  const server = application.getHttpServer() as Server
  // By hand: Nest would log a port in use with its stack before the sentence below explains it.
  server.listen(config.server.port, config.server.host)
  await once(server, 'listening')
  application.get(Readiness).announceReady()
  announce(server, config.server.host, sandbox)
}

/** Whether tasks can be created here, or the operator asked for a store by name. */
const needsStore = ({ channels, database }: GatewayConfig): boolean =>
  database.url !== undefined || channels.some(({ provider }) => provider === 'vidgen')

/** A database that cannot be reached yet is waited for while everything that needs none is served. */
async function openStore(database: Database, logger: Logger): Promise<void> {
  try {
    await database.open()
  } catch (error) {
    if (error instanceof StoreUnusable) throw error
    logger.error({ err: error }, 'the store cannot be reached; tasks wait for it')
  }
}

function announce(server: Server, host: string, sandbox: Sandbox | undefined): void {
  const shown = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host
  const address = `http://${shown.includes(':') ? `[${shown}]` : shown}:${(server.address() as AddressInfo).port}`
  process.stdout.write(sandbox === undefined ? `Multi-Model Gateway listens at ${address}\n` : sandbox.banner(address))
}

function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof StoreUnusable) return error.message
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    return 'The port is in use. Choose another with PORT=<number>.'
  }
  return `The gateway could not start: ${error instanceof Error ? (error.stack ?? error.message) : 'unknown error'}`
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
  // Simulators or a half-started server must not keep a failed process alive.
  process.exit()
}
