import 'reflect-metadata'
import cluster from 'node:cluster'
import { setFlagsFromString } from 'node:v8'
import {
  assertAlone,
  serveByWorkers,
  withWorkers,
  workersNote,
  workersOf,
  WorkersRefused,
} from './app/cluster-primary.js'
import { PrimaryLink } from './app/cluster-worker.js'
import type { Gateway, GatewayOptions } from './app/gateway.js'
import { PROVIDERS } from './app/providers.js'
import { drainOnSignal } from './app/shutdown.js'
import { ConfigError } from './config/faults.js'
import { processEnvironment, readEnvironment, type Variables } from './config/environment.js'
import { loadConfigFile, type LoadedConfig, parseConfig } from './config/load-config.js'
import type { GatewayConfig } from './config/settings.js'
import { createLogging, type Logging } from './observability/logger.js'
import { MetricsPortInUse } from './observability/metrics-server.js'
import { StoreUnusable } from './storage/database.js'
import { keepFilesPrivate } from './storage/data-lock.js'

// V8 inlines functions into a hot one until that has 920 bytes of bytecode. The way of a request has more, and every function beyond
// the budget costs a call: a relayed chat takes a tenth less with this (docs/decisions/0039). Set before anything is hot.
setFlagsFromString('--max-inlined-bytecode-size-cumulative=2000')
// The heap may grow to two and a half times what was alive in it before V8 walks through all of it again. By itself V8 allows a tenth or
// more, and counts the bytes of bodies as growth: a walk for each 25 MB that came in took more time than the bodies (docs/decisions/0044).
setFlagsFromString('--heap-growing-percent=150')

/** Their messages tell the operator what to do. */
const EXPLAINED = [ConfigError, StoreUnusable, MetricsPortInUse, WorkersRefused] as const

/** Why the gateway could not start, for the operator. */
function explainStartFailure(error: unknown): string {
  if (error instanceof Error && EXPLAINED.some((type) => error instanceof type)) return error.message
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    return 'The port is in use. Choose another with PORT=<number>.'
  }
  return `The gateway could not start: ${error instanceof Error ? (error.stack ?? error.message) : 'unknown error'}`
}

type ReadConfig = () => Promise<LoadedConfig | undefined>

async function main(): Promise<void> {
  keepFilesPrivate()
  const variables = processEnvironment()
  const { configFile } = readEnvironment(variables)
  if (cluster.isWorker) {
    await serveAsWorker()
    return
  }
  const readConfig = (): Promise<LoadedConfig | undefined> => loadConfigFile(configFile, variables, PROVIDERS)
  const loaded = await readConfig()
  if (loaded === undefined) {
    await serveSandbox(variables)
    return
  }
  const { config } = loaded
  const workers = workersOf(config)
  const logging = createLogging(config.logging.level)
  const note = workersNote(config)
  if (note !== undefined) logging.logger.info(note)
  const address = await (workers === 1
    ? serveAlone(config, logging, readConfig)
    : serveByWorkers({
        config: withWorkers(config, workers),
        workers,
        logging,
        readConfig: readingFor(readConfig, workers),
      }))
  // The first worker has said why.
  if (address === undefined) process.exit(1)
  // Where the log goes, by the same way: two writers would tear each other's lines.
  logging.sink.write(`Multi-Model Gateway listens at ${address}\n`)
}

async function serveSandbox(variables: Variables): Promise<void> {
  const { startSandbox } = await import('@multi-model-gateway/sandbox/sandbox.js')
  const sandbox = await startSandbox(readEnvironment(variables).inContainer ? '0.0.0.0' : '127.0.0.1')
  // Production forbids exemptions from the SSRF guard to operators; these open nothing but this process itself.
  const sandboxConfig = parseConfig(sandbox.configText, { ...variables, NODE_ENV: undefined }, PROVIDERS)
  assertAlone(sandboxConfig)
  const config = withWorkers(sandboxConfig, 1)
  const gateway = await createGateway({
    config,
    inSandbox: true,
    closeLast: () => sandbox.close(),
    logging: createLogging(config.logging.level),
    servesMetrics: true,
  })
  process.stdout.write(sandbox.banner(await serve(gateway)))
}

async function serveAlone(config: GatewayConfig, logging: Logging, readConfig: ReadConfig): Promise<string> {
  const reloadFrom = readingFor(readConfig, 1)
  return serve(await createGateway({ config: withWorkers(config, 1), logging, reloadFrom, servesMetrics: true }))
}

/** Loaded where there is one: the primary of workers is small, and starts them at once. */
async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const gateway = await import('./app/gateway.js')
  return gateway.createGateway(options)
}

/** With signals of its own; resolves with the address once it listens. */
function serve(gateway: Gateway): Promise<string> {
  process.on('SIGHUP', () => void gateway.reload())
  drainOnSignal((signal) => gateway.drain(signal))
  return gateway.listen()
}

async function serveAsWorker(): Promise<void> {
  const primary = await PrimaryLink.connect()
  const { config } = primary.start
  const logging = createLogging(config.logging.level)
  const gateway = await createGateway({ config, logging, reloadFrom: primary.readAgain, servesMetrics: false })
  primary.direct(gateway)
  primary.reportListening(await gateway.listen())
}

/** As often as it is read, `auto` comes to the number there is. */
const readingFor =
  (readConfig: ReadConfig, workers: number): ReadConfig =>
  async () => {
    const loaded = await readConfig()
    return loaded && { ...loaded, config: withRunning(loaded.config, workers) }
  }

const withRunning = (config: GatewayConfig, workers: number): GatewayConfig =>
  config.server.workers === 'auto' ? withWorkers(config, workers) : config

try {
  await main()
} catch (error) {
  process.stderr.write(`${explainStartFailure(error)}\n`)
  process.exitCode = 1
  // Simulators or a half-started server must not keep a failed process alive.
  process.exit()
}
