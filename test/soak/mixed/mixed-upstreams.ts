import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { startM1Simulator } from '@multi-model-gateway/sandbox/m1/m1.simulator.js'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { startP2Simulator } from '@multi-model-gateway/sandbox/p2/p2.simulator.js'
import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import type { Fault } from '@multi-model-gateway/sandbox/server/faults.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import type { SocketFault, SocketSessions } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { startVidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { answerOf, type DocumentTarget, pageOf, startDocumentTarget } from '../../support/document-stand-ins.js'
import { type Random, Turns } from '../soak-records.js'
import type { Surroundings } from './surroundings.js'

/** Pages of the web server; more than the cache of the gateway holds at once. */
const PAGES = 400
const PAGE_TEXT = 'A kettle is a vessel in which water is brought to the boil, and there are many of them. '
const SPOILT_PAGE_EACH = 10
const SLOW_MS = 300

/** What a web server does in place of sending this answer. */
type PageFault = (socket: Socket, answer: Buffer) => void

const halfOf = (answer: Buffer): Buffer => answer.subarray(0, answer.length / 2)

/** The gateway must hang up on those that fall silent: nothing here ever does. */
const PAGE_FAULTS: readonly PageFault[] = [
  // Cut: shorter than its length says.
  (socket, answer) => socket.end(halfOf(answer)),
  // Stalls in the middle.
  (socket, answer) => socket.write(halfOf(answer)),
  // Malformed: says that it is gzip, and is none.
  (socket) => socket.write(answerOf('<html>', { headers: { 'content-encoding': 'gzip' } })),
  (socket, answer) => socket.write(halfOf(answer), () => socket.resetAndDestroy()),
  // Never answers.
  () => undefined,
  // Malformed: no HTTP at all.
  (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
  (socket, answer) => void sendSlowly(socket, answer),
  // An answer of its own, which is no failure.
  (socket) => socket.write(answerOf(pageOf('Gone', PAGE_TEXT), { status: '404 Not Found' })),
]

async function sendSlowly(socket: Socket, answer: Buffer): Promise<void> {
  socket.write(halfOf(answer))
  await pause(SLOW_MS)
  // The peer may have disconnected.
  if (socket.writable) socket.write(answer.subarray(halfOf(answer).length))
}

/** Fills a web server with pages of many lengths. One fetch in ten fails on its way, whichever page it is for. */
function layOutPages(web: DocumentTarget): void {
  const turns = new Turns(PAGE_FAULTS, SPOILT_PAGE_EACH)
  for (let page = 0; page < PAGES; page += 1) {
    const answer = answerOf(pageOf(`Page ${page}`, PAGE_TEXT.repeat(20 + (page % 200))))
    web.answers.set(`/page-${page}`, (socket) => {
      // A long run needs none of it.
      web.heads.length = 0
      const fault = turns.next()
      if (fault === undefined) socket.write(answer)
      else fault(socket, answer)
    })
  }
}

const pagePath = (random: Random): string => `/page-${Math.floor(random.next() * PAGES)}`

const SPOILT_SESSION_EACH = 12

const HANDSHAKE_FAULTS: readonly SocketFault[] = [
  { kind: 'reset' },
  { kind: 'status', status: 503, body: '{"error":{"message":"busy"}}' },
  { kind: 'hang' },
  { kind: 'delay', ms: 300 },
]

/** Words of `packages/sandbox/src/realtime/fault-injection.ts` that take effect as soon as a session is open. */
const REALTIME_FAULTS: readonly SocketFault[] = [
  // Cut.
  '#drop',
  // Silent from the first event on.
  '#hang',
  // Malformed, which must not end a session.
  '#garbage',
  '#binary',
  '#closecode=1011',
  // Reads nothing for a while.
  '#deaf=500',
  '#expire',
  ...HANDSHAKE_FAULTS,
]

/** Words of `packages/sandbox/src/p2/p2-errors.ts`. */
const P2_FAULTS: readonly SocketFault[] = [
  ...['#cut', '#garbage', '#hang', '#errmid', '#textframe', '#closeearly', '#slow', '#errconcurrency'],
  ...HANDSHAKE_FAULTS,
]

/** What callers ask of the upstream, and it does in the middle of its answer; of the same words. */
export const ANSWER_FAULTS = ['#drop', '#stall', '#garbage', '#fail', '#binary', '#closecode=1013', '#incomplete']

/** Spoils one session in twelve of each, until the returned function is called. */
function spoilSessions(live: SocketSessions, p2: SocketSessions): () => void {
  const stops = [spoil(live, REALTIME_FAULTS), spoil(p2, P2_FAULTS)]
  return () => {
    for (const stop of stops) stop()
  }
}

function spoil(sessions: SocketSessions, faults: readonly SocketFault[]): () => void {
  const turns = new Turns(faults, SPOILT_SESSION_EACH)
  // A handshake in progress already has its fault: this one is for the next.
  const queue = (): void => {
    const fault = turns.next()
    if (fault !== undefined) sessions.queueFault(fault)
  }
  queue()
  sessions.on('handshake', queue)
  return () => {
    sessions.off('handshake', queue).reset()
  }
}

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
const VIDGEN = { accessKey: 'soak-access', secretKey: 'soak-upstream-canary-secret' }

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

/** All but those of realtime sessions, which have a simulator of their own: its connections can be distinguished from idle ones. */
const P1_MODELS = ['gpt-4.1-mini', 'tts-1', 'gpt-4o-mini-tts', 'whisper-1', 'gpt-4o-mini-transcribe']
/** Cut short, so that what falls silent does not pile up. */
const TIMEOUTS = { connectMs: 1000, firstByteMs: 1500, idleMs: 1000, totalMs: 10_000 }
/** Of realtime sessions, likewise; only clients that are to be cut off pause for so long. */
const REALTIME_TIMEOUTS = { realtimeIdleMs: 2000, realtimeStuckMs: 2000 }
/** Beyond the callers there are: of those who have left, some are noticed a moment later. */
const NOT_NOTICED = 40

/** The keys of the callers: most have one with ample limits, some share one that they keep running into. */
export const KEYS = { wide: 'soak-caller-canary', narrow: 'soak-limited-canary' } as const
export type KeyName = keyof typeof KEYS

/**
 * What no caller may run into, however long it goes on, and what many do. The wide one's places would be used up
 * within a minute or two if some of them were not given back.
 */
const limitsOf = (workers: number) => ({
  wide: {
    requestsPerMinute: 1_000_000,
    tokensPerMinute: 1_000_000_000,
    audioSecondsPerMinute: 100_000_000,
    concurrency: workers + NOT_NOTICED,
    realtimeSessions: workers + NOT_NOTICED,
  },
  narrow: {
    requestsPerMinute: 400,
    tokensPerMinute: 20_000,
    audioSecondsPerMinute: 400,
    concurrency: 2,
    realtimeSessions: 1,
  },
})

/** The gateway's configuration with one channel to each upstream. Everything that was used is stored, and has a price. */
export function mixedConfiguration(upstreams: MixedUpstreams, { workers }: Pick<MixedOptions, 'workers'>): object {
  const { p1, live, p2, p3, m1, vidgen, web } = upstreams
  const limits = limitsOf(workers)
  const names = Object.keys(KEYS) as KeyName[]
  return {
    auth: { keys: names.map((name) => ({ id: name, key: KEYS[name], limits: limits[name] })) },
    channels: [
      { id: 'p1', provider: 'p1', baseUrl: p1.url, credentials: UPSTREAM_KEY, models: P1_MODELS },
      { id: 'live', provider: 'p1', baseUrl: live.url, credentials: UPSTREAM_KEY, models: ['gpt-realtime'] },
      { id: 'p2', provider: 'p2', baseUrl: p2.url, credentials: `app|${UPSTREAM_KEY}`, models: ['p2-tts'] },
      { id: 'p3', provider: 'p3', baseUrl: p3.url, credentials: UPSTREAM_KEY },
      { id: 'm1', provider: 'm1', baseUrl: m1.url, credentials: UPSTREAM_KEY },
      { id: 'vidgen', provider: 'vidgen', baseUrl: vidgen.url, credentials: `${VIDGEN.accessKey}|${VIDGEN.secretKey}` },
    ].map((channel) => ({ ...channel, timeouts: TIMEOUTS })),
    timeouts: { ...TIMEOUTS, ...REALTIME_TIMEOUTS, shutdownGraceMs: 10_000 },
    ssrf: { allow: [`127.0.0.1:${web.port}`] },
    tasks: { pollIntervalMs: 500 },
    documents: { cacheBytes: 4 * 1024 * 1024 },
    usage: { store: true },
    prices: [{ models: ['*'], requests: 0.01 }],
  }
}
