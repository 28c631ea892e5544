import { Injectable } from '@nestjs/common'
import type { ModelClass, WritingDialect } from '../config/model-classes.js'
import { type ResponseListener, ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { AttemptRecord, type RequestContext, type RequestLog } from '../core/request-context.js'
import type { AttemptContext } from '../providers/contract.js'
import { type Channel, classOn } from './channel.js'
import type { BreakerState, ChannelAttempt, ChannelFailure, ChannelHealth } from './circuit-breaker.js'
import type { AttemptPolicy, PinnedRoute, Route } from './router.js'

/** Timers may fire some milliseconds early. What is left of the deadline then is too short for an attempt: it would only be billed. */
const SHORTEST_ATTEMPT_MS = 10

/** A refused key or an empty account does not mend itself in seconds; other faults may. */
const REFUSED_OPEN_MS = 60_000

/** Tells the channel's health what became of an attempt that failed. */
function recordFailure(attempt: ChannelAttempt, error: unknown): void {
  const failure = failureOfChannel(error)
  if (failure === undefined) attempt.ended()
  else attempt.failed(failure)
}

/** What a failure says about the channel; undefined when it says nothing. */
function failureOfChannel(error: unknown): ChannelFailure | undefined {
  if (!(error instanceof GatewayError) || error.details.attempt?.channelError !== true) return undefined
  const { retryAfterSeconds, attempt, retryable } = error.details
  if (retryAfterSeconds !== undefined) return { openMs: retryAfterSeconds * 1000 }
  return attempt.phase === 'answered' && retryable === false ? { openMs: REFUSED_OPEN_MS } : {}
}

/** Follows an answer that has begun to its end: what breaks there is the channel's failure like any other. */
class ResponseOutcome implements ResponseListener {
  constructor(private readonly attempt: ChannelAttempt) {}

  over(error: GatewayError | undefined): void {
    if (error === undefined) this.attempt.succeeded()
    else recordFailure(this.attempt, error)
  }
}

const SHARE_OF_ACTIVE = 0.2
const ALWAYS_ALLOWED = 3

/**
 * Keeps retries from multiplying an outage: at most a fifth of the active calls may be second attempts, at least 3.
 * Whatever begins must end.
 */
@Injectable()
export class RetryBudget {
  private active = 0
  private retrying = 0

  begin(): void {
    this.active++
  }

  end(): void {
    this.active--
  }

  /** False when the budget is spent; otherwise a second attempt has begun. */
  beginRetry(): boolean {
    if (this.retrying >= Math.max(ALWAYS_ALLOWED, this.active * SHARE_OF_ACTIVE)) return false
    this.retrying++
    return true
  }

  endRetry(): void {
    this.retrying--
  }
}

export interface Candidate<Provider> {
  readonly channel: Channel
  readonly provider: Provider
  /** The dialect of its upstream that the provider translates to; absent = the upstream speaks the caller's. */
  readonly over?: WritingDialect
}

/** Times on the performance clock. */
interface AttemptSettings extends Pick<AttemptPolicy, 'canRetryAfterSend'> {
  readonly startedAtMs: number
  readonly deadlineAtMs: number
}

/** The candidates of one call, in order; makes at most two attempts, never two on one channel. */
export class RoutedRequest<Provider> implements Route<Provider> {
  constructor(
    readonly modelClass: ModelClass,
    private readonly model: string,
    private readonly candidates: readonly [Candidate<Provider>, ...Candidate<Provider>[]],
    private readonly health: Pick<ChannelHealth, 'begin' | 'stateOf'>,
    private readonly budget: RetryBudget,
    /** As `RequestLog.reasons`, unless the request asks for thoughts. */
    private readonly reasons: boolean | undefined,
  ) {}

  async attempt<Result>(
    call: RequestContext,
    policy: AttemptPolicy,
    run: (provider: Provider, context: AttemptContext) => Promise<Result>,
  ): Promise<Result> {
    const reserving = policy.estimatedUse && call.quota?.reserveEstimate(policy.estimatedUse)
    // Counted in this process, there is nothing to wait for.
    if (reserving !== undefined) await reserving
    const { canRetryAfterSend } = policy
    const first = this.best()
    const startedAtMs = performance.now()
    const deadlineAtMs = startedAtMs + first.channel.target.timeouts.totalMs
    this.budget.begin()
    try {
      return await this.tryOn(first, call, { startedAtMs, deadlineAtMs, canRetryAfterSend }, run)
    } catch (error) {
      const second = call.disconnect.aborted ? undefined : this.secondAfter(error, first, policy)
      const nowMs = performance.now()
      if (second === undefined || deadlineAtMs - nowMs < SHORTEST_ATTEMPT_MS || !this.budget.beginRetry()) throw error
      return await this.tryAgain({ error, second }, call.log, () =>
        this.tryOn(second, call, { startedAtMs: nowMs, deadlineAtMs, canRetryAfterSend }, run),
      )
    } finally {
      this.budget.end()
    }
  }

  /** The first that is not spared at this moment: since the order was made, another call may have become its probe. */
  private best(): Candidate<Provider> {
    const { candidates } = this
    if (candidates.length === 1) return candidates[0]
    return candidates.find(({ channel }) => this.health.stateOf(channel.id) !== 'open') ?? candidates[0]
  }

  /** The channel that may be asked once more after a failure. */
  private secondAfter(
    error: unknown,
    first: Candidate<Provider>,
    policy: AttemptPolicy,
  ): Candidate<Provider> | undefined {
    // Though it is spared, it takes what the translation for another one cannot say.
    if (isTranslationRefusal(error, first)) return this.candidates.find(({ over }) => over === undefined)
    const others = this.candidates.filter((other) => other !== first && mayTryAnother(error, policy, first, other))
    return others.find(({ channel }) => this.health.stateOf(channel.id) !== 'open') ?? others[0]
  }

  private async tryAgain<Result>(
    { error: firstError, second }: { readonly error: unknown; readonly second: Candidate<Provider> },
    log: RequestLog,
    attempt: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await attempt()
    } catch (error) {
      const shown = isTranslationRefusal(error, second) ? firstError : preferredError(firstError, error)
      if (shown === firstError) log.answeredBy = log.attempts.at(-2)
      throw shown
    } finally {
      this.budget.endRetry()
    }
  }

  private async tryOn<Result>(
    { channel, provider }: Candidate<Provider>,
    call: RequestContext,
    settings: AttemptSettings,
    run: (provider: Provider, context: AttemptContext) => Promise<Result>,
  ): Promise<Result> {
    call.log.modelClass = this.modelClass
    call.log.reasons ??= this.reasons
    call.log.channelId = channel.id
    const record = new AttemptRecord(channel.id, settings.startedAtMs)
    call.log.attempts.push(record)
    const attempt = this.health.begin(channel.id)
    try {
      const result = await run(provider, this.contextFor(channel, call, record, settings))
      record.endedAtMs = performance.now()
      if (result instanceof ProviderResponse) call.log.usageReader = result.usage
      follow(result, attempt)
      return result
    } catch (error) {
      record.endedAtMs = performance.now()
      record.failure = error instanceof GatewayError ? error.kind : 'internal'
      recordFailure(attempt, error)
      // What failed before its first byte has given nothing. For a caller who left the upstream has worked all the same, and so it has
      // for an answer that could not be translated.
      const { usage, answerUsage } = record
      call.log.usageReader = record.failure === 'caller_left' ? (usage ?? answerUsage) : answerUsage
      throw error
    }
  }

  private contextFor(
    channel: Channel,
    { caller, disconnect, isStrict, memory, requestId, trace }: RequestContext,
    record: AttemptRecord,
    { canRetryAfterSend: canResend, deadlineAtMs }: AttemptSettings,
  ): AttemptContext {
    const { credentials, modelMap, options } = channel.config
    return {
      requestId,
      disconnect,
      record,
      memory,
      traceHeaders: trace?.beginAttempt(record),
      channelId: channel.id,
      target: channel.target,
      credentials: credentials.kind === 'own' ? credentials.secret : (caller.bearer ?? ''),
      callersKey: credentials.kind === 'caller',
      upstreamModel: channel.upstreamModel(this.model),
      modelMap,
      options,
      canResend,
      deadlineAtMs,
      isStrict: isStrict || caller.isStrict === true,
    }
  }
}

