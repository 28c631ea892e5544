import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { GatewayError } from '../core/errors.js'
import { RequestContext } from '../core/request-context.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { HourlySweep } from '../storage/retention.js'
import { TaskCreation } from './create-task.js'
import { KeyedQueue } from './keyed-queue.js'
import { TaskRefresher } from './refresh-task.js'
import { videoTaskPath } from './task.endpoints.js'
import { isTerminal, type Task } from './task.js'
import { type Reschedule, TaskRepository } from './task.repository.js'
import type { PollResult } from './transitions.js'
import { Clock, PollWakeTimer } from './wake-timer.js'

/** How long a poll without news waits for company before it is written. */
const DELAY_MS = 100
const MAXIMUM_ROWS = 500

/** Gathers polls without news into few writes. What cannot be written is polled again when its lease runs out. */
class RescheduleBatch {
  private rows: Reschedule[] = []
  private timer: NodeJS.Timeout | undefined
  private writing: Promise<void> = Promise.resolve()

  /** `write` must not reject. */
  constructor(private readonly write: (rows: readonly Reschedule[]) => Promise<void>) {}

  add(row: Reschedule): void {
    this.rows.push(row)
    if (this.rows.length >= MAXIMUM_ROWS) void this.flush()
    else this.timer ??= setTimeout(() => void this.flush(), DELAY_MS)
  }

  /** Resolves once everything added so far is written. */
  flush(): Promise<void> {
    clearTimeout(this.timer)
    this.timer = undefined
    const rows = this.rows.splice(0)
    if (rows.length > 0) this.writing = this.writing.then(() => this.write(rows))
    return this.writing
  }
}

/** Polls single tasks and sees to it that what comes of them is written. */
class PollWork {
  private readonly calls = new Set<RequestContext>()

  /** `onFreed` is called when a task that goes on has been given back: it may be due at once, its upstream having called. */
  constructor(
    private readonly refresh: TaskRefresher,
    private readonly batch: RescheduleBatch,
    private readonly onFreed: () => void,
  ) {}

  /** One poll of a task that is leased to this process. Never rejects: one bad task must not stop the others. */
  async poll(task: Task): Promise<void> {
    const call = new RequestContext(`task-${task.id}`, 'POLL', videoTaskPath(task.kind), performance.now())
    call.caller = { keyId: 'gateway' }
    this.calls.add(call)
    try {
      const observation = await this.refresh.poll(task, call)
      if (call.disconnect.aborted) this.release(task)
      else await this.settle(task, observation, call)
    } finally {
      this.calls.delete(call)
    }
  }

  /** Gives the lease back; nothing was learnt. */
  release({ id, nextPollAtMs, polls, misses }: Task): void {
    this.batch.add({ id, nextPollAtMs, polls, misses })
  }

  /** Ends the polls under way at once. */
  cut(): void {
    for (const { disconnect: departure } of this.calls) departure.abort()
  }

  private async settle(task: Task, observation: PollResult, call: RequestContext): Promise<void> {
    try {
      await this.write(task, observation, call)
    } catch (error) {
      // Without a store there is nothing to be done: the lease runs out.
      if (error instanceof GatewayError && error.kind === 'overloaded') return
      await this.write(task, this.refresh.failed(task, error, call), call).catch(() => undefined)
    }
  }

  private async write(task: Task, observation: PollResult, call: RequestContext): Promise<void> {
    const refreshed = await this.refresh.settle(task, observation, call)
    if (refreshed.reschedule !== undefined) this.batch.add(refreshed.reschedule)
    else if (refreshed.task === undefined || !isTerminal(refreshed.task.state)) this.onFreed()
  }
}

/** Longer than two polls that take all the time they may: one may have to wait for the other. */
const LEASE_MS = 60_000

/** Between two claims, unless the first left something behind: each of them is a write. */
const SHORTEST_REST_MS = 50
/** Something is due but nobody may claim it yet: another replica has it, or its channel is busy. */
const BUSY_REST_MS = 1000

/** Asks for tasks in the background, as long as the process runs; N replicas share the work by leases in the store. */
@Injectable()
export class TaskPoller {
  /** One for each channel. */
  private readonly channelQueue: KeyedQueue<Task>
  private readonly batch: RescheduleBatch
  private readonly polls: PollWork
  private working: Promise<void> | undefined
  private isStopping = false
  private isStoreLost = false
  /** Something may be due that was not claimed because there was no room for it. */
  private hasLeftBehind = false

