import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type P1Simulator, startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { type Exit, freePort, type GatewayProcess, runGateway, startParts } from '../support/gateway-process.js'
import { sendRaw, TEST_KEY } from '../support/gateway.js'
import { parseScrape, valueOf } from '../support/prometheus-text.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'
import type { TestPostgres } from '../support/stores.js'
import { type Balancer, startBalancer } from './balancer.js'
import { startRedis, type TestRedis } from './daemon.js'
import { startClusterPostgres } from './debian-postgres.js'

/** A built gateway at an address that it keeps over restarts. */
export class Replica {
  private current: GatewayProcess | undefined

  private constructor(
    readonly url: string,
    /** `host:port`, as the balancer wants it. */
    readonly address: string,
    private readonly metricsUrl: string,
    private readonly directory: string,
    private readonly variables: Readonly<Record<string, string>>,
  ) {}

  /** Nothing runs yet. */
  static async prepare(
    directory: string,
    configuration: object,
    variables: Readonly<Record<string, string>>,
  ): Promise<Replica> {
    const [port, metricsPort] = [String(await freePort()), String(await freePort())]
    await mkdir(directory)
    await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(configuration))
    const address = `127.0.0.1:${port}`
    return new Replica(`http://${address}`, address, `http://127.0.0.1:${metricsPort}`, directory, {
      PORT: port,
      METRICS_PORT: metricsPort,
      ...variables,
    })
  }

  /** The process that runs. Throws when none does. */
  get process(): GatewayProcess {
    if (this.current === undefined) throw new Error('this replica has been stopped')
    return this.current
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    this.current = runGateway(this.directory, this.variables)
    await this.current.listening()
  }

  /** Requests of that family (docs/metrics.md) that are under way there. */
  async inFlight(family: string): Promise<number> {
    const { text } = await sendRaw(this.metricsUrl, { method: 'GET', path: '/metrics' })
    return valueOf(parseScrape(text), 'gateway_requests_in_flight', { family }) ?? 0
  }

  /** Whether the port is closed; the process may still be running. */
  refusesConnections(): Promise<boolean> {
    return sendRaw(this.url, { method: 'GET', path: '/health/live' }).then(
      () => false,
      (error: unknown) => String(error).includes('ECONNREFUSED'),
    )
  }

  /** Writes another configuration and has it read. */
  async reload(configuration: object): Promise<void> {
    await writeFile(join(this.directory, 'gateway.yaml'), JSON.stringify(configuration))
    this.process.child.kill('SIGHUP')
    await this.process.said(/"configuration reloaded"/)
  }

  /** As its operator stops it; resolves when it has ended. */
  stop(): Promise<Exit> {
    return this.end('SIGTERM')
  }

  /** As by `kill -9`. */
  kill(): Promise<Exit> {
    return this.end('SIGKILL')
  }

  async close(): Promise<void> {
    if (this.current !== undefined) await this.kill()
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<Exit> {
    const { child, exited } = this.process
    child.kill(signal)
    const exit = await exited
    this.current = undefined
    return exit
  }
}

/** Longer than two intervals of the balancer's health check (deploy/haproxy/haproxy.cfg). */
export const DRAIN_DELAY_MS = 3_000

/** Starting PostgreSQL, Redis, HAProxy and two gateways on a busy machine. */
export const CLUSTER_START_MS = 120_000

interface ClusterOptions {
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

export interface ChatClusterOptions extends Omit<ClusterOptions, 'channels'> {
  /** Between the chunks of a stream. */
  readonly paceMs?: number
  /** Laid over the channel of the chats, e.g. its models. */
  readonly channel?: object
  /** Further ones. */
  readonly channels?: readonly object[]
}

/** A cluster with a simulated upstream for chats, which ends with it. */
export interface ChatCluster extends Cluster {
  readonly simulator: P1Simulator
}

export function startChatCluster(options: ChatClusterOptions = {}): Promise<ChatCluster> {
  const { paceMs = 0, channel, channels = [], ...rest } = options
  return startParts(async (closedAtLast) => {
    const simulator = closedAtLast(await startP1Simulator({ apiKey: UPSTREAM_KEY, paceMs }))
    const cluster = await startCluster({ ...rest, channels: [p1Channel('chat', simulator, channel), ...channels] })
    return { ...closedAtLast(cluster), simulator }
  })
}
