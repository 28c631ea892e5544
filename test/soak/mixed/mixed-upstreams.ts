import type { Fault } from '../../../src/sandbox/faults.js'
import { startM1Simulator } from '../../../src/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '../../../src/sandbox/p1/p1.simulator.js'
import { startP2Simulator } from '../../../src/sandbox/p2/p2.simulator.js'
import { startP3Simulator } from '../../../src/sandbox/p3/p3.simulator.js'
import type { Simulator } from '../../../src/sandbox/simulator.js'
import { startVidgenSimulator } from '../../../src/sandbox/vidgen/vidgen.simulator.js'
import { answerOf, pageOf, startDocumentTarget } from '../../support/document-target.js'
import type { Random } from '../random.js'

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
/** Pages of the web server; more than the cache of the gateway holds at once. */
const PAGES = 400
const PAGE_TEXT = 'A kettle is a vessel in which water is brought to the boil, and there are many of them. '

export const UPSTREAM_KEY = 'soak-upstream-canary'
const VIDGEN = { accessKey: 'soak-access', secretKey: 'soak-upstream-canary-secret' }
/** All but those of realtime sessions, which have a simulator of their own: its connections can be told from idle ones. */
const P1_MODELS = ['gpt-4.1-mini', 'tts-1', 'gpt-4o-mini-tts', 'whisper-1']
/** Cut short, so that what falls silent does not pile up. */
const TIMEOUTS = { connectMs: 1000, firstByteMs: 1500, idleMs: 1000, totalMs: 10_000 }

export type MixedUpstreams = Awaited<ReturnType<typeof startUpstreams>>

/** One simulator of each kind that the traffic goes to, and a web server with pages to read. */
export async function startUpstreams() {
  const options = { apiKey: UPSTREAM_KEY }
  const [p1, live, p2, p3, m1, vidgen, web] = await Promise.all([
    startP1Simulator({ ...options, paceMs: 1 }),
    startP1Simulator(options),
    startP2Simulator({ apiKey: `app|${UPSTREAM_KEY}` }),
    startP3Simulator(options),
    startM1Simulator({ ...options, paceMs: 1 }),
    startVidgenSimulator(VIDGEN, { taskMs: { submitted: 500, processing: 1000 } }),
    startDocumentTarget(),
  ])
  for (let page = 0; page < PAGES; page += 1) {
    web.answers.set(`/page-${page}`, answerOf(pageOf(`Page ${page}`, PAGE_TEXT.repeat(20 + (page % 200)))))
  }
  const simulators: readonly Simulator[] = [p1, p3, m1, vidgen]
  return {
    ...{ p1, live, p2, p3, m1, vidgen, web, simulators },
    /** Requests under way, and connections that are of no use for another call: realtime sessions, p2's, of fetched pages. */
    inUse: () =>
      simulators.reduce((sum, { activeRequests }) => sum + activeRequests, 0) +
      [live.openConnections, p2.openConnections, web.sockets.size].reduce((sum, open) => sum + open),
    pageUrl: (random: Random) => web.url(`/page-${Math.floor(random.next() * PAGES)}`),
    close: async () => {
      await Promise.all([p1, live, p2, p3, m1, vidgen, web].map((server) => server.close()))
    },
  }
}

/** Spoils a share of the requests, until the returned function is called. Sockets have faults of their own. */
export function spoilRequests({ simulators, web }: MixedUpstreams, random: Random): () => void {
  const stops = simulators.map((simulator) => {
    const spoil = (): void => {
      const fault = random.chance(SPOILT) ? random.pick(FAULTS) : undefined
      if (fault !== undefined) simulator.queueFault(fault)
      // A long run needs none of it.
      web.heads.length = 0
    }
    simulator.on('request', spoil)
    return () => {
      simulator.off('request', spoil).reset()
    }
  })
  return () => {
    for (const stop of stops) stop()
  }
}

/** The gateway's configuration with one channel to each. */
export const mixedConfiguration = ({ p1, live, p2, p3, m1, vidgen, web }: MixedUpstreams, key: string): object => ({
  auth: { keys: [{ id: 'soak', key }] },
  channels: [
    { id: 'p1', provider: 'p1', baseUrl: p1.url, credentials: UPSTREAM_KEY, models: P1_MODELS },
    { id: 'live', provider: 'p1', baseUrl: live.url, credentials: UPSTREAM_KEY, models: ['gpt-realtime'] },
    { id: 'p2', provider: 'p2', baseUrl: p2.url, credentials: `app|${UPSTREAM_KEY}`, models: ['p2-tts'] },
    { id: 'p3', provider: 'p3', baseUrl: p3.url, credentials: UPSTREAM_KEY },
    { id: 'm1', provider: 'm1', baseUrl: m1.url, credentials: UPSTREAM_KEY },
    { id: 'vidgen', provider: 'vidgen', baseUrl: vidgen.url, credentials: `${VIDGEN.accessKey}|${VIDGEN.secretKey}` },
  ].map((channel) => ({ ...channel, timeouts: TIMEOUTS })),
  timeouts: { ...TIMEOUTS, shutdownGraceMs: 10_000 },
  ssrf: { allow: [`127.0.0.1:${web.port}`] },
  tasks: { pollIntervalMs: 500 },
  documents: { cacheBytes: 4 * 1024 * 1024 },
})
