import { access, readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { countSockets, type SocketCounts, type SocketPeers } from './socket-counts.js'

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

  /** Until it is told to stop. */
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
