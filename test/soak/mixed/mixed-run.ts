import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type GatewayProcess, runGateway, startParts } from '../../support/gateway-process.js'
import { directoryWithStore } from '../../support/stores.js'
import { LogWatch } from '../gateway-fleet.js'
import { Random } from '../soak-records.js'
import { type Ending, ENDINGS } from './http-caller.js'
import { MixedTraffic, TRAFFIC, type Traffic } from './mixed-traffic.js'
import {
  type KeyName,
  KEYS,
  mixedConfiguration,
  type MixedOptions,
  type MixedUpstreams,
  spoilTraffic,
  startUpstreams,
  UPSTREAM_KEY,
} from './mixed-upstreams.js'
import {
  flatnessOf,
  type Holdings,
  leftovers,
  type Pools,
  ProcessSamples,
  type Sample,
  SOCKET_GROUPS,
  type SocketGroup,
  type SocketPeers,
} from './process-samples.js'
import { countRecords, MetricsWatch, type Surroundings, type UsageCounts } from './surroundings.js'

/** A listening gateway with its upstreams, store and clients. */
export interface MixedStage {
  readonly gateway: GatewayProcess
  readonly traffic: MixedTraffic
  readonly upstreams: MixedUpstreams
  readonly process: ProcessSamples
  /** Undefined: no scraper. */
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
    const directory = await directoryWithStore()
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

type Counts = Readonly<Record<Traffic, Readonly<Record<Ending, number>>>>

const LONGEST_PAUSE_MS = 250
const SCRAPE_MS = 5000

/** Number of reloads of the configuration in a run, during the traffic. */
const RELOADS = 20

/** All callers at once for as long as the options say. Resolves when the last call is over. */
async function underLoad({ runMs, sampleMs, workers }: MixedOptions, stage: MixedStage): Promise<Counts> {
  const { gateway, traffic, upstreams, process, metrics, random } = stage
  const counts = emptyCounts()
  const working = AbortSignal.timeout(runMs)
  const stopSpoiling = spoilTraffic(upstreams, random.fork())
  const reloading = setInterval(() => gateway.child.kill('SIGHUP'), runMs / (RELOADS + 1))
  working.addEventListener('abort', () => {
    clearInterval(reloading)
  })
  const kinds = Object.keys(TRAFFIC) as Traffic[]
  const work = Array.from({ length: workers }, async (_, worker) => {
    const own = random.fork()
    // Each caller begins with another kind, so that a short run has all of them.
    for (let kind = kinds[worker % kinds.length]; !working.aborted; kind = own.weighted(TRAFFIC)) {
      if (kind === undefined) throw new Error('there is no traffic')
      counts[kind][await traffic.call(kind, own)] += 1
      await pause(own.between(0, LONGEST_PAUSE_MS))
    }
  })
  await Promise.all([...work, process.run(sampleMs, working), metrics?.run(SCRAPE_MS, working)])
  stopSpoiling()
  return counts
}

const emptyCounts = (): Record<Traffic, Record<Ending, number>> =>
  Object.fromEntries(
    Object.keys(TRAFFIC).map((kind) => [kind, Object.fromEntries(ENDINGS.map((ending) => [ending, 0]))]),
  ) as Record<Traffic, Record<Ending, number>>

/** The state after the last request. */
interface Rest {
  /** A while after the last call. */
  readonly atRest: Sample
  /** The same moment: upstreams are still there. */
  readonly resting: Holdings
  /** What upstreams were still doing by then, connections that serve one call included. */
  readonly leftUpstream: number
  /** The gateway's resources after all callers and then all upstreams were gone: any more of them are a leak. */
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
/** `database.maxConnections`, the default. */
const STORE_CONNECTIONS = 10
/** `tasks.pollsPerChannel`: what goes to the vidgen upstream beside the callers. */
const POLLS = 16

/** Takes the callers away, looks, takes the upstreams away, and looks again. */
async function atRest({ workers }: MixedOptions, before: Holdings, stage: MixedStage): Promise<Rest> {
  const { process, traffic, metrics, upstreams, closeUpstreams } = stage
  await pause(SETTLING_MS)
  const inUse = await placesInUse(traffic)
  const counted = (await metrics?.untilAtRest(PATIENCE_MS)) ?? []
  // The last connections to the gateway.
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

interface MixedOutcome extends Rest {
  readonly counts: Counts
  readonly samples: readonly Sample[]
  /** What the gateway held before the first call. */
  readonly before: Holdings
  /** Violations: in the gateway's log, in its metrics, in responses, or in its resources afterwards. */
  readonly faults: readonly string[]
  /** Undefined: no scrape. */
  readonly metrics: MetricsWatch | undefined
  /** Undefined: there is no PostgreSQL to ask. */
  readonly usage: UsageCounts | undefined
}

/** The pool of the store opens more connections for the start than it keeps, and closes an idle one after ten seconds. */
const STORE_IDLE_MS = 12_000

/** Every kind of traffic at once on one gateway, its upstreams failing now and then, and looks at what it holds. */
export async function runMixed(options: MixedOptions): Promise<MixedOutcome> {
  const stage = await startStage(options)
  try {
    const { gateway, process, metrics, traffic } = stage
    if (options.surroundings?.databaseUrl !== undefined) await pause(STORE_IDLE_MS)
    const before = await process.holdings()
    const counts = await underLoad(options, stage)
    const rest = await atRest(options, before, stage)
    const logged = await logFaults(gateway)
    const usage = await countRecords(options.surroundings?.databaseUrl, metrics)
    const told = [traffic, metrics, usage].flatMap((teller) => teller?.faults ?? [])
    return {
      ...{ counts, samples: process.samples, before, metrics, usage, ...rest },
      faults: [...logged, ...told, ...rest.leftovers],
    }
  } finally {
    await stage.close()
  }
}

/** Has it end as its operator would. */
async function logFaults(gateway: GatewayProcess): Promise<readonly string[]> {
  gateway.child.kill('SIGTERM')
  const keys = Object.entries(KEYS).map(([name, key]) => [`the ${name} key of callers`, key] as const)
  const watch = new LogWatch(new Map([...keys, ['the key of an upstream', UPSTREAM_KEY] as const]))
  watch.read(await gateway.exited, 'SIGTERM')
  return watch.faults
}

const WORDS = {
  residentMiB: 'resident memory, MiB',
  heapMiB: 'heap in use, MiB',
  sockets: 'open sockets',
  files: 'open files, sockets included',
  timers: 'timers',
  resources: 'whatever keeps the process busy',
} as const

const SOCKET_WORDS = {
  listening: 'sockets that listen',
  callers: 'to callers',
  scrapes: 'to the scraper',
  upstreams: 'to upstreams',
  store: 'to the store',
  redis: 'to Redis',
  collector: 'to the collector of traces',
  others: 'to other peers',
  own: 'to its own processes and streams',
  unknown: 'without a peer',
} as const

const shown = (value: number): string => value.toFixed(Math.abs(value) < 100 && !Number.isInteger(value) ? 1 : 0)
const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`
const table = (heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [row(heads), row(heads.map((_, at) => (at === 0 ? '---' : '---:'))), ...rows.map(row)].join('\n')

/** A run as Markdown. */
export function describeMixed(options: MixedOptions, outcome: MixedOutcome): string {
  const { runMs, sampleMs, workers, seed, surroundings } = options
  const { samples, leftUpstream, faults } = outcome
  const minutes = shown(runMs / 60_000)
  return [
    `${minutes} minutes, ${workers} callers at once, seed ${seed}; a look each ${sampleMs / 1000} s, ${samples.length} of them.`,
    `${surroundings?.description ?? 'Records and tasks in the embedded store; limits counted in the memory of the process'}.`,
    '',
    callsTable(outcome),
    '',
    figuresTable(outcome),
    '',
    holdingsTable(outcome),
    '',
    ...(outcome.metrics === undefined ? [] : [...metricsLines(outcome.metrics), '']),
    ...(outcome.usage === undefined ? [] : [usageLine(outcome.usage)]),
    `Left upstream at rest: ${leftUpstream} requests. Faults: ${faults.length}.`,
    ...faults.map((fault) => `- ${fault}`),
  ].join('\n')
}

const callsTable = ({ counts }: MixedOutcome): string =>
  table(
    ['What callers did', ...ENDINGS],
    Object.entries(counts).map(([kind, endings]) => [kind, ...ENDINGS.map((ending) => endings[ending])]),
  )

const figuresTable = ({ samples, atRest }: MixedOutcome): string =>
  table(
    ['What the gateway held', 'after warming up', 'middle', 'most', 'last', 'at rest', 'growth', 'allowed', ''],
    flatnessOf(samples).map(({ figure, first, median, most, last, growth, bound, isFlat }) => [
      WORDS[figure],
      ...[first, median, most, last, atRest[figure], growth, bound].map(shown),
      isFlat ? 'flat' : 'GROWS',
    ]),
  )

const holdingsTable = ({ before, resting, after }: MixedOutcome): string => {
  const cells = (of: (holdings: Holdings) => number): number[] => [before, resting, after].map(of)
  return table(
    ['What it held for later', 'before the first call', 'at rest', 'and without upstreams'],
    [
      ...SOCKET_GROUPS.map((group) => [SOCKET_WORDS[group], ...cells(({ sockets }) => sockets[group])]),
      ['timers', ...cells(({ timers }) => timers)],
    ],
  )
}

function metricsLines(metrics: MetricsWatch): readonly string[] {
  const told = (name: string, label: string): string => {
    const values = metrics.valuesOf(name, label).map(([word, value]) => `${word} ${value}`)
    return values.length === 0 ? 'none' : values.join(', ')
  }
  return [
    `Scrapes: ${metrics.scrapes}; Redis was away at ${metrics.redisAway} of them.`,
    `Reloads: ${told('gateway_config_reloads_total', 'outcome')}.`,
    `Refused by limits: ${told('gateway_limit_refusals_total', 'limit')}.`,
    `Spans of traces: ${told('gateway_trace_spans_total', 'outcome')}.`,
  ]
}

const usageLine = ({ counted, stored, endedTasks, storedTasks }: UsageCounts): string =>
  `Records of use: of calls and answers ${counted}, stored ${stored}; of ended tasks ${endedTasks}, stored ${storedTasks}.`
