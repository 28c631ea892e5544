import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { startVidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { startDocumentTarget } from '../../support/document-target.js'
import type { Random } from '../random.js'
import { layOutPages, pagePath } from './page-faults.js'
import { spoilSessions } from './session-faults.js'
import type { Surroundings } from './surroundings.js'

const FAULTS: readonly Fault[] = [
  'reset',
  'cut',
  'cleancut',
  'stall',
  'hang',
  'errorframe',
  '500',
  '503',
  '429',
  'html',
  'malformed',
  'empty',
  'slow',
  { kind: 'delay', ms: 300 },
]
const SPOILT = 0.06
/** Silence of p2's `#slow`: longer than the gateway waits, as that of the real one may be. */
const P2_GAP_MS = 1500

export const UPSTREAM_KEY = 'soak-upstream-canary'
export const VIDGEN = { accessKey: 'soak-access', secretKey: 'soak-upstream-canary-secret' }

export type MixedUpstreams = Awaited<ReturnType<typeof startUpstreams>>

/** One simulator of each kind that the traffic goes to, and a web server with pages to read. */
export async function startUpstreams() {
  const options = { apiKey: UPSTREAM_KEY }
  const [p1, live, p2, p3, m1, vidgen, web] = await Promise.all([
    startP1Simulator({ ...options, paceMs: 1 }),
    startP1Simulator(options),
    startP2Simulator({ apiKey: `app|${UPSTREAM_KEY}`, gapMs: P2_GAP_MS }),
    startP3Simulator(options),
    startM1Simulator({ ...options, paceMs: 1 }),
    startVidgenSimulator(VIDGEN, { taskMs: { submitted: 500, processing: 1000 } }),
    startDocumentTarget(),
  ])
  layOutPages(web)
  const simulators: readonly Simulator[] = [p1, p3, m1, vidgen]
  const servers = [p1, live, p2, p3, m1, vidgen, web]
  return {
    ...{ p1, live, p2, p3, m1, vidgen, web, simulators },
    ports: servers.map(({ port }) => port),
    /** Requests under way, and connections that are of no use for another call: realtime sessions, p2's, of fetched pages. */
    inUse: () =>
      simulators.reduce((sum, { activeRequests }) => sum + activeRequests, 0) +
      [live.openConnections, p2.openConnections, web.sockets.size].reduce((sum, open) => sum + open),
    pageUrl: (random: Random) => web.url(pagePath(random)),
    close: async () => {
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}

/** Spoils a share of requests and of sessions, until the returned function is called. Pages are spoilt by themselves. */
export function spoilTraffic({ simulators, live, p2 }: MixedUpstreams, random: Random): () => void {
  const stops = simulators.map((simulator) => spoilRequests(simulator, random))
  stops.push(spoilSessions(live.realtime, p2))
  return () => {
    for (const stop of stops) stop()
  }
}

function spoilRequests(simulator: Simulator, random: Random): () => void {
  const spoil = (): void => {
    const fault = random.chance(SPOILT) ? random.pick(FAULTS) : undefined
    if (fault !== undefined) simulator.queueFault(fault)
  }
  simulator.on('request', spoil)
  return () => {
    simulator.off('request', spoil).reset()
  }
}

export interface MixedOptions {
  readonly runMs: number
  readonly sampleMs: number
  readonly workers: number
  readonly seed: number
  /** Absent: the embedded store, limits counted in memory, no metrics and no traces. */
  readonly surroundings?: Surroundings
}
