import cluster from 'node:cluster'
import type { Logger } from '../common/observability/logger.js'
import type { MetricsSnapshot } from '../common/observability/metrics.js'
import { EndedWorkers } from './ended-workers.js'
import { WorkerPlace } from './worker-place.js'

/** The workers of this primary. Each is this very program once more, and told by the primary what to do. */
export class WorkerFleet {
  private readonly places: readonly WorkerPlace[]
  private readonly ended = new EndedWorkers()

  constructor(workers: number, logger: Logger) {
    this.places = Array.from({ length: workers }, (_, index) => {
      const number = index + 1
      return new WorkerPlace({
        number,
        workers,
        fork: () => cluster.fork(),
        onDeath: ({ code, signal, delayMs }) => {
          logger.error({ ofWorker: number, code, signal, delayMs }, 'a worker died and is replaced')
        },
        onReload: () => {
          for (const [at, place] of this.places.entries()) if (at !== index) place.reload()
        },
        onEnd: (snapshot) => {
          this.ended.add(snapshot)
        },
      })
    })
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

  reload(): void {
    for (const place of this.places) place.reload()
  }

  /** Resolves when the last one has ended: whether all did as they should. */
  async drain(signal: string): Promise<boolean> {
    const ends = await Promise.all(this.places.map((place) => place.drain(signal)))
    return ends.every((isGood) => isGood)
  }

  kill(): void {
    for (const place of this.places) place.kill()
  }

  /** Of those that run, and what those that do not had counted. */
  async snapshots(): Promise<readonly MetricsSnapshot[]> {
    const told = await Promise.all(this.places.map((place) => place.snapshot()))
    return [...told.flatMap((snapshot) => (snapshot === undefined ? [] : [snapshot])), await this.ended.snapshot()]
  }
}
