import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { runGateway } from '../../support/gateway-process.js'
import { LogWatch } from '../log-watch.js'
import { Random } from '../random.js'
import { type Ending, MixedTraffic, TRAFFIC, type Traffic } from './mixed-traffic.js'
import {
  mixedConfiguration,
  type MixedUpstreams,
  spoilRequests,
  startUpstreams,
  UPSTREAM_KEY,
} from './mixed-upstreams.js'
import { type Holdings, ProcessSamples, type Sample } from './process-samples.js'

export interface MixedOptions {
  readonly runMs: number
  readonly sampleMs: number
  readonly workers: number
  readonly seed: number
}

export type Counts = Readonly<Record<Traffic, Readonly<Record<Ending, number>>>>

export interface MixedOutcome {
  readonly counts: Counts
  readonly samples: readonly Sample[]
  /** A while after the last call. */
  readonly atRest: Sample
  /** What upstreams were still doing by then, connections that serve one call included. */
  readonly leftUpstream: number
  /** What the gateway held before the first call. */
  readonly before: Holdings
  /** What it held when all callers and then all upstreams were gone: what that is more, it keeps for nobody. */
  readonly after: Holdings
  /** What the gateway's log holds that it must not hold. */
  readonly faults: readonly string[]
}

const KEY = 'soak-caller-canary'
const PROBE = new URL('./resource-probe.mjs', import.meta.url).href
/** Longer than anything the gateway waits for here. */
const REST_MS = 8000
const LONGEST_PAUSE_MS = 250
/** For what ends with its upstream. */
const PATIENCE_MS = 10_000

/** Every kind of traffic at once on one gateway, its upstreams failing now and then, and looks at what it holds. */
export async function runMixed(options: MixedOptions): Promise<MixedOutcome> {
  const random = new Random(options.seed)
  const upstreams = await startUpstreams()
  const directory = await mkdtemp(join(tmpdir(), 'gateway-soak-'))
  const resourcesFile = join(directory, 'resources.json')
  await writeFile(join(directory, 'gateway.yaml'), JSON.stringify(mixedConfiguration(upstreams, KEY)))
  const gateway = runGateway(directory, {
    NODE_OPTIONS: `--import ${PROBE}`,
    SOAK_RESOURCES: resourcesFile,
    GATEWAY_DATA: join(directory, 'data'),
  })
  const traffic = new MixedTraffic(await gateway.listening(), KEY, upstreams.pageUrl)
  let closing: Promise<void> | undefined
  const closeUpstreams = (): Promise<void> => (closing ??= upstreams.close())
  try {
    const process = new ProcessSamples(gateway.child.pid ?? 0, resourcesFile)
    const before = await process.holdings()
    const counts = await underLoad(options, { traffic, upstreams, process, random })
    await traffic.close()
    await pause(REST_MS)
    const atRest = await process.look()
    const leftUpstream = upstreams.inUse()
    await closeUpstreams()
    const after = await holdingsAfter(process, before)
    gateway.child.kill('SIGTERM')
    const watch = new LogWatch(
      new Map([
        ['the key of a caller', KEY],
        ['the key of an upstream', UPSTREAM_KEY],
      ]),
    )
    watch.read(await gateway.exited, 'SIGTERM')
    return { counts, samples: process.samples, atRest, leftUpstream, before, after, faults: watch.faults }
  } finally {
    await traffic.close()
    await gateway.close()
    await closeUpstreams()
    await rm(directory, { recursive: true, force: true })
  }
}

/** As soon as it is no more than before, at the latest when the patience is over. */
async function holdingsAfter(process: ProcessSamples, before: Holdings): Promise<Holdings> {
  const deadlineAtMs = performance.now() + PATIENCE_MS
  for (;;) {
    const { connections, timers } = await process.holdings()
    const isBack = connections <= before.connections && timers <= before.timers
    if (isBack || performance.now() > deadlineAtMs) return { connections, timers }
  }
}

interface Stage {
  readonly traffic: MixedTraffic
  readonly upstreams: MixedUpstreams
  readonly process: ProcessSamples
  readonly random: Random
}

async function underLoad(
  { runMs, sampleMs, workers }: MixedOptions,
  { traffic, upstreams, process, random }: Stage,
): Promise<Counts> {
  const counts = emptyCounts()
  const working = AbortSignal.timeout(runMs)
  const stopSpoiling = spoilRequests(upstreams, random.fork())
  const kinds = Object.keys(TRAFFIC) as Traffic[]
  const work = Array.from({ length: workers }, async (_, worker) => {
    const own = random.fork()
    // Everybody begins with another kind, so that a short run has seen all of them.
    for (let kind = kinds[worker % kinds.length]; !working.aborted; kind = own.weighted(TRAFFIC)) {
      if (kind === undefined) throw new Error('there is no traffic')
      counts[kind][await traffic.call(kind, own)] += 1
      await pause(own.between(0, LONGEST_PAUSE_MS))
    }
  })
  await Promise.all([...work, process.run(sampleMs, working)])
  stopSpoiling()
  return counts
}

const emptyCounts = (): Record<Traffic, Record<Ending, number>> =>
  Object.fromEntries(
    Object.keys(TRAFFIC).map((kind) => [kind, { answered: 0, refused: 0, failed: 0, left: 0 }]),
  ) as Record<Traffic, Record<Ending, number>>
