import cluster from 'node:cluster'
import { availableParallelism } from 'node:os'
import { deepFreeze } from '../config/faults.js'
import { type ConfigSource, ConfigStore } from '../config/config-store.js'
import { hasLimits } from '../config/auth-schema.js'
import type { GatewayConfig } from '../config/settings.js'
import type { LineSink, Logger, Logging } from '../observability/logger.js'
import { metricsAddress, MetricsServer } from '../observability/metrics-server.js'
import { mergedMetricsText, type MetricsSnapshot } from '../observability/metrics.js'
import { EndedWorkers, type ReloadResult, WorkerLines, WorkerProcess } from './cluster-child.js'
import { drainOnSignal } from './shutdown.js'

/** This number of workers is not possible; the message tells the operator why and what to do. */
export class WorkersRefused extends Error {
  override readonly name = 'WorkersRefused'
}

type WorkerSettings = Pick<GatewayConfig, 'server' | 'database' | 'auth' | 'redis'>

/** Number of workers of this configuration. Throws `WorkersRefused` for several on an embedded store. */
export function workersOf(settings: WorkerSettings, processors = availableParallelism()): number {
  const { server, database } = settings
  if (server.workers === 'auto' && countsAlone(settings)) return 1
  if (database.url !== undefined) return server.workers === 'auto' ? processors : server.workers
  if (server.workers === 'auto' || server.workers === 1) return 1
  throw new WorkersRefused(
    `server.workers (WORKERS) is ${server.workers}, but the embedded store belongs to one process. Name a PostgreSQL in ` +
      'database.url (DATABASE_URL), or leave the workers at 1.',
  )
}

/** The sandbox keeps its simulators in its own process. Throws `WorkersRefused` when several are asked for. */
export function assertAlone({ server: { workers } }: Pick<GatewayConfig, 'server'>): void {
  if (workers === 'auto' || workers === 1) return
  throw new WorkersRefused(
    `WORKERS is ${workers}, but without a configuration file this is the sandbox, which is one process. Write a gateway.yaml ` +
      'with your upstreams, or leave the workers at 1.',
  )
}

/** Warning where `auto` does not mean one worker per processor. */
export function workersNote(settings: WorkerSettings): string | undefined {
  const { server, database } = settings
  if (server.workers !== 'auto') return undefined
  if (database.url === undefined)
    return 'one worker, as the embedded store belongs to one process; with DATABASE_URL there is one for each processor'
  if (!countsAlone(settings)) return undefined
  return 'one worker, as several would each count limits by themselves; with REDIS_URL there is one for each processor'
}

/** Whether limits can be counted by a single process only. */
const countsAlone = ({ auth, redis }: WorkerSettings): boolean => redis.url === undefined && hasLimits(auth)

/** The configuration with the number of workers in place of `auto`, for everything that divides by it. */
export function withWorkers(config: GatewayConfig, workers: number): GatewayConfig {
  return deepFreeze({ ...config, server: { ...config.server, workers } })
}

interface WorkerPoolOptions {
  readonly workers: number
  /** The primary's configuration; only the primary reads and checks the file. */
  readonly store: ConfigStore
  readonly logger: Logger
  /** Sink for the log lines of all workers. */
  readonly sink: LineSink
}

/** The workers of this primary: processes of the same program, controlled by messages. */
export class WorkerPool {
  private readonly workers: readonly WorkerProcess[]
  private readonly ended = new EndedWorkers()
  private readonly lines: WorkerLines
  private collecting: Promise<readonly MetricsSnapshot[]> | undefined

