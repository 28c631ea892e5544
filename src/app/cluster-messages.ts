import { availableParallelism } from 'node:os'
import { deepFreeze } from '../config/deep-freeze.js'
import { hasLimits } from '../config/limits-schema.js'
import type { GatewayConfig } from '../config/settings.js'

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
