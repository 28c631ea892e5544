import { access, readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** Whom a socket of the gateway is for. */
export const SOCKET_GROUPS = [
  /** Its ports. */
  'listening',
  'callers',
  'scrapes',
  'upstreams',
  'store',
  'redis',
  'collector',
  /** To addresses that do not exist here. */
  'others',
  /** Local ones: of its standard streams, and to processes that it has started. */
  'own',
  /** In no table of the system: made, and not connected, or not closed after its connection was gone. */
  'unknown',
] as const
export type SocketGroup = (typeof SOCKET_GROUPS)[number]
export type SocketCounts = Readonly<Record<SocketGroup, number>>

/** By port: what the gateway listens at, and what it connects to. */
export interface SocketPeers {
  readonly local: ReadonlyMap<number, SocketGroup>
  readonly remote: ReadonlyMap<number, SocketGroup>
}

/** As `/proc/<pid>/net` has them; `tcp` with the lines of both families. */
export interface SocketTables {
  readonly tcp: string
  readonly unix: string
}

const TCP = { local: 1, remote: 2, state: 3, inode: 9 } as const
const UNIX_INODE = 6
const LISTENS = '0A'

/** Sorts what a process has open, named as `/proc/<pid>/fd` does: `socket:[<inode>]`, anything else is left out. */
export function countSockets(targets: readonly string[], tables: SocketTables, peers: SocketPeers): SocketCounts {
  const groups = new Map<string, SocketGroup>()
  for (const columns of rowsOf(tables.unix)) groups.set(columns[UNIX_INODE] ?? '', 'own')
  for (const columns of rowsOf(tables.tcp)) groups.set(columns[TCP.inode] ?? '', groupOf(columns, peers))
  const counts = Object.fromEntries(SOCKET_GROUPS.map((group) => [group, 0])) as Record<SocketGroup, number>
  for (const target of targets) {
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
    if (inode !== undefined) counts[groups.get(inode) ?? 'unknown'] += 1
  }
  return counts
}

const rowsOf = (table: string): string[][] => table.split('\n').map((line) => line.trim().split(/\s+/))

function groupOf(columns: readonly string[], { local, remote }: SocketPeers): SocketGroup {
  if (columns[TCP.state] === LISTENS) return 'listening'
  return local.get(portOf(columns[TCP.local])) ?? remote.get(portOf(columns[TCP.remote])) ?? 'others'
}

/** Of `0100007F:1F90`. */
const portOf = (address = ''): number => Number.parseInt(address.split(':')[1] ?? '', 16)

/** What a process held at one moment. */
export interface Sample {
  /** Since the first look. */
  readonly atMs: number
  /** When its garbage was collected last, at most ten seconds before. */
  readonly residentMiB: number
  /** At the same moment, buffers included. */
  readonly heapMiB: number
  readonly sockets: number
  readonly files: number
  /** Timers that keep the event loop alive. */
  readonly timers: number
  /** Everything that keeps it alive, timers included. */
  readonly resources: number
}

/** What a process holds for others. */
export interface Holdings {
  /** TCP sockets, those that listen included. */
  readonly connections: number
  /** All its sockets, by whom they are for. */
  readonly sockets: SocketCounts
  /** Timers that keep the event loop alive. */
  readonly timers: number
}

interface Resources {
  readonly writtenAtMs: number
  readonly counts: Readonly<Record<string, number>>
  readonly held: { readonly residentBytes: number; readonly heapBytes: number }
}

const MEBIBYTE = 1_048_576
const LOOKS = 5
/** It writes each second; after so long its event loop stands still. */
const PATIENCE_MS = 30_000
const TABLES = ['tcp', 'tcp6', 'unix'] as const

/** Looks at a process now and then, on Linux. `resourcesFile`: where it writes down its own resources. */
export class ProcessSamples {
  readonly samples: Sample[] = []
  private readonly startedAtMs = performance.now()

  constructor(
    private readonly pid: number,
    private readonly resourcesFile: string,
    private readonly peers: SocketPeers,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  /** Until it is stopped. */
  async run(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.samples.push(await this.look())
      await pause(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async look(): Promise<Sample> {
    const targets = await this.descriptors()
    const { counts, held } = await this.resources()
    return {
      atMs: performance.now() - this.startedAtMs,
      residentMiB: held.residentBytes / MEBIBYTE,
      heapMiB: held.heapBytes / MEBIBYTE,
      sockets: targets.filter((target) => target.startsWith('socket:')).length,
      files: targets.length,
      timers: counts['Timeout'] ?? 0,
      resources: Object.values(counts).reduce((sum, count) => sum + count, 0),
    }
  }

  /** As of now, which takes up to a second to learn. Rejects when the process is gone, or stands still. */
  async holdings(): Promise<Holdings> {
    const { counts } = await this.resources(Date.now())
    const sockets = await this.sockets()
    const connections = Object.values(sockets).reduce((sum, count) => sum + count, 0) - sockets.own - sockets.unknown
    return { connections, sockets, timers: counts['Timeout'] ?? 0 }
  }

  /** One that comes or goes between two tables seems to be in none: what is, is so in several looks. */
  private async sockets(): Promise<SocketCounts> {
    for (let look = 1; ; look += 1) {
      const [tcp = '', tcp6 = '', unix = ''] = await Promise.all(
        TABLES.map((name) => readFile(`/proc/${this.pid}/net/${name}`, 'utf8').catch(() => '')),
      )
      const counts = countSockets(await this.descriptors(), { tcp: `${tcp}\n${tcp6}`, unix }, this.peers)
      if (counts.unknown === 0 || look === LOOKS) return counts
      await pause(50)
    }
  }

  private async descriptors(): Promise<readonly string[]> {
    const directory = `/proc/${this.pid}/fd`
    const names = await readdir(directory)
    // Some are closed between the two looks.
    const targets = await Promise.all(names.map((name) => readlink(`${directory}/${name}`).catch(() => '')))
    return targets.filter((target) => target !== '')
  }

  /**
   * Written at this time or later. It may be writing right now: then it is looked at again. Rejects when the process is gone,
   * or writes nothing for too long: it is there, and its event loop stands still.
   */
  private async resources(sinceMs = 0): Promise<Resources> {
    const endsAtMs = performance.now() + this.patienceMs
    for (;;) {
      await access(`/proc/${this.pid}`)
      const text = await readFile(this.resourcesFile, 'utf8').catch(() => '')
      const resources = parsed(text)
      if (resources !== undefined && resources.writtenAtMs >= sinceMs) return resources
      if (performance.now() > endsAtMs) {
        const since = resources === undefined ? 'at all' : `since ${new Date(resources.writtenAtMs).toISOString()}`
        throw new Error(`the process ${this.pid} lives, and has written nothing ${since}`)
      }
      await pause(50)
    }
  }
}

/** Undefined of a text that is not whole. */
function parsed(text: string): Resources | undefined {
  try {
    return JSON.parse(text) as Resources
  } catch {
    return undefined
  }
}

export type Figure = Exclude<keyof Sample, 'atMs'>

/**
 * What a figure may have grown by over the watched time: about three times what noise alone makes of the slope. That is
 * a third of the spread (standard deviation) of the 120 looks that half an hour has, and a little more where looks
 * are alike that follow each other. Healthy: what runs without a leak have shown (docs/soak.md). A share of the figure
 * would allow a larger process a larger leak: there is none.
 */
const BOUNDS: Readonly<Record<Figure, number>> = {
  // Healthy: growth 1.3 and 2.9. By 130,000 calls in 20 minutes the bound is 125 bytes for each.
  residentMiB: 16,
  // Healthy: growth 0.9 and 1.7.
  heapMiB: 10,
  // Healthy: growth 2.6, spread 2 to 4, with the calls under way and the connections that idle behind them for a minute.
  sockets: 5,
  files: 5,
  // Healthy: growth 0 and 5.6, spread 6, with the calls that wait at the moment.
  timers: 6,
  // Requests, sockets and timers together. Healthy: growth 2.5 and 7, spread 8 to 10.
  resources: 10,
}

/** Caches fill and code is compiled before that. */
const WARM_UP_SHARE = 1 / 3

export interface Flatness {
  readonly figure: Figure
  readonly first: number
  readonly median: number
  readonly most: number
  readonly last: number
  /** Over the watched time, by the slope through all of it. */
  readonly growth: number
  readonly bound: number
  readonly isFlat: boolean
}

/** Judges every figure by its slope over the last two thirds of the samples. Needs three samples there at least. */
export function flatnessOf(samples: readonly Sample[]): readonly Flatness[] {
  const watched = samples.slice(Math.floor(samples.length * WARM_UP_SHARE))
  return (Object.keys(BOUNDS) as Figure[]).map((figure) => judged(figure, watched))
}

function judged(figure: Figure, watched: readonly Sample[]): Flatness {
  const values = watched.map((sample) => sample[figure])
  const times = watched.map(({ atMs }) => atMs)
  const middle = median(values)
  const growth = medianSlope(times, values) * ((times.at(-1) ?? 0) - (times[0] ?? 0))
  const bound = BOUNDS[figure]
  return {
    figure,
    first: values[0] ?? NaN,
    median: middle,
    most: Math.max(...values),
    last: values.at(-1) ?? NaN,
    growth,
    bound,
    // Written so that too few samples, which have no slope, are not flat.
    isFlat: growth <= bound,
  }
}

/** Theil and Sen: the middle of the slopes between all pairs, which a burst here and there does not bend. */
function medianSlope(times: readonly number[], values: readonly number[]): number {
  const slopes: number[] = []
  for (let from = 0; from < values.length; from += 1) {
    for (let to = from + 1; to < values.length; to += 1) {
      slopes.push(((values[to] ?? 0) - (values[from] ?? 0)) / ((times[to] ?? 0) - (times[from] ?? 0)))
    }
  }
  return slopes.length < 3 ? NaN : median(slopes)
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? NaN
}

/** What a gateway keeps open for later, so that it need not be there before the first call. */
export interface Pools {
  /** Calls that were under way at once: so many connections to upstreams can be idle. 0 once the upstreams are gone. */
  readonly upstreams: number
  /** Connections to the store at once, as configured. */
  readonly store: number
}

/**
 * To a process that reads documents: its pipe and its standard error. As many as `documents.processes` says stay ready once
 * a document has come.
 */
const OWN = 2 * 2

/** How many more of a group there may be than before the first call. Whatever is not named: none. */
const mostBeyond = ({ upstreams, store }: Pools): Partial<Record<SocketGroup, number>> => ({
  upstreams,
  store,
  own: OWN,
})

/** Resources of an idle gateway beyond those before the first request, in words. */
export function leftovers(before: Holdings, now: Holdings, pools: Pools): readonly string[] {
  const { store } = pools
  const allowed = mostBeyond(pools)
  const sockets = SOCKET_GROUPS.flatMap((group) => {
    const most = before.sockets[group] + (allowed[group] ?? 0)
    return now.sockets[group] <= most ? [] : [`${now.sockets[group]} sockets (${group}), at most ${most} explained`]
  })
  // Each idle connection of the store's pool has one, for its end; those beyond the pool are reported above.
  const mostTimers = before.timers + Math.min(store, Math.max(0, now.sockets.store - before.sockets.store))
  const timers = now.timers <= mostTimers ? [] : [`${now.timers} timers, at most ${mostTimers} explained`]
  return [...sockets, ...timers]
}