  constructor(private readonly options: WorkerPoolOptions) {
    this.lines = new WorkerLines(options.sink)
    // Structured clones: a configuration may hold numbers such as Infinity, which JSON lacks.
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'inherit', 'ipc'], serialization: 'advanced' })
    this.workers = Array.from({ length: options.workers }, (_, index) => this.startWorker(index + 1))
  }

  /**
   * Resolves with the address once all of them listen; with undefined when the first could not start, which it has
   * explained. It goes ahead: what keeps it from starting would keep all of them, and the store is made ready once.
   */
  async start(): Promise<string | undefined> {
    const [first, ...others] = this.workers
    const address = await first?.fill()
    if (address === undefined) return undefined
    await Promise.all(others.map((place) => place.fill()))
    return address
  }

  /** Reloads once for all workers. All get a new configuration; a refusal goes only to the worker that requested it. */
  async reload(asker?: WorkerProcess): Promise<void> {
    const { store } = this.options
    const outcome = await store.reload()
    const result: ReloadResult = outcome.applied
      ? { config: store.current, needsRestart: outcome.needsRestart }
      : { faults: outcome.faults }
    for (const place of this.workers) {
      if (place === asker) place.sendResult(result)
      else if (outcome.applied || asker === undefined) place.reload(result)
    }
  }

  /** Resolves when all workers have exited: true if all did by themselves. The rest is killed after `deadlineMs`. */
  async drain(signal: string, deadlineMs: number): Promise<boolean> {
    const ends = await Promise.all(this.workers.map((place) => place.drain(signal, deadlineMs)))
    await this.lines.ended()
    return ends.every((isGood) => isGood)
  }

  /** Ends all workers at once, with time to save what is not stored. Resolves when all have exited. */
  async end(): Promise<void> {
    await Promise.all(this.workers.map((place) => place.end()))
    await this.lines.ended()
  }

  /** Metrics of running workers, and counters of ended ones. Simultaneous calls share one result. */
  snapshots(): Promise<readonly MetricsSnapshot[]> {
    this.collecting ??= this.collect().finally(() => {
      this.collecting = undefined
    })
    return this.collecting
  }

  private async collect(): Promise<readonly MetricsSnapshot[]> {
    await Promise.all(this.workers.map((place) => place.ask()))
    // Synchronously: a worker that ends meanwhile is counted once.
    return [...this.workers.map(({ known }) => known), await this.ended.snapshot()]
  }

  private startWorker(worker: number): WorkerProcess {
    const { store, logger } = this.options
    const place = new WorkerProcess({
      fork: () => {
        const forked = cluster.fork()
        if (forked.process.stdout !== null) this.lines.follow(forked.process.stdout, worker)
        return forked
      },
      start: () => ({ config: store.current }),
      onDeath: ({ code, signal, delayMs }) => {
        logger.error({ ofWorker: worker, code, signal, delayMs }, 'a worker died and is replaced')
      },
      onOverdue: (afterMs) => {
        logger.error({ ofWorker: worker, afterMs }, 'a worker did not end in time and is killed')
      },
      onReloadRequested: () => void this.reload(place),
      onEnd: (snapshot) => {
        this.ended.add(snapshot)
      },
    })
    return place
  }
}

/** Time for a worker after its requests: ten seconds of background work, and a margin. */
const CLOSING_MS = 12_000

interface PrimaryOptions {
  /** With the number of workers. */
  readonly config: GatewayConfig
  readonly workers: number
  readonly logging: Logging
  readonly readConfig: ConfigSource
}

/**
 * Serves by workers: starts them, replaces those that die, merges their metrics, and handles signals. Only the primary reads
 * the configuration: SIGHUP reloads it for all, and a replacement gets the last accepted one. The first SIGTERM or SIGINT
 * drains all and exits with 0 if all workers did; the second ends all after saving what is not stored, and exits with 1, unless
 * the drain was just over. Resolves with the address once all listen; with undefined if they cannot, which the first worker has
 * logged; never if a signal came before that. Rejects with `MetricsPortInUse`.
 */
export async function serveByWorkers(options: PrimaryOptions): Promise<string | undefined> {
  const { config, workers, readConfig } = options
  const { logger, sink } = options.logging
  const store = new ConfigStore(config, readConfig)
  store.onChange((next) => {
    logger.level = next.logging.level
  })
  const fleet = new WorkerPool({ workers, store, logger, sink })
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
  // The process is ending: workers that exited before they listened were told to.
  await draining
  return address
}
