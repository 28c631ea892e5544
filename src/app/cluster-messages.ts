import { availableParallelism } from 'node:os'
import { deepFreeze } from '../config/faults.js'
import { hasLimits } from '../config/auth-schema.js'
import type { GatewayConfig } from '../config/settings.js'
import type { MetricsSnapshot } from '../observability/metrics.js'

/** What became of the configuration when the primary read it again. */
export type ReloadResult =
  | {
      readonly config: GatewayConfig
      /** Settings that changed but are in `config` as they run. */
      readonly needsRestart: readonly string[]
    }
  | { readonly faults: readonly string[] }

/** What a worker begins with. */
export interface WorkerStart {
  readonly config: GatewayConfig
}

/** What the primary tells a worker. Signals to a worker itself are ignored: terminals and service managers send them to all. */
export type PrimaryMessage =
  | ({ readonly order: 'begin' } & WorkerStart)
  | { readonly order: 'reload'; readonly verdict: ReloadResult }
  /** The same, to the worker that had asked. */
  | { readonly order: 'answer'; readonly verdict: ReloadResult }
  | { readonly order: 'drain'; readonly signal: string }
  /** Now, whatever runs; what is not stored is kept. */
  | { readonly order: 'exit' }
  | { readonly order: 'metrics'; readonly id: number }

/** What a worker tells the primary. What is sent to a worker that does not listen yet is lost: it says first when it does. */
export type WorkerMessage =
  | { readonly news: 'here' }
  /** The administrator wants the configuration to be read again. */
  | { readonly news: 'asks-reload' }
  | { readonly news: 'listening'; readonly address: string }
  | { readonly news: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot }

/** So many processes cannot serve here; the message tells the operator why and what to do. */
export class WorkersRefused extends Error {
  override readonly name = 'WorkersRefused'
}

type WorkerSettings = Pick<GatewayConfig, 'server' | 'database' | 'auth' | 'redis'>

/** How many processes serve by this configuration. Throws `WorkersRefused` for several on an embedded store. */
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

/** What to say about `auto` where it does not mean what it seems to. */
export function workersNote(settings: WorkerSettings): string | undefined {
  const { server, database } = settings
  if (server.workers !== 'auto') return undefined
  if (database.url === undefined)
    return 'one worker, as the embedded store belongs to one process; with DATABASE_URL there is one for each processor'
  if (!countsAlone(settings)) return undefined
  return 'one worker, as several would each count limits by themselves; with REDIS_URL there is one for each processor'
}

/** Limits that nobody but a single process can count. */
const countsAlone = ({ auth, redis }: WorkerSettings): boolean => redis.url === undefined && hasLimits(auth)

/** The same configuration with the number that `auto` comes to, for everything that divides by it. */
export function withWorkers(config: GatewayConfig, workers: number): GatewayConfig {
  return deepFreeze({ ...config, server: { ...config.server, workers } })
}
