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

interface Resources {
  readonly counts: Readonly<Record<string, number>>
  readonly heapBytes: number
}

const MEBIBYTE = 1_048_576

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

  private async descriptors(): Promise<readonly string[]> {
    const directory = `/proc/${this.pid}/fd`
    const names = await readdir(directory)
    // Some are closed between the two looks.
    const targets = await Promise.all(names.map((name) => readlink(`${directory}/${name}`).catch(() => '')))
    return targets.filter((target) => target !== '')
  }

  /** It may be writing right now: then it is looked at again. */
  private async resources(): Promise<Resources> {
    for (;;) {
      try {
        return JSON.parse(await readFile(this.resourcesFile, 'utf8')) as Resources
      } catch {
        await pause(50)
      }
    }
  }
}
