import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type GatewayProcess, runGateway } from '../../support/gateway-process.js'
import { startParts } from '../../support/start-parts.js'
import { Random } from '../random.js'
import { MetricsWatch } from './metrics-watch.js'
import { mixedConfiguration } from './mixed-configuration.js'
import { MixedTraffic } from './mixed-traffic.js'
import { type MixedOptions, type MixedUpstreams, startUpstreams } from './mixed-upstreams.js'
import { ProcessSamples } from './process-samples.js'
import type { SocketGroup, SocketPeers } from './socket-counts.js'
import type { Surroundings } from './surroundings.js'

/** A gateway that listens, and everybody who has to do with it. */
export interface MixedStage {
  readonly gateway: GatewayProcess
  readonly traffic: MixedTraffic
  readonly upstreams: MixedUpstreams
  readonly process: ProcessSamples
  /** Undefined: nobody scrapes. */
  readonly metrics: MetricsWatch | undefined
  readonly random: Random
  /** May be called again. */
  readonly closeUpstreams: () => Promise<void>
  readonly close: () => Promise<void>
}

const PROBE = new URL('./resource-probe.mjs', import.meta.url).href

export function startStage(options: MixedOptions): Promise<MixedStage> {
  const { surroundings, seed } = options
  return startParts(async (closedAtLast) => {
    const directory = await mkdtemp(join(tmpdir(), 'gateway-soak-'))
    closedAtLast({ close: () => rm(directory, { recursive: true, force: true }) })
    const upstreams = await startUpstreams()
    let closing: Promise<void> | undefined
    const closeUpstreams = (): Promise<void> => (closing ??= upstreams.close())
    closedAtLast({ close: closeUpstreams })
    const resourcesFile = join(directory, 'resources.json')
    await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(mixedConfiguration(upstreams, options)))
    const variables = { SOAK_RESOURCES: resourcesFile, GATEWAY_DATA: join(directory, 'data') }
    const preloaded = { NODE_OPTIONS: `--import ${PROBE}` }
    const gateway = closedAtLast(runGateway(directory, { ...preloaded, ...variables, ...surroundings?.variables }))
    const url = await gateway.listening()
    const metrics = surroundings === undefined ? undefined : closedAtLast(new MetricsWatch(surroundings.metricsUrl))
    return {
      ...{ gateway, upstreams, metrics, closeUpstreams },
      traffic: closedAtLast(new MixedTraffic(url, upstreams.pageUrl)),
      process: new ProcessSamples(gateway.child.pid ?? 0, resourcesFile, peersOf(url, upstreams, surroundings)),
      random: new Random(seed),
    }
  })
}

const portOf = (url: string): number => Number(new URL(url).port)

function peersOf(url: string, { ports }: MixedUpstreams, surroundings: Surroundings | undefined): SocketPeers {
  const local = new Map<number, SocketGroup>([[portOf(url), 'callers']])
  if (surroundings !== undefined) local.set(portOf(surroundings.metricsUrl), 'scrapes')
  const upstreams = ports.map((port) => [port, 'upstreams'] as const)
  return { local, remote: new Map<number, SocketGroup>([...upstreams, ...(surroundings?.groups ?? [])]) }
}
