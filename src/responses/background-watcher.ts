import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common'
import { GatewayError } from '../core/errors.js'
import { RequestContext } from '../core/request-context.js'
import type { ResponseProgress } from '../dialects/response-state.js'
import type { Logger } from '../observability/logger.js'
import { LOGGER } from '../observability/observability.module.js'
import { ProviderRouter } from '../routing/router.js'
import { Database } from '../storage/database.js'
import { Clock, CLOCK_TOLERANCE_MS, KeyedQueue, withTimeout } from '../tasks/background-work.js'
import { DueWorkLoop } from '../tasks/due-work-loop.js'
import { MISSES_UNTIL_GONE } from '../tasks/transitions.js'
import { BackgroundBilling, MAXIMUM_PAUSE_MS, pauseMs, logFields } from './background-billing.js'
import { type BackgroundResponseRow, BackgroundResponses } from './background-responses.js'
import { RESPONSE_FIND } from './responses.endpoints.js'

/** Polls of one channel at once, in this process; a claim takes as many rows. */
const POLLS_PER_CHANNEL = 8
/** Limit of one poll, all of it. */
const READ_TIMEOUT_MS = 20_000
/** Longer than two polls: one may have to wait for the other. */
const LEASE_MS = 60_000
/** A server of the upstream that lags behind does not know it yet. */
const YOUNG_MS = 60_000
/** No response is made for longer. */
const LONGEST_RUN_MS = 48 * 3_600_000
/** While its upstream cannot be asked a response waits as long as upstreams keep any. */
const LONGEST_WAIT_MS = 30 * 24 * 3_600_000

/** `failed`: the upstream could not be asked; `unreachable`: no channel of that name has a key of its own. */
type PollResult = ResponseProgress | 'failed' | 'unreachable'

