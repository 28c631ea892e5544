import { setTimeout as pause } from 'node:timers/promises'
import { leftovers, type Pools } from './leftovers.js'
import { type KeyName, KEYS } from './mixed-configuration.js'
import type { MixedStage } from './mixed-stage.js'
import type { MixedTraffic } from './mixed-traffic.js'
import type { MixedOptions, MixedUpstreams } from './mixed-upstreams.js'
import type { Holdings, ProcessSamples, Sample } from './process-samples.js'

/** What there is when nobody asks for anything any more. */
export interface Rest {
  /** A while after the last call. */
  readonly atRest: Sample
  /** The same moment: upstreams are still there. */
  readonly resting: Holdings
  /** What upstreams were still doing by then, connections that serve one call included. */
  readonly leftUpstream: number
  /** What the gateway held when all callers and then all upstreams were gone: what that is more, it keeps for nobody. */
  readonly after: Holdings
  /** What of it nothing explains, in words. */
  readonly leftovers: readonly string[]
}

interface Settled {
  readonly holdings: Holdings
  readonly leftovers: readonly string[]
}

/** For what callers left behind to come to its end. */
const SETTLING_MS = 4000
/** Longer than anything the gateway waits for here, but for its pools of connections. */
const REST_MS = 8000
/** For what ends with its upstream, and for the pool of the store, which keeps an idle connection for ten seconds. */
const PATIENCE_MS = 20_000
/** `database.maxConnections`, as nobody configures it. */
const STORE_CONNECTIONS = 10
/** `tasks.pollsPerChannel`: what goes to the vidgen upstream beside the callers. */
const POLLS = 16

/** Takes the callers away, looks, takes the upstreams away, and looks again. */
export async function atRest({ workers }: MixedOptions, before: Holdings, stage: MixedStage): Promise<Rest> {
  const { process, traffic, metrics, upstreams, closeUpstreams } = stage
  await pause(SETTLING_MS)
  const inUse = await placesInUse(traffic)
  await metrics?.scrape()
  const counted = metrics?.leftAtRest() ?? []
  // The last connections that anybody has to the gateway.
  await traffic.close()
  await metrics?.close()
  await pause(REST_MS)
  const look = await process.look()
  const resting = await settled(process, before, { upstreams: poolOf(workers, upstreams), store: STORE_CONNECTIONS })
  const leftUpstream = upstreams.inUse()
  await closeUpstreams()
  const gone = await settled(process, before, { upstreams: 0, store: 0 })
  const kept = [...resting.leftovers, ...gone.leftovers]
  return {
    atRest: look,
    resting: resting.holdings,
    leftUpstream,
    after: gone.holdings,
    leftovers: [...inUse, ...counted, ...kept],
  }
}

/** Each upstream may have had all callers at once. */
const poolOf = (workers: number, { ports }: MixedUpstreams): number => workers * ports.length + POLLS

async function placesInUse(traffic: MixedTraffic): Promise<readonly string[]> {
  const names = Object.keys(KEYS) as KeyName[]
  const counts = await Promise.all(names.map((name) => traffic.inUse(name)))
  return counts.flatMap((count, at) => (count === 0 ? [] : [`${count} places of the ${names[at]} key are in use`]))
}

/**
 * As soon as nothing is left over, at the latest when the patience is over. Timers and sockets are counted at two moments, and
 * in between the store's pool may give up a connection with its timer; what leaks is left over in every look.
 */
async function settled(process: ProcessSamples, before: Holdings, pools: Pools): Promise<Settled> {
  const deadlineAtMs = performance.now() + PATIENCE_MS
  for (;;) {
    const holdings = await process.holdings()
    const left = leftovers(before, holdings, pools)
    if (left.length === 0 || performance.now() > deadlineAtMs) return { holdings, leftovers: left }
  }
}
