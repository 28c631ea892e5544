import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { sharerOfOwner, UNKNOWN_KEY_ID } from '../core/caller.js'
import { FairShare, type Sharer } from '../core/fair-share.js'
import { RequestContext } from '../core/request-context.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { Database } from '../storage/database.js'
import { CallbackAttempt, hostOf, latestAttempts } from './callback-attempt.js'
import { type CallbackDelivery, type CallbackOutcome, CallbackRepository } from './callback.repository.js'
import { Clock, CLOCK_TOLERANCE_MS, KeyedQueue } from './background-work.js'
import { DueWorkLoop } from './due-work-loop.js'

/** Deliveries this process holds at once, over all hosts. */
const MAXIMUM_HELD = 128
/** Few per claim: deliveries that wait for their host use up their lease. */
const CLAIM_LIMIT = 16

/** Margin of a lease over its attempt; an attempt begins with at least `SETTLE_MS` more than its timeout left. */
const LEASE_MARGIN_MS = 30_000
const RECORD_MARGIN_MS = 5_000

/** Grace time of attempts under way at shutdown. */
const SHUTDOWN_GRACE_MS = 2_000

/** Stands for one that holds nothing yet. */
const ANY_BEARER: Sharer = { keyId: UNKNOWN_KEY_ID, member: '' }

/** A delivery leased to this process until then (Unix milliseconds). */
interface LeasedDelivery {
  readonly delivery: CallbackDelivery
  readonly lockedUntilMs: number
}

/**
 * Delivers the events of the outbox in the background, from when the store is open until shutdown. Replicas share the work:
 * each delivery is leased to one of them, and is retried by another, under the same `webhook-id`, when its process dies.
 */