  constructor(
    private readonly tasks: TaskRepository,
    refresh: TaskRefresher,
    private readonly wakeTimer: PollWakeTimer,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    const ring = (): void => {
      wakeTimer.scheduleAt(clock.nowMs())
    }
    this.batch = new RescheduleBatch((rows) => this.withStore(() => tasks.reschedule(rows), undefined).then(ring))
    this.polls = new PollWork(refresh, this.batch, ring)
    this.channelQueue = new KeyedQueue({
      keyOf: ({ channelId }) => channelId,
      concurrency: () => this.perChannel,
      // Claimed for again only once there is room for a good many: each claim is a write.
      isBusy: (running, waiting) => waiting > 0 || running * 2 > this.perChannel,
      work: (task) => this.polls.poll(task),
      onEnd: (hasMadeRoom) => {
        if (hasMadeRoom && this.hasLeftBehind) wakeTimer.wake()
      },
    })
  }

  /** Being polled, or waiting for it, in this process. */
  get heldTasks(): number {
    return this.channelQueue.size
  }

  start(): void {
    this.working ??= this.work()
  }

  /** Ends within milliseconds: polls under way are cut, and what was claimed is free for other replicas. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.wakeTimer.switchOff()
    for (const task of this.channelQueue.takeWaiting()) this.polls.release(task)
    this.polls.cut()
    await this.working
    await this.channelQueue.idle()
    await this.batch.flush()
  }

  private get perChannel(): number {
    return this.store.current.tasks.pollsPerChannel
  }

  private async work(): Promise<void> {
    while (!this.isStopping) {
      const claimed = await this.withStore(() => this.claim(), [])
      for (const task of claimed) this.admit(task)
      // Polls share the event loop with requests: thousands that are due at once must not crowd these out.
      const paceMs = (claimed.length * 1000) / this.store.current.tasks.pollsPerSecond
      if (claimed.length >= this.perChannel) await this.wakeTimer.cancel(paceMs, paceMs, paceMs)
      else await this.wakeTimer.cancel(await this.restMs(claimed.length > 0), SHORTEST_REST_MS, paceMs)
    }
  }

  private claim(): Promise<readonly Task[]> {
    const nowMs = this.clock.nowMs()
    const exceptChannels = this.channelQueue.busy()
    this.hasLeftBehind = exceptChannels.length > 0
    // All may be of one channel, and must begin within their lease.
    const limit = this.perChannel
    return this.tasks.claimDue({ nowMs, lockedUntilMs: nowMs + LEASE_MS, limit, exceptChannels })
  }

  private admit(task: Task): void {
    if (this.isStopping) this.polls.release(task)
    else this.channelQueue.add(task)
  }

  /** Until the next poll is due. */
  private async restMs(hasClaimed: boolean): Promise<number> {
    const { pollIntervalMs } = this.store.current.tasks
    const dueAtMs = await this.withStore(() => this.tasks.nextDueAtMs(), undefined)
    const waitMs = dueAtMs === undefined ? pollIntervalMs : dueAtMs - this.clock.nowMs()
    if (waitMs > 0) return Math.min(waitMs, pollIntervalMs)
    return hasClaimed ? 0 : Math.min(BUSY_REST_MS, pollIntervalMs)
  }

  /** One line for the whole time that the store is away. */
  private async withStore<Result>(work: () => Promise<Result>, otherwise: Result): Promise<Result> {
    try {
      const result = await work()
      this.isStoreLost = false
      return result
    } catch (error) {
      if (!this.isStoreLost) this.logger.warn({ err: error }, 'tasks wait for the store')
      this.isStoreLost = true
      return otherwise
    }
  }
}

const BATCH_ROWS = 500

/** Forgets ended tasks when their media is gone, and idempotency keys when they have expired. */
@Injectable()
export class TaskRetention {
  private readonly sweep: HourlySweep

  constructor(tasks: TaskRepository, store: ConfigStore, clock: Clock, @Inject(LOGGER) logger: Logger) {
    const prune = (limit: number): Promise<number> => {
      const nowMs = clock.nowMs()
      return tasks.prune(nowMs - store.current.tasks.retentionMs, nowMs, limit)
    }
    this.sweep = new HourlySweep({ prune, batchRows: BATCH_ROWS, failure: 'old tasks could not be deleted' }, logger)
  }

  start(): void {
    this.sweep.start()
  }

  async stop(): Promise<void> {
    await this.sweep.stop()
  }
}

/** Background work begins once the store is open, and ends before it closes. */
@Injectable()
export class TaskLoops implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  private stopping: Promise<unknown> | undefined

  constructor(
    private readonly database: Database,
    private readonly poller: TaskPoller,
    private readonly retention: TaskRetention,
    private readonly creation: TaskCreation,
  ) {}

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.poller.start()
      this.retention.start()
    })
  }

  /** Begins here, beside all other work that has to end: a store that hangs is waited for once, not by one after the other. */
  onModuleDestroy(): void {
    // Creates whose callers were cut off have still to write down that their outcome is unknown.
    this.stopping ??= Promise.all([this.poller.stop(), this.retention.stop(), this.creation.settled()])
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.stopping
  }
}
