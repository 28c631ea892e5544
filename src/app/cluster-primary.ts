import cluster from 'node:cluster'
import type { ConfigStore } from '../config/config-store.js'
import type { LineSink, Logger } from '../observability/logger.js'
import type { MetricsSnapshot } from '../observability/metrics.js'
import { WorkerPlace } from './cluster-child.js'
import { EndedWorkers } from './ended-workers.js'
import { WorkerLines } from './worker-lines.js'
import type { ReloadVerdict } from './worker-messages.js'

export interface FleetOptions {
  readonly workers: number
  /** The primary's: it alone reads the configuration and judges it. */
  readonly store: ConfigStore
  readonly logger: Logger
  /** Where the lines of all go. */
  readonly sink: LineSink
}

/** The workers of this primary. Each is this very program once more, and told by the primary what to do. */
export class WorkerFleet {
  private readonly places: readonly WorkerPlace[]
  private readonly ended = new EndedWorkers()
  private readonly lines: WorkerLines
  private collecting: Promise<readonly MetricsSnapshot[]> | undefined

  constructor(private readonly options: FleetOptions) {
    this.lines = new WorkerLines(options.sink)
    // Structured clones: a configuration may hold numbers that JSON does not know.
    cluster.setupPrimary({ stdio: ['ignore', 'pipe', 'inherit', 'ipc'], serialization: 'advanced' })
    this.places = Array.from({ length: options.workers }, (_, index) => this.place(index + 1))
  }

  /**
   * Resolves with the address once all of them listen; with undefined when the first could not start, which it has
   * explained. It goes ahead: what keeps it from starting would keep all of them, and the store is made ready once.
   */
  async start(): Promise<string | undefined> {
    const [first, ...others] = this.places
    const address = await first?.fill()
    if (address === undefined) return undefined
    await Promise.all(others.map((place) => place.fill()))
    return address
  }

  /** Reads the configuration once for all. All are told; of a refusal only the one that had asked for it, if one had. */
  async reload(asker?: WorkerPlace): Promise<void> {
    const { store } = this.options
    const outcome = await store.reload()
    const verdict: ReloadVerdict = outcome.applied
      ? { config: store.current, needsRestart: outcome.needsRestart }
      : { faults: outcome.faults }
    for (const place of this.places) {
      if (place === asker) place.answer(verdict)
      else if (outcome.applied || asker === undefined) place.reload(verdict)
    }
  }

  /** Resolves when the last one has ended: whether all did as they should. After `deadlineMs` those left are ended. */
  async drain(signal: string, deadlineMs: number): Promise<boolean> {
    const ends = await Promise.all(this.places.map((place) => place.drain(signal, deadlineMs)))
    await this.lines.ended()
    return ends.every((isGood) => isGood)
  }

  /** Ends all now, whatever they do, but with the time to keep what is not stored. Resolves when the last one has ended. */
  async end(): Promise<void> {
    await Promise.all(this.places.map((place) => place.end()))
    await this.lines.ended()
  }

  /** Of those that run, and what those that do not had counted. Those who ask at the same time get the same. */
  snapshots(): Promise<readonly MetricsSnapshot[]> {
    this.collecting ??= this.collect().finally(() => {
      this.collecting = undefined
    })
    return this.collecting
  }

  private async collect(): Promise<readonly MetricsSnapshot[]> {
    await Promise.all(this.places.map((place) => place.ask()))
    // In one go: whoever ends is among these or those, never among both.
    return [...this.places.map(({ known }) => known), await this.ended.snapshot()]
  }

  private place(worker: number): WorkerPlace {
    const { store, logger } = this.options
    const place = new WorkerPlace({
      fork: () => {
        const forked = cluster.fork()
        if (forked.process.stdout !== null) this.lines.follow(forked.process.stdout, worker)
        return forked
      },
      start: () => ({ config: store.current }),
      onDeath: ({ code, signal, delayMs }) => {
        logger.error({ ofWorker: worker, code, signal, delayMs }, 'a worker died and is replaced')
      },
      onOverdue: (afterMs) => {
        logger.error({ ofWorker: worker, afterMs }, 'a worker did not end in time and is killed')
      },
      onReloadAsked: () => void this.reload(place),
      onEnd: (snapshot) => {
        this.ended.add(snapshot)
      },
    })
    return place
  }
}
