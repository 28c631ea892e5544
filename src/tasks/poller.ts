import { Inject, Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Clock } from './clock.js'
import { Lanes } from './keyed-queue.js'
import { PollAlarm } from './poll-alarm.js'
import { PollWork } from './poll-work.js'
import { TaskRefresh } from './refresh-task.js'
import { RescheduleBatch } from './reschedule-batch.js'
import type { Task } from './task.js'
import { TaskRepository } from './task.repository.js'

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
  private readonly lanes: Lanes<Task>
  private readonly batch: RescheduleBatch
  private readonly polls: PollWork
  private working: Promise<void> | undefined
  private isStopping = false
  private isStoreLost = false
  /** Something may be due that was not claimed because there was no room for it. */
  private hasLeftBehind = false

  constructor(
    private readonly tasks: TaskRepository,
    refresh: TaskRefresh,
    private readonly alarm: PollAlarm,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    const ring = (): void => {
      alarm.ring(clock.nowMs())
    }
    this.batch = new RescheduleBatch((rows) => this.withStore(() => tasks.reschedule(rows), undefined).then(ring))
    this.polls = new PollWork(refresh, this.batch, ring)
    this.lanes = new Lanes({
      laneOf: ({ channelId }) => channelId,
      width: () => this.perChannel,
      // Claimed for again only once there is room for a good many: each claim is a write.
      isBusy: (running, waiting) => waiting > 0 || running * 2 > this.perChannel,
      work: (task) => this.polls.poll(task),
      onEnd: (hasMadeRoom) => {
        if (hasMadeRoom && this.hasLeftBehind) alarm.wake()
      },
    })
  }

  /** Being polled, or waiting for it, in this process. */
  get heldTasks(): number {
    return this.lanes.size
  }

  start(): void {
    this.working ??= this.work()
  }

  /** Ends within milliseconds: polls under way are cut, and what was claimed is free for other replicas. */
  async stop(): Promise<void> {
    this.isStopping = true
    this.alarm.switchOff()
    for (const task of this.lanes.takeWaiting()) this.polls.release(task)
    this.polls.cut()
    await this.working
    await this.lanes.idle()
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
      if (claimed.length >= this.perChannel) await this.alarm.rest(paceMs, paceMs, paceMs)
      else await this.alarm.rest(await this.restMs(claimed.length > 0), SHORTEST_REST_MS, paceMs)
    }
  }

  private claim(): Promise<readonly Task[]> {
    const nowMs = this.clock.nowMs()
    const exceptChannels = this.lanes.busy()
    this.hasLeftBehind = exceptChannels.length > 0
    // All may be of one channel, and must begin within their lease.
    const limit = this.perChannel
    return this.tasks.claimDue({ nowMs, lockedUntilMs: nowMs + LEASE_MS, limit, exceptChannels })
  }

  private admit(task: Task): void {
    if (this.isStopping) this.polls.release(task)
    else this.lanes.add(task)
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
