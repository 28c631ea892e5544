import { readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** What a process held at one moment. */
export interface Sample {
  /** Since the first look. */
  readonly atMs: number
  readonly residentMiB: number
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
  /** Timers that keep the event loop alive. */
  readonly timers: number
}

interface Resources {
  readonly writtenAtMs: number
  readonly counts: Readonly<Record<string, number>>
  readonly heapBytes: number
}

const MEBIBYTE = 1_048_576
/** The column of a table of sockets that holds what a descriptor is named by. */
const INODE = 9

/** Looks at a process now and then, on Linux. `resourcesFile`: where it writes down its own resources. */
export class ProcessSamples {
  readonly samples: Sample[] = []
  private readonly startedAtMs = performance.now()

  constructor(
    private readonly pid: number,
    private readonly resourcesFile: string,
  ) {}

  /** Until it is told to stop. */
  async run(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.samples.push(await this.look())
      await pause(everyMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async look(): Promise<Sample> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8')
    const targets = await this.descriptors()
    const { counts, heapBytes } = await this.resources()
    return {
      atMs: performance.now() - this.startedAtMs,
      residentMiB: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024,
      heapMiB: heapBytes / MEBIBYTE,
      sockets: targets.filter((target) => target.startsWith('socket:')).length,
      files: targets.length,
      timers: counts['Timeout'] ?? 0,
      resources: Object.values(counts).reduce((sum, count) => sum + count, 0),
    }
  }

  /** As of now, which takes up to a second to learn. */
  async holdings(): Promise<Holdings> {
    const { counts } = await this.resources(Date.now())
    const tables = await Promise.all(['tcp', 'tcp6'].map((name) => readFile(`/proc/${this.pid}/net/${name}`, 'utf8')))
    const inodes = new Set(tables.flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)[INODE])))
    const targets = await this.descriptors()
    const isConnection = (target: string): boolean => inodes.has(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? 'none')
    return { connections: targets.filter(isConnection).length, timers: counts['Timeout'] ?? 0 }
  }

  private async descriptors(): Promise<readonly string[]> {
    const directory = `/proc/${this.pid}/fd`
    const names = await readdir(directory)
    // Some are closed between the two looks.
    const targets = await Promise.all(names.map((name) => readlink(`${directory}/${name}`).catch(() => '')))
    return targets.filter((target) => target !== '')
  }

  /** Written at this time or later. It may be writing right now: then it is looked at again. */
  private async resources(sinceMs = 0): Promise<Resources> {
    for (;;) {
      const text = await readFile(this.resourcesFile, 'utf8').catch(() => '')
      const resources = parsed(text)
      if (resources !== undefined && resources.writtenAtMs >= sinceMs) return resources
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
