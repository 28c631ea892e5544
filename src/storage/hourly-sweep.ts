import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Logger } from '../observability/logger.js'

const SWEEP_EVERY_MS = 3_600_000

export interface Sweep {
  /** Deletes at most so many old rows, or so many of each kind; resolves with how many there were. */
  readonly prune: (limit: number) => Promise<number>
  /** Few enough that nobody waits for the rows between two batches. */
  readonly batchRows: number
  /** What the log says when it fails. */
  readonly failure: string
}

/** Deletes old rows at once and then every hour, batch by batch until none is left. */
export class HourlySweep {
  private timer: NodeJS.Timeout | undefined
  private sweeping: Promise<void> = Promise.resolve()
  private isStopping = false

  constructor(
    private readonly what: Sweep,
    private readonly logger: Logger,
  ) {}

  start(): void {
    if (this.isStopping || this.timer !== undefined) return
    const sweep = (): void => {
      this.sweeping = this.sweep()
    }
    this.timer = setInterval(sweep, SWEEP_EVERY_MS).unref()
    sweep()
  }

  /** Resolves when the batch under way is deleted; no other is begun. */
  async stop(): Promise<void> {
    this.isStopping = true
    clearInterval(this.timer)
    await this.sweeping
  }

  /** Never rejects: what is left is deleted an hour later. */
  private async sweep(): Promise<void> {
    const { prune, batchRows, failure } = this.what
    try {
      while (!this.isStopping && (await prune(batchRows)) >= batchRows) await nextTurn()
    } catch (error) {
      this.logger.warn({ err: error }, failure)
    }
  }
}
