import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { RequestContext } from '../core/request-context.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { CallbackAttempt, hostOf } from './callback-request.js'
import { type CallbackDelivery, type CallbackOutcome, CallbackRepository } from './callback.repository.js'
import { KeyedQueue } from './keyed-queue.js'
import { WakeTimer, Clock } from './wake-timer.js'

/** Deliveries this process holds at once, over all hosts. */
const MAXIMUM_HELD = 128
/** Few at a time: what one host cannot take at once waits with its lease running. */
const CLAIM_LIMIT = 16

/** A lease outlasts an attempt by so much, and its beginning by at least `SETTLE_MS`. */
const LEASE_MARGIN_MS = 30_000
const SETTLE_MS = 5_000

/** Other replicas' work that was left behind announces itself by nothing. */
const MAXIMUM_REST_MS = 10_000
/** Something is due but leased to another replica, or its host is busy. */
const BUSY_REST_MS = 1_000
const FIRST_RETRY_MS = 1_000
const MAXIMUM_RETRY_MS = 30_000

/** What is under way at shutdown may end by itself for so long. */
const SHUTDOWN_GRACE_MS = 2_000

/** A delivery that nobody else works on until then (Unix milliseconds). */
interface LeasedDelivery {
  readonly delivery: CallbackDelivery
  readonly lockedUntilMs: number
}

/**
 * Works the outbox of events in the background, from when the store is open until shutdown. Any number of replicas may:
 * each delivery is leased to one of them, and whoever dies leaves it to the others, under the same `webhook-id`.
 */
@Injectable()
export class CallbackSender implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  /** Made by this process, by how they ended; `retry` = failed, but not for the last time. */
  readonly attemptsMade: Record<CallbackOutcome['outcome'], number> = { delivered: 0, retry: 0, exhausted: 0 }
  private readonly wakeTimer: WakeTimer
  /** One for each host, so that a slow receiver holds up nobody but itself. */
  private readonly hostQueue: KeyedQueue<LeasedDelivery>
  private readonly calls = new Set<RequestContext>()
  private working: Promise<void> | undefined
  private isStopping = false
  private graceTimer: NodeJS.Timeout | undefined
  /** Something may be due that was not claimed because there was no room for it. */
  private hasLeftBehind = false
  private failedRounds = 0

  constructor(
    private readonly database: Database,
    private readonly repository: CallbackRepository,
    private readonly attempt: CallbackAttempt,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.wakeTimer = new WakeTimer(clock)
    this.hostQueue = new KeyedQueue({
      keyOf: ({ delivery }) => hostOf(delivery.url),
      concurrency: () => this.perHost,
      isBusy: (running, waiting) => running + waiting >= this.perHost,
      work: (leased) => this.deliver(leased),
      onEnd: () => {
        if (this.hasLeftBehind) this.wake()
      },
    })
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.working ??= this.work()
      this.wake()
    })
  }

  /** Under way or waiting for their host in this process. */
  get heldDeliveries(): number {
    return this.hostQueue.size
  }

  /** Looks for due deliveries now; called after each write to the outbox. */
  wake(): void {
    this.wakeTimer.wake()
  }

  /** Lets what is under way end for a moment, then cuts it. What was not begun is anyone's once its lease runs out. */
  onModuleDestroy(): void {
    if (this.isStopping) return
    this.isStopping = true
    this.hostQueue.takeWaiting()
    this.wake()
    this.graceTimer = setTimeout(() => {
      for (const { disconnect: departure } of this.calls) departure.abort()
    }, SHUTDOWN_GRACE_MS)
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.working
    await this.hostQueue.idle()
    clearTimeout(this.graceTimer)
  }

  private get perHost(): number {
    return this.store.current.callbacks.perHost
  }

  private async work(): Promise<void> {
    while (!this.isStopping) {
      await this.wakeTimer.cancel(await this.round(), 0)
    }
  }

  /** Takes what is due, as far as there is room; returns how long nothing more is expected. Never rejects. */
  private async round(): Promise<number> {
    try {
      while (!this.isStopping && (await this.claim()));
      const dueAtMs = this.isStopping ? undefined : await this.repository.nextDueAtMs()
      this.failedRounds = 0
      if (dueAtMs === undefined) return MAXIMUM_REST_MS
      const waitMs = dueAtMs - this.clock.nowMs()
      return waitMs <= 0 ? BUSY_REST_MS : Math.min(waitMs, MAXIMUM_REST_MS)
    } catch (error) {
      // One line for the whole time that the store is away.
      if (this.failedRounds++ === 0) this.logger.warn({ err: error }, 'callbacks wait for the store')
      return Math.min(FIRST_RETRY_MS * 2 ** (this.failedRounds - 1), MAXIMUM_RETRY_MS)
    }
  }

  /** True when it took some, so that there may be more. */
  private async claim(): Promise<boolean> {
    const room = MAXIMUM_HELD - this.hostQueue.size
    const exceptHosts = this.hostQueue.busy()
    this.hasLeftBehind = room <= 0 || exceptHosts.length > 0
    if (room <= 0) return false
    const nowMs = this.clock.nowMs()
    const lockedUntilMs = nowMs + this.store.current.callbacks.timeoutMs + LEASE_MARGIN_MS
    const limit = Math.min(room, CLAIM_LIMIT)
    const claimed = await this.repository.claimDue({ nowMs, lockedUntilMs, limit, exceptHosts })
    // Shutdown began meanwhile: these leases run out by themselves.
    if (this.isStopping) return false
    for (const delivery of claimed) this.hostQueue.add({ delivery, lockedUntilMs })
    return claimed.length > 0
  }

  private async deliver({ delivery, lockedUntilMs }: LeasedDelivery): Promise<void> {
    const { webhookId, taskId } = delivery
    // After a long wait the lease could end in the middle of the attempt; whoever claims it next sends it.
    if (lockedUntilMs - this.clock.nowMs() < this.store.current.callbacks.timeoutMs + SETTLE_MS) return
    const call = new RequestContext(webhookId, 'POST', '/callbacks', performance.now())
    this.calls.add(call)
    try {
      const outcome = await this.attempt.make(delivery, call)
      this.attemptsMade[outcome.outcome]++
      this.report(delivery, outcome)
      await this.repository.settle(webhookId, outcome)
      // The rest under way was measured while this delivery was leased.
      if (outcome.outcome === 'retry') this.wake()
    } catch (error) {
      this.logger.warn({ webhookId, taskId, err: error }, 'callback not recorded, it will be sent again')
    } finally {
      this.calls.delete(call)
    }
  }

  /** Neither the address nor the body: both are the caller's. */
  private report({ webhookId, taskId, attempts }: CallbackDelivery, outcome: CallbackOutcome): void {
    if (outcome.outcome === 'delivered') return
    const line = { webhookId, taskId, attempt: attempts + 1, reason: outcome.error }
    this.logger.warn(line, outcome.outcome === 'exhausted' ? 'callback given up' : 'callback failed')
  }
}
