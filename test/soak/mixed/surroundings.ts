import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { listenOnLoopback, type LoopbackServer } from '../../support/loopback-server.js'
import { startRedis } from '../../cluster/daemon.js'
import { newestPostgres, rowsOf, startClusterPostgres } from '../../cluster/debian-postgres.js'
import { freePort, startParts } from '../../support/gateway-process.js'
import { type MetricFamily, parseScrape } from '../../support/prometheus-text.js'
import type { SocketGroup } from './process-samples.js'

/** Any of these that is not 0 after the last request is lost work. */
const NOTHING_AT_REST = [
  'gateway_requests_in_flight',
  'gateway_realtime_sessions',
  'gateway_channel_waiting',
  'gateway_documents',
  'gateway_admission_requests',
  'gateway_admission_bytes',
  'gateway_admission_shedding',
  'gateway_usage_queue_rows',
  'gateway_usage_dropped_total',
  'gateway_collect_failures_total',
]
const TIMEOUT_MS = 10_000

/** A busy store takes what waits for it within some of these. */
const AT_REST_INTERVAL_MS = 500

/** Scrapes a gateway as Prometheus does, over a connection that it keeps. */
export class MetricsWatch {
  scrapes = 0
  /** Scrapes that found Redis away. */
  redisAway = 0
  /** What went wrong with a scrape. */
  readonly faults: string[] = []
  private readonly agent = new Agent({ connections: 1, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })
  private families: ReadonlyMap<string, MetricFamily> = new Map()

  constructor(private readonly url: string) {}

