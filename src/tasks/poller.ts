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
import { createLeaseMs, TaskCreation } from './create-task.js'
import { TaskRefresher } from './task-updates.js'
import { videoTaskPath } from './task.endpoints.js'
import { isTerminal, type Task } from './task.js'
import { type Reschedule, TaskRepository } from './task.repository.js'
import { longestPollDelayMs, type PollResult } from './transitions.js'
import { Clock, CLOCK_TOLERANCE_MS, ClockWatch, KeyedQueue, PollWakeTimer } from './background-work.js'

/** Delay in which polls without changes are gathered into one write. */
const DELAY_MS = 100
const MAXIMUM_ROWS = 500

/** Gathers polls without changes into few writes. A task whose write fails is polled again when its lease runs out. */
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

/** Polls single tasks and writes the results. */
class LeasedPolls {
  private readonly calls = new Set<RequestContext>()

  /** `onFreed` is called when the lease of an unfinished task was freed: it may be due at once after an upstream callback. */
  constructor(
    private readonly refresh: TaskRefresher,
    private readonly batch: RescheduleBatch,
    private readonly onFreed: () => void,
  ) {}

  /** Polls a task that is leased to this process. Never rejects: one bad task must not stop the others. */
  async poll(task: Task): Promise<void> {
    const call = new RequestContext(`task-${task.id}`, 'POLL', videoTaskPath(task.kind), performance.now())
    call.caller = { keyId: 'gateway' }
    this.calls.add(call)
    try {
      const result = await this.refresh.poll(task, call)
      if (call.disconnect.aborted) this.release(task)
      else await this.settle(task, result, call)
    } finally {
      this.calls.delete(call)
    }
  }

  /** Frees the lease without a result. */
  release({ id, nextPollAtMs, polls, misses }: Task): void {
    this.batch.add({ id, nextPollAtMs, polls, misses })
  }

  abort(): void {
    for (const { disconnect } of this.calls) disconnect.abort()
  }

  private async settle(task: Task, result: PollResult, call: RequestContext): Promise<void> {
    try {
      await this.write(task, result, call)
    } catch (error) {
      // The store is away: the lease runs out.
      if (error instanceof GatewayError && error.kind === 'overloaded') return
      await this.write(task, this.refresh.failed(task, error, call), call).catch(() => undefined)
    }
  }

  private async write(task: Task, result: PollResult, call: RequestContext): Promise<void> {
    const refreshed = await this.refresh.settle(task, result, call)
    if (refreshed.reschedule !== undefined) this.batch.add(refreshed.reschedule)
    else if (refreshed.task === undefined || !isTerminal(refreshed.task.state)) this.onFreed()
  }
}

/** Longer than two polls at their timeout: one may have to wait for the other. */
const LEASE_MS = 60_000

/** Pause between two claims, unless the first left due tasks behind: each claim is a write. */
const SHORTEST_PAUSE_MS = 50
/** Pause when something is due but not available: leased to another replica, or its channel is busy. */
const BUSY_PAUSE_MS = 1000

/** Claims and polls due tasks in the background; replicas share the work by leases in the store. */
@Injectable()
export class TaskPoller {
  private readonly channelQueue: KeyedQueue<Task>
  private readonly batch: RescheduleBatch
  private readonly polls: LeasedPolls
  private readonly clockWatch: ClockWatch
  private working: Promise<void> | undefined
  private isStopping = false
  private isStoreLost = false
  /** Tasks may be due that were not claimed because their channels were busy. */
  private hasUnclaimed = false

  constructor(
    private readonly tasks: TaskRepository,
    refresh: TaskRefresher,
    private readonly wakeTimer: PollWakeTimer,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    const schedulePoll = (): void => {
      wakeTimer.scheduleAt(clock.nowMs())
    }
    this.clockWatch = new ClockWatch(clock)
    this.batch = new RescheduleBatch((rows) =>
      this.withStore(() => tasks.reschedule(rows), undefined).then(schedulePoll),
    )
    this.polls = new LeasedPolls(refresh, this.batch, schedulePoll)
    this.channelQueue = new KeyedQueue({
      keyOf: ({ channelId }) => channelId,
      concurrency: () => this.perChannel,
      // Claims again only when half of the slots are free: each claim is a write.
      isBusy: (running, waiting) => waiting > 0 || running * 2 > this.perChannel,
      run: (task) => this.polls.poll(task),
      onEnd: (hasMadeRoom) => {
        if (hasMadeRoom && this.hasUnclaimed) wakeTimer.wake()
      },
    })
  }

