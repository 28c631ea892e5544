import { Injectable } from '@nestjs/common'
import { byLabel, Metrics, type Read, registerCounter, registerGauge } from '../observability/metrics.js'
import { Database } from '../storage/database.js'
import { CallbackSender } from './callback-sender.js'
import { TaskPoller } from './poller.js'
import { CallbackRepository } from './callback.repository.js'
import { TaskRecorder } from './task-updates.js'
import { TaskRepository } from './task.repository.js'

/** Shortest interval between two counts of the store: every replica counts, at every scrape. */
const MINIMUM_INTERVAL_MS = 15_000
/** Older counts are not shown, as they are stale. */
const LIFETIME_MS = 60_000
/** How long a scrape waits for new counts. */
const WAIT_MS = 500

/**
 * Counts that cost a query, cached for frequent readers. A store that hangs delays a scrape by half a second at most:
 * it gets the last counts, and no second query is started meanwhile.
 */
export class StoreCounts<Counts> {
  private latestCounts: { readonly counts: Counts; readonly atMs: number } | undefined
  private counting: Promise<void> | undefined
  private beganAtMs = Number.NEGATIVE_INFINITY

  constructor(private readonly count: () => Promise<Counts>) {}

  /** The latest counts; undefined when they are older than a minute. Never rejects. */
  async latest(): Promise<Counts | undefined> {
    const isDue = performance.now() - this.beganAtMs >= MINIMUM_INTERVAL_MS
    if (this.counting === undefined && isDue) this.begin()
    if (this.counting !== undefined) await this.waitFor(this.counting)
    const { latestCounts } = this
    return latestCounts !== undefined && performance.now() - latestCounts.atMs < LIFETIME_MS
      ? latestCounts.counts
      : undefined
  }

  private begin(): void {
    this.beganAtMs = performance.now()
    this.counting = this.count()
      .then(
        (counts) => {
          this.latestCounts = { counts, atMs: performance.now() }
        },
        // An outage of the store is logged elsewhere.
        () => undefined,
      )
      .finally(() => {
        this.counting = undefined
      })
  }

  private waitFor(counting: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, WAIT_MS)
      void counting.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}

/** Shown at 0 too: a state without tasks is a value. */
const NO_OPEN_TASKS = { creating: 0, unknown: 0, submitted: 0, processing: 0 }

/**
 * Metrics of the store's tasks and callbacks, the same in every replica, and of this process' work on them. A store
 * that is not open is not queried.
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

/** Counters of this process' work on tasks and callbacks. */
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
