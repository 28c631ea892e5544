import { Injectable } from '@nestjs/common'
import { byLabel, Metrics, type Read, registerCounter, registerGauge } from '../observability/metrics.js'
import { Database } from '../storage/database.js'
import { CallbackSender } from './callback-delivery.js'
import { CallbackRepository } from './callback.repository.js'
import { TaskPoller } from './poller.js'
import { TaskRecorder } from './record-task.js'
import { TaskRepository } from './task.repository.js'

/** What the store is asked to count, at most so often: every replica asks, at every scrape. */
const MINIMUM_INTERVAL_MS = 15_000
/** Older counts are no longer shown: nobody is to take them for news. */
const LIFETIME_MS = 60_000
/** Who asks for the first counts, or for newer ones, waits for them this long. */
const PATIENCE_MS = 500

/**
 * Counts that cost a query, for those who ask often. A store that does not answer holds up nobody for longer than half a
 * second: they get what was counted last, and no second query is begun beside the first.
 */
export class StoreCounts<Counts> {
  private counted: { readonly counts: Counts; readonly atMs: number } | undefined
  private counting: Promise<void> | undefined
  private beganAtMs = Number.NEGATIVE_INFINITY

  constructor(private readonly count: () => Promise<Counts>) {}

  /** The latest counts; undefined when there are none of the last minute. Never rejects. */
  async latest(): Promise<Counts | undefined> {
    const isDue = performance.now() - this.beganAtMs >= MINIMUM_INTERVAL_MS
    if (this.counting === undefined && isDue) this.begin()
    if (this.counting !== undefined) await this.patience(this.counting)
    const { counted } = this
    return counted !== undefined && performance.now() - counted.atMs < LIFETIME_MS ? counted.counts : undefined
  }

  private begin(): void {
    this.beganAtMs = performance.now()
    this.counting = this.count()
      .then(
        (counts) => {
          this.counted = { counts, atMs: performance.now() }
        },
        // A store that is away says so elsewhere.
        () => undefined,
      )
      .finally(() => {
        this.counting = undefined
      })
  }

  private patience(counting: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, PATIENCE_MS)
      void counting.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}

/** Shown at 0 as well: a state without tasks is news. */
const NO_OPEN_TASKS = { creating: 0, unknown: 0, submitted: 0, processing: 0 }

/**
 * How the tasks and callbacks of the store stand, which every replica tells alike, and what this process did with them.
 * Nothing is asked of a store that nobody has opened.
 */
@Injectable()
export class TaskMetrics {
  private isStoreOpen = false

  constructor(
    database: Database,
    private readonly tasks: TaskRepository,
    private readonly callbacks: CallbackRepository,
    metrics: Metrics,
  ) {
    database.whenOpen(() => {
      this.isStoreOpen = true
    })
    this.registerStore(metrics)
  }

  private registerStore(metrics: Metrics): void {
    const tasks = {
      name: 'gateway_tasks',
      help: 'Tasks that have not ended, in the whole store.',
      labelNames: ['state'],
    }
    registerGauge(
      metrics,
      { ...tasks, aggregator: 'max' },
      this.reader('state', async () => ({ ...NO_OPEN_TASKS, ...(await this.tasks.countOpenByState()) })),
    )
    const callbacks = {
      name: 'gateway_callbacks',
      help: 'Callbacks that wait, and those given up.',
      labelNames: ['state'],
    }
    registerGauge(
      metrics,
      { ...callbacks, aggregator: 'max' },
      this.reader('state', () => this.callbacks.countOpen()),
    )
  }

  private reader(label: string, count: () => Promise<Readonly<Record<string, number>>>): Read {
    const counts = new StoreCounts(count)
    return async () => byLabel(label, (this.isStoreOpen ? await counts.latest() : undefined) ?? {})
  }
}

/** What this process did with tasks and callbacks. */
@Injectable()
export class TaskWorkMetrics {
  constructor(recorder: TaskRecorder, sender: CallbackSender, poller: TaskPoller, metrics: Metrics) {
    const ended = {
      name: 'gateway_tasks_ended_total',
      help: 'Tasks whose end was recorded here.',
      labelNames: ['state'],
    }
    registerCounter(metrics, ended, () => byLabel('state', { ...recorder.endedTasks }))
    const attempts = {
      name: 'gateway_callback_attempts_total',
      help: 'Attempts to deliver callbacks; exhausted = the last one has failed.',
      labelNames: ['outcome'],
    }
    registerCounter(metrics, attempts, () => byLabel('outcome', { ...sender.attemptsMade }))
    const work = { name: 'gateway_background_work', help: 'Polls and callbacks under way here.', labelNames: ['kind'] }
    registerGauge(metrics, work, () => byLabel('kind', { polls: poller.heldTasks, callbacks: sender.heldDeliveries }))
  }
}