@Injectable()
export class CallbackSender implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  /** Attempts of this process, by outcome; `retry` = failed, but not for the last time. */
  readonly attemptsMade: Record<CallbackOutcome['outcome'], number> = { delivered: 0, retry: 0, exhausted: 0 }
  private readonly loop: DueWorkLoop
  /** One queue per host, so that a slow receiver delays only its own deliveries. */
  private readonly hostQueue: KeyedQueue<LeasedDelivery>
  /** So that slow receivers of one owner, with as many hosts as it likes, delay no other owner's deliveries. */
  private readonly ownerShares: FairShare
  /** Owners of deliveries that are held. */
  private readonly owners = new Set<string>()
  private readonly calls = new Set<RequestContext>()
  private graceTimer: NodeJS.Timeout | undefined
  /** Deliveries may be due that were not claimed because the queue was full. */
  private hasUnclaimed = false

  constructor(
    private readonly database: Database,
    private readonly repository: CallbackRepository,
    private readonly attempt: CallbackAttempt,
    private readonly store: ConfigStore,
    private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.loop = new DueWorkLoop(
      {
        claim: () => this.claim(),
        nextDueAtMs: () => repository.nextDueAtMs(),
        bringForward: (isSetBack) => this.bringForward(isSetBack),
        outage: 'callbacks wait for the store',
      },
      clock,
      logger,
    )
    this.ownerShares = new FairShare(() => {
      const { callerShare } = store.current.admission
      return { total: MAXIMUM_HELD, callerShare, mayExceedShare: false }
    })
    this.hostQueue = new KeyedQueue({
      keyOf: ({ delivery }) => hostOf(delivery.url),
      concurrency: () => this.perHost,
      isBusy: (running, waiting) => running + waiting >= this.perHost,
      run: (leased) =>
        this.deliver(leased).finally(() => {
          this.countHeld(leased.delivery.ownerId, -1)
        }),
      onEnd: () => {
        if (this.hasUnclaimed) this.wake()
      },
    })
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.loop.start()
      this.wake()
    })
  }

  /** Deliveries under way or waiting for their host in this process. */
  get heldDeliveries(): number {
    return this.hostQueue.size
  }

  /** Claims due deliveries now; called after each write to the outbox. */
  wake(): void {
    this.loop.wake()
  }

  /**
   * Gives attempts under way a short grace time, then aborts them. Waiting deliveries are free for any replica once
   * their lease runs out.
   */
  onModuleDestroy(): void {
    if (this.loop.isStopping) return
    this.loop.stop()
    this.hostQueue.takeWaiting()
    this.graceTimer = setTimeout(() => {
      for (const { disconnect } of this.calls) disconnect.abort()
    }, SHUTDOWN_GRACE_MS)
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.loop.stopped()
    await this.hostQueue.idle()
    clearTimeout(this.graceTimer)
  }

  private get perHost(): number {
    return this.store.current.callbacks.perHost
  }

  private bringForward(isSetBack: boolean): Promise<void> {
    const { scheduleMs, timeoutMs } = this.store.current.callbacks
    const nowMs = this.clock.nowMs() + CLOCK_TOLERANCE_MS
    return this.repository.bringForward({
      ...latestAttempts(scheduleMs, nowMs),
      lockedUntilMs: nowMs + timeoutMs + LEASE_MARGIN_MS,
      createdAtMs: isSetBack ? -1 : nowMs,
    })
  }

  private async claim(): Promise<boolean> {
    const capacity = MAXIMUM_HELD - this.hostQueue.size
    const exceptHosts = this.hostQueue.busy()
    const exceptOwners = [...this.owners].filter((ownerId) => !this.mayHoldMore(sharerOfOwner(ownerId)))
    const exceptBearers = !this.mayHoldMore(ANY_BEARER)
    this.hasUnclaimed = capacity <= 0 || exceptHosts.length > 0 || exceptOwners.length > 0 || exceptBearers
    if (capacity <= 0) return false
    const nowMs = this.clock.nowMs()
    const lockedUntilMs = nowMs + this.store.current.callbacks.timeoutMs + LEASE_MARGIN_MS
    const limit = Math.min(capacity, CLAIM_LIMIT)
    const except = { exceptHosts, exceptOwners, exceptBearers }
    const claimed = await this.repository.claimDue({ nowMs, lockedUntilMs, limit, ...except })
    // Shutdown began meanwhile: these leases run out by themselves.
    if (this.loop.isStopping) return false
    for (const delivery of claimed) {
      this.countHeld(delivery.ownerId, 1)
      this.hostQueue.add({ delivery, lockedUntilMs })
    }
    return claimed.length > 0
  }

  private mayHoldMore(sharer: Sharer): boolean {
    return this.ownerShares.allows(sharer, 1)
  }

  private countHeld(ownerId: string, count: number): void {
    const sharer = sharerOfOwner(ownerId)
    this.ownerShares.count(sharer, count)
    if (this.ownerShares.heldBy(sharer) > 0) this.owners.add(ownerId)
    else this.owners.delete(ownerId)
  }

  private async deliver({ delivery, lockedUntilMs }: LeasedDelivery): Promise<void> {
    const { webhookId, taskId } = delivery
    // After a long wait the lease could end during the attempt; the next claim sends it.
    if (lockedUntilMs - this.clock.nowMs() < this.store.current.callbacks.timeoutMs + RECORD_MARGIN_MS) return
    const call = new RequestContext(webhookId, 'POST', '/callbacks', performance.now())
    this.calls.add(call)
    try {
      const outcome = await this.attempt.make(delivery, call)
      this.attemptsMade[outcome.outcome]++
      this.report(delivery, outcome)
      await this.repository.recordOutcome(webhookId, outcome)
      // The pause under way was computed while this delivery was leased.
      if (outcome.outcome === 'retry') this.wake()
    } catch (error) {
      this.logger.warn({ webhookId, taskId, err: error }, 'callback not recorded, it will be sent again')
    } finally {
      this.calls.delete(call)
    }
  }

  /** Neither the address nor the body is logged: both are the caller's. */
  private report({ webhookId, taskId, attempts }: CallbackDelivery, outcome: CallbackOutcome): void {
    if (outcome.outcome === 'delivered') return
    const line = { webhookId, taskId, attempt: attempts + 1, reason: outcome.error }
    this.logger.warn(line, outcome.outcome === 'exhausted' ? 'callback given up' : 'callback failed')
  }
}