  /** Until it is stopped. */
  async run(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.scrape()
      await pause(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Never rejects. */
  async scrape(): Promise<void> {
    try {
      const { statusCode, body } = await request(`${this.url}/metrics`, { dispatcher: this.agent })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`status ${statusCode}`)
      this.families = parseScrape(text)
      this.scrapes += 1
      if (this.sumOf('gateway_redis_away') > 0) this.redisAway += 1
    } catch (error) {
      this.faults.push(`a scrape failed: ${String(error)}`)
    }
  }

  /** Of the last scrape: all series of a metric together. 0 where it tells of none. */
  sumOf(name: string): number {
    return this.valuesOf(name, '').reduce((sum, [, value]) => sum + value, 0)
  }

  /** Each series of a metric by one of its labels. */
  valuesOf(name: string, label: string): readonly (readonly [string, number])[] {
    const { samples = [] } = this.families.get(name) ?? {}
    return samples.map(({ labels, value }) => [labels[label] ?? '', value] as const)
  }

  /** Scrapes until nothing is there that must not be at rest; after `patienceMs` it tells what still is. */
  async untilAtRest(patienceMs: number): Promise<readonly string[]> {
    const deadlineAtMs = performance.now() + patienceMs
    await this.scrape()
    while (this.leftAtRest().length > 0 && performance.now() < deadlineAtMs) {
      await pause(AT_REST_INTERVAL_MS)
      await this.scrape()
    }
    return this.leftAtRest()
  }

  /** What the last scrape tells of that must not be there while the gateway is at rest. */
  leftAtRest(): readonly string[] {
    return NOTHING_AT_REST.flatMap((name) => {
      const sum = this.sumOf(name)
      return sum === 0 ? [] : [`${name} is ${sum} at rest`]
    })
  }

  close(): Promise<void> {
    return this.agent.destroy()
  }
}

/** What a store holds. */
export interface StoredUsage {
  /** Records of calls, and of answers within them; refusals of a minute are one record with their number. */
  readonly stored: number
  /** Tasks that have ended, and the records of them. */
  readonly endedTasks: number
  readonly storedTasks: number
}

/** Records of use: what the gateway has counted, and what its store holds after its end. */
export interface UsageCounts extends StoredUsage {
  /** Of requests and of responses within sessions, after the last request. */
  readonly counted: number
  readonly faults: readonly string[]
}

const STORED = `select
  (select coalesce(sum(requests), 0) from usage_record where kind <> 'task')::integer as "stored",
  (select count(*) from usage_record where kind = 'task')::integer as "storedTasks",
  (select count(*) from task where state in ('succeed', 'failed'))::integer as "endedTasks"`

/** To be called when the gateway has ended. `metrics`: as of after the last request. */
export async function countRecords(
  databaseUrl: string | undefined,
  metrics: MetricsWatch | undefined,
): Promise<UsageCounts | undefined> {
  if (databaseUrl === undefined || metrics === undefined) return undefined
  const [stored] = await rowsOf<StoredUsage>(databaseUrl, STORED)
  return stored && comparedCounts(metrics, stored)
}

/**
 * Not one record may be lost, and none be there twice. Tasks go on ending until the gateway does: theirs are compared with
 * the tasks that the store says have ended, and left out of what was counted, by the same scrape.
 */
export function comparedCounts(metrics: Pick<MetricsWatch, 'sumOf'>, held: StoredUsage): UsageCounts {
  const counted = metrics.sumOf('gateway_usage_records_total') - metrics.sumOf('gateway_tasks_ended_total')
  const { stored, endedTasks, storedTasks } = held
  const faults = [
    ...(stored === counted ? [] : [`${counted} records of calls and answers were counted, and ${stored} are stored`]),
    ...(storedTasks === endedTasks
      ? []
      : [`${endedTasks} tasks have ended, and ${storedTasks} records of them are stored`]),
  ]
  return { ...held, counted, faults }
}

/** What a gateway in production has around it. */
export interface Surroundings {
  /** In words, for the report. */
  readonly description: string
  /** For the gateway's environment. */
  readonly variables: Readonly<Record<string, string>>
  /** Without a path. */
  readonly metricsUrl: string
  /** Undefined: the embedded store. */
  readonly databaseUrl: string | undefined
  /** By port. */
  readonly groups: ReadonlyMap<number, SocketGroup>
  close(): Promise<void>
}

/** A server whose address the gateway gets by an environment variable. */
interface Service {
  /** Undefined: it is not there. */
  readonly url: string | undefined
  readonly name: string
  readonly group: SocketGroup
}

const isThere = (service: Service): service is Service & { readonly url: string } => service.url !== undefined

export type SoakStore = 'embedded' | 'postgres'

/** A collector of traces that reads what it gets, takes all of it and keeps nothing, however long a run is. */
const startTraceSink = (): Promise<LoopbackServer> =>
  listenOnLoopback(
    createServer((request, response) => {
      request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
    }),
  )

/**
 * Starts a sink for traces, and the PostgreSQL and the Redis of the system's packages where they are installed; without
 * them the gateway has its embedded store, and counts limits in its memory. `store` decides instead, where it is given.
 */
export function startSurroundings(store?: SoakStore): Promise<Surroundings> {
  const wantsPostgres = store === undefined ? newestPostgres() !== undefined : store === 'postgres'
  let origin = 'the embedded store'
  const say = (line: string): void => {
    origin = line.trim()
  }
  return startParts(async (closedAtLast) => {
    const metricsPort = await freePort()
    const sink = closedAtLast(await startTraceSink())
    const postgres = wantsPostgres ? closedAtLast(await startClusterPostgres({ say })) : undefined
    const redis = isInstalled('redis-server') ? closedAtLast(await startRedis()) : undefined
    const databaseUrl = await postgres?.emptyDatabase()
    const counted = redis === undefined ? 'in the memory of the process, as redis-server is not installed' : 'in Redis'
    const services: readonly Service[] = [
      { url: databaseUrl, name: 'DATABASE_URL', group: 'store' },
      { url: redis?.url, name: 'REDIS_URL', group: 'redis' },
      { url: `http://127.0.0.1:${sink.port}`, name: 'OTEL_EXPORTER_OTLP_ENDPOINT', group: 'collector' },
    ]
    const there = services.filter(isThere)
    return {
      description: `Records and tasks in ${origin}; limits counted ${counted}; every call traced`,
      variables: {
        METRICS_PORT: String(metricsPort),
        ...Object.fromEntries(there.map(({ name, url }) => [name, url])),
      },
      groups: new Map(there.map(({ url, group }) => [Number(new URL(url).port), group])),
      databaseUrl,
      metricsUrl: `http://127.0.0.1:${metricsPort}`,
    }
  })
}

/** Whether a program of the operating system can be started, by the folders that `startDaemon` looks in. */
function isInstalled(program: string): boolean {
  const { PATH = '' } = process.env
  return [...PATH.split(':'), '/usr/sbin'].some((folder) => folder !== '' && existsSync(join(folder, program)))
}
