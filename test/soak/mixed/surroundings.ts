import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { newestPostgres, startClusterPostgres } from '../../cluster/debian-postgres.js'
import { startRedis } from '../../cluster/redis.js'
import { freePort } from '../../support/free-port.js'
import { startParts } from '../../support/start-parts.js'
import type { SocketGroup } from './socket-counts.js'

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

/** A server that the gateway is told of by a variable. */
interface Service {
  /** Undefined: it is not there. */
  readonly url: string | undefined
  readonly name: string
  readonly group: SocketGroup
}

const isThere = (service: Service): service is Service & { readonly url: string } => service.url !== undefined

export type SoakStore = 'embedded' | 'postgres'

/** A collector of traces that reads what it gets, takes all of it and keeps nothing, however long a run is. */
async function startTraceSink() {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

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