/** Asks upstreams for the ends of responses in the background; replicas share the work by leases in the store. */
@Injectable()
export class BackgroundWatcher implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly loop: DueWorkLoop
  private readonly channelQueue: KeyedQueue<BackgroundResponseRow>
  private readonly calls = new Set<RequestContext>()
  private readonly releases: Promise<void>[] = []
  /** Channels whose absence was logged. */
  private readonly missingChannels = new Set<string>()
  /** Rows may be due that were not claimed because their channels were busy. */
  private hasUnclaimed = false

  constructor(
    private readonly database: Database,
    private readonly rows: BackgroundResponses,
    private readonly billing: BackgroundBilling,
    private readonly router: ProviderRouter,
    private readonly clock: Clock,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    this.loop = new DueWorkLoop(
      {
        claim: () => this.claim(),
        nextDueAtMs: () => rows.nextDueAtMs(),
        bringForward: () => this.bringForward(),
        outage: 'background responses wait for the store',
      },
      clock,
      logger,
    )
    this.channelQueue = new KeyedQueue({
      keyOf: ({ channelId }) => channelId,
      concurrency: () => POLLS_PER_CHANNEL,
      isBusy: (running, waiting) => running + waiting >= POLLS_PER_CHANNEL,
      run: (row) => this.poll(row),
      onEnd: (hasMadeRoom) => {
        if (hasMadeRoom && this.hasUnclaimed) this.loop.wake()
      },
    })
    billing.whenPlanned((atMs) => {
      this.loop.scheduleAt(atMs)
    })
  }

  onModuleInit(): void {
    this.database.whenOpen(() => {
      this.loop.start()
    })
  }

  /** Questions under way are aborted, and claimed rows are free for other replicas. */
  onModuleDestroy(): void {
    if (this.loop.isStopping) return
    this.loop.stop()
    for (const row of this.channelQueue.takeWaiting()) this.release(row)
    for (const { disconnect } of this.calls) disconnect.abort()
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.onModuleDestroy()
    await this.loop.stopped()
    await this.channelQueue.idle()
    await Promise.all(this.releases)
    // A store that was never opened is not opened for this.
    if (this.loop.hasStarted) await this.billing.close()
  }

  private bringForward(): Promise<void> {
    const nowMs = this.clock.nowMs() + CLOCK_TOLERANCE_MS
    return this.rows.bringForward({ pollAtMs: nowMs + MAXIMUM_PAUSE_MS, lockedUntilMs: nowMs + LEASE_MS })
  }

  private async claim(): Promise<boolean> {
    await this.billing.writeUnwritten()
    const nowMs = this.clock.nowMs()
    const exceptChannels = this.channelQueue.busy()
    this.hasUnclaimed = exceptChannels.length > 0
    const limit = POLLS_PER_CHANNEL
    const claimed = await this.rows.claimDue({ nowMs, lockedUntilMs: nowMs + LEASE_MS, limit, exceptChannels })
    for (const row of claimed) {
      if (this.loop.isStopping) this.release(row)
      else this.channelQueue.add(row)
    }
    return claimed.length > 0
  }

  /** Frees a lease without a result; it runs out by itself where the store is away. */
  private release(row: BackgroundResponseRow): void {
    this.releases.push(this.rows.reschedule(row, row).catch(() => undefined))
  }

  /** Asks for a row that is leased to this process. Never rejects: one bad row must not stop the others. */
  private async poll(row: BackgroundResponseRow): Promise<void> {
    const call = new RequestContext(`response-${row.id}`, 'POLL', RESPONSE_FIND.path, performance.now())
    call.caller = { keyId: 'gateway' }
    this.calls.add(call)
    try {
      const result = await this.ask(row, call)
      if (call.disconnect.aborted) this.release(row)
      else await this.settle(row, result)
    } catch (error) {
      // Where the store is away the lease runs out.
      if (!(error instanceof GatewayError)) await this.postpone(row, error)
    } finally {
      this.calls.delete(call)
    }
  }

  private async ask(row: BackgroundResponseRow, call: RequestContext): Promise<PollResult> {
    const { id, channelId } = row
    const route = this.router.responseChannels(call.caller).find((each) => each.channelId === channelId)
    if (route === undefined) {
      this.warnOfMissing(channelId)
      return 'unreachable'
    }
    this.missingChannels.delete(channelId)
    try {
      const progress = route.attempt(call, { canRetryAfterSend: true }, (provider, context) => {
        const deadlineAtMs = Math.min(context.deadlineAtMs, performance.now() + READ_TIMEOUT_MS)
        return provider.progress(id, { ...context, deadlineAtMs })
      })
      return await withTimeout(progress, call, READ_TIMEOUT_MS)
    } catch (error) {
      if (!(error instanceof GatewayError)) this.logger.warn({ err: error, ...logFields(row) }, 'poll failed')
      return 'failed'
    }
  }

  private async settle(row: BackgroundResponseRow, result: PollResult): Promise<void> {
    if (typeof result === 'object') {
      await this.billing.settle(row, result)
      return
    }
    const misses = missesAfter(row, result)
    const problem = problemOf(result, misses, this.clock.nowMs() - row.createdAtMs)
    if (problem === undefined) {
      await this.plan(row, misses)
      return
    }
    await this.billing.settle(row)
    this.logger.warn({ reason: problem, ...logFields(row) }, 'a background response is recorded without figures')
  }

  /** Of a fault that the next poll is likely to meet again. Never rejects. */
  private async postpone(row: BackgroundResponseRow, error: unknown): Promise<void> {
    this.logger.warn({ err: error, ...logFields(row) }, 'poll failed')
    await this.plan(row, row.misses).catch(() => undefined)
  }

  private async plan(row: BackgroundResponseRow, misses: number): Promise<void> {
    const polls = row.polls + 1
    const nextPollAtMs = this.clock.nowMs() + pauseMs(polls, Math.random())
    await this.rows.reschedule(row, { nextPollAtMs, polls, misses })
    this.loop.scheduleAt(nextPollAtMs)
  }

  private warnOfMissing(channelId: string): void {
    if (this.missingChannels.has(channelId)) return
    this.missingChannels.add(channelId)
    this.logger.warn({ channelId }, 'background responses wait for a channel that is not configured')
  }
}

/** An upstream that could not be asked says nothing about what it knows. */
function missesAfter({ misses }: BackgroundResponseRow, result: Exclude<PollResult, object>): number {
  if (result === 'unknown') return misses + 1
  return result === 'running' ? 0 : misses
}

/** Why a response that has not ended is not asked for any more; undefined where it is. */
function problemOf(result: Exclude<PollResult, object>, misses: number, ageMs: number): string | undefined {
  if (result === 'unknown') {
    return ageMs < YOUNG_MS || misses < MISSES_UNTIL_GONE ? undefined : 'the upstream does not know it'
  }
  if (result === 'running') return ageMs < LONGEST_RUN_MS ? undefined : 'it has not ended within 48 hours'
  return ageMs < LONGEST_WAIT_MS ? undefined : 'its upstream could not be asked for 30 days'
}