  /** Tasks being polled, or waiting for it, in this process. */
  get heldTasks(): number {
    return this.channelQueue.size
  }

  start(): void {
    this.working ??= this.run()
  }

  /** Ends within milliseconds: polls under way are aborted, and claimed tasks are free for other replicas. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.wakeTimer.switchOff()
    for (const task of this.channelQueue.takeWaiting()) this.polls.release(task)
    this.polls.abort()
    await this.working
    await this.channelQueue.idle()
    await this.batch.flush()
  }

  private get perChannel(): number {
    return this.store.current.tasks.pollsPerChannel
  }

  private async run(): Promise<void> {
    while (!this.isStopping) {
      if (this.clockWatch.look() !== undefined) await this.withStore(() => this.bringForward(), undefined)
      const claimed = await this.withStore(() => this.claim(), [])
      for (const task of claimed) this.admit(task)
      // Polls share the event loop with requests: thousands that are due at once must not delay these.
      const paceMs = (claimed.length * 1000) / this.store.current.tasks.pollsPerSecond
      if (claimed.length >= this.perChannel) await this.wakeTimer.sleep(paceMs, paceMs, paceMs)
      else await this.wakeTimer.sleep(await this.pauseMs(claimed.length > 0), SHORTEST_PAUSE_MS, paceMs)
    }
  }

  private claim(): Promise<readonly Task[]> {
    const nowMs = this.clock.nowMs()
    const exceptChannels = this.channelQueue.busy()
    this.hasUnclaimed = exceptChannels.length > 0
    // All claimed tasks may be of one channel, and must begin within their lease.
    const limit = this.perChannel
    return this.tasks.claimDue({ nowMs, lockedUntilMs: nowMs + LEASE_MS, limit, exceptChannels })
  }

  /** After the clock was set back, what was planned before would wait until it has caught up. */
  private bringForward(): Promise<void> {
    const { channels, tasks, timeouts } = this.store.current
    const nowMs = this.clock.nowMs() + CLOCK_TOLERANCE_MS
    const longestCallMs = Math.max(timeouts.totalMs, ...channels.map((channel) => channel.timeouts.totalMs))
    return this.tasks.bringForward({
      pollAtMs: nowMs + longestPollDelayMs(tasks.pollIntervalMs),
      lockedUntilMs: nowMs + LEASE_MS,
      createLockedUntilMs: nowMs + createLeaseMs(longestCallMs),
    })
  }

  private admit(task: Task): void {
    if (this.isStopping) this.polls.release(task)
    else this.channelQueue.add(task)
  }

  /** Pause until the next poll is due. */
  private async pauseMs(hasClaimed: boolean): Promise<number> {
    const { pollIntervalMs } = this.store.current.tasks
    const dueAtMs = await this.withStore(() => this.tasks.nextDueAtMs(), undefined)
    const waitMs = dueAtMs === undefined ? pollIntervalMs : dueAtMs - this.clock.nowMs()
    if (waitMs > 0) return Math.min(waitMs, pollIntervalMs)
    return hasClaimed ? 0 : Math.min(BUSY_PAUSE_MS, pollIntervalMs)
  }

  /** Runs a store operation; an outage is logged once. */
  private async withStore<Result>(run: () => Promise<Result>, otherwise: Result): Promise<Result> {
    try {
      const result = await run()
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

/** Deletes ended tasks when their media has expired, and expired idempotency keys. */
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

/** Starts the background work once the store is open, and stops it before the store closes. */
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

  /** Begins here, in parallel with all other work that has to end: a store that hangs is waited for once. */
  onModuleDestroy(): void {
    // Creates whose clients were disconnected still have to record that their outcome is unknown.
    this.stopping ??= Promise.all([this.poller.stop(), this.retention.stop(), this.creation.settled()])
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.stopping
  }
}
