import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TEST_KEY } from '../support/gateway.js'
import type { TestPostgres } from '../support/postgres.js'
import { type Balancer, startBalancer } from './balancer.js'
import { startClusterPostgres } from './debian-postgres.js'
import { type TestRedis, startRedis } from './redis.js'
import { Replica } from './replica.js'
import { startParts } from '../support/start-parts.js'

/** Longer than two intervals of the balancer's health check (deploy/haproxy/haproxy.cfg). */
export const DRAIN_DELAY_MS = 3_000

/** Starting PostgreSQL, Redis, HAProxy and two gateways on a busy machine. */
export const CLUSTER_START_MS = 120_000

export interface ClusterOptions {
  readonly channels: readonly object[]
  readonly keys?: readonly object[]
  /** Further sections of the configuration, as in gateway.yaml. */
  readonly sections?: object
  /** Further variables of the gateways' environment. */
  readonly variables?: Readonly<Record<string, string>>
  readonly replicas?: number
}

/** What docker-compose.yml runs in production: gateways behind HAProxy, on one PostgreSQL and one Redis. */
export interface Cluster {
  /** The balancer's: where callers connect. */
  readonly url: string
  readonly replicas: readonly Replica[]
  readonly balancer: Balancer
  readonly postgres: TestPostgres
  readonly databaseUrl: string
  readonly redis: TestRedis
  /** The configuration file of every replica; for a changed one to reload. */
  readonly configuration: object
  close(): Promise<void>
}

/** Resolves when every replica listens and the balancer sends requests to all of them. */
export function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { channels, keys, sections = {}, variables = {}, replicas: count = 2 } = options
  return startParts(async (closedAtLast) => {
    const directory = await mkdtemp(join(tmpdir(), 'gateway-cluster-'))
    closedAtLast({ close: () => rm(directory, { recursive: true, force: true }) })
    const postgres = closedAtLast(await startClusterPostgres())
    const redis = closedAtLast(await startRedis())
    const databaseUrl = await postgres.emptyDatabase()
    const environment = {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      DRAIN_DELAY_MS: String(DRAIN_DELAY_MS),
      ...variables,
    }
    const configuration = {
      auth: { keys: keys ?? [{ id: 'test', key: TEST_KEY }] },
      channels,
      ...sections,
    }
    const replicas = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        Replica.prepare(join(directory, `replica-${index + 1}`), configuration, environment),
      ),
    )
    for (const replica of replicas) closedAtLast(replica)
    await Promise.all(replicas.map((replica) => replica.start()))
    const balancer = closedAtLast(await startBalancer(replicas.map(({ address }) => address)))
    for (const index of replicas.keys()) await balancer.shows(index + 1, true)
    return { url: balancer.url, replicas, balancer, postgres, databaseUrl, redis, configuration }
  })
}