/** One channel by itself: there is no other that knows the task. */
export class ChannelRoute<Provider> extends RoutedRequest<Provider> implements PinnedRoute<Provider> {
  readonly channelId: string
  readonly options: Readonly<Record<string, unknown>>

  constructor(channel: Channel, provider: Provider, health: ChannelHealth, budget: RetryBudget) {
    super(classOn(channel, undefined), '', [{ channel, provider }], new HealthOfReads(health), budget, false)
    this.channelId = channel.id
    this.options = channel.config.options
  }
}

/** Of a request that cannot be translated for the candidate, whose upstream was asked nothing. */
const isTranslationRefusal = (error: unknown, { over }: Candidate<unknown>): boolean =>
  over !== undefined &&
  error instanceof GatewayError &&
  error.kind === 'invalid_request' &&
  error.details.attempt === undefined

/**
 * Only failures of the upstream are worth another channel: the caller's own fault would be refused there as well, and a
 * request that was sent and not answered may already have been done; sent once more in another dialect, it would not be the same.
 */
function mayTryAnother(
  error: unknown,
  policy: AttemptPolicy,
  first: Candidate<unknown>,
  second: Candidate<unknown>,
): boolean {
  const attempt = error instanceof GatewayError ? error.details.attempt : undefined
  if (attempt === undefined) return false
  if (attempt.phase === 'sent') return policy.canRetryAfterSend && first.over === second.over
  return attempt.phase === 'unsent' || attempt.channelError === true
}

/** A first channel's 429 says when to come back; a second channel's failure says less. */
function preferredError(firstError: unknown, error: unknown): unknown {
  const isFault = error instanceof GatewayError && error.details.attempt?.channelError === true
  return isFault && firstError instanceof GatewayError && firstError.kind === 'rate_limited' ? firstError : error
}

/** An answer that is still on its way may yet break off. */
function follow(result: unknown, attempt: ChannelAttempt): void {
  if (!(result instanceof ProviderResponse) || Buffer.isBuffer(result.body)) {
    attempt.succeeded()
    return
  }
  attempt.answered()
  result.listener = new ResponseOutcome(attempt)
}

/** An account that answers questions may still refuse new work: only new work shows that it is well again. */
class HealthOfReads implements Pick<ChannelHealth, 'begin' | 'stateOf'> {
  constructor(private readonly health: ChannelHealth) {}

  stateOf(channelId: string): BreakerState {
    return this.health.stateOf(channelId)
  }

  begin(channelId: string): ChannelAttempt {
    return this.health.beginRead(channelId)
  }
}
