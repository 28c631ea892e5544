import { GatewayError } from '../../common/errors/gateway-error.js'
import type { Attempt, Call } from '../../common/http/call.js'
import type { ModelClass } from '../../config/gateway-config.js'
import type { CallContext } from '../contracts/call-context.js'
import type { AttemptPolicy, PinnedRoute, Route } from '../provider-router.js'
import type { Channel } from './channel.js'
import type { ChannelAttempt, ChannelFailure, ChannelHealth } from './channel-health.js'
import { classOn } from './model-catalogue.js'
import type { RetryBudget } from './retry-budget.js'

/** A refused key or an empty account does not mend itself in seconds; other faults may. */
const REFUSED_OPEN_MS = 60_000

export interface Candidate<Provider> {
  readonly channel: Channel
  readonly provider: Provider
}

/** The candidates of one call, in order; makes at most two attempts, never two on one channel. */
export class RoutedCall<Provider> implements Route<Provider> {
  constructor(
    readonly modelClass: ModelClass,
    private readonly model: string,
    private readonly candidates: readonly [Candidate<Provider>, ...Candidate<Provider>[]],
    private readonly health: Pick<ChannelHealth, 'begin'>,
    private readonly budget: RetryBudget,
  ) {}

  async attempt<Result>(
    call: Call,
    policy: AttemptPolicy,
    run: (provider: Provider, context: CallContext) => Promise<Result>,
  ): Promise<Result> {
    const [first, second] = this.candidates
    const deadlineAtMs = performance.now() + first.channel.target.timeouts.totalMs
    this.budget.begin()
    try {
      return await this.tryOn(first, call, deadlineAtMs, run)
    } catch (error) {
      const isLate = performance.now() >= deadlineAtMs
      if (second === undefined || isLate || !mayTryAnother(error, policy, call) || !this.budget.beginRetry())
        throw error
      return await this.tryAgain(error, () => this.tryOn(second, call, deadlineAtMs, run))
    } finally {
      this.budget.end()
    }
  }

  private async tryAgain<Result>(firstError: unknown, attempt: () => Promise<Result>): Promise<Result> {
    try {
      return await attempt()
    } catch (error) {
      throw preferredError(firstError, error)
    } finally {
      this.budget.endRetry()
    }
  }

  private async tryOn<Result>(
    { channel, provider }: Candidate<Provider>,
    call: Call,
    deadlineAtMs: number,
    run: (provider: Provider, context: CallContext) => Promise<Result>,
  ): Promise<Result> {
    call.log.channelId = channel.id
    const record: Attempt = { channelId: channel.id, startedAtMs: performance.now() }
    call.log.tried.push(record)
    const attempt = this.health.begin(channel.id)
    try {
      const result = await run(provider, this.contextFor(channel, call, deadlineAtMs))
      record.endedAtMs = performance.now()
      attempt.succeeded()
      return result
    } catch (error) {
      record.endedAtMs = performance.now()
      record.failure = error instanceof GatewayError ? error.kind : 'internal'
      const failure = failureOfChannel(error)
      if (failure === undefined) attempt.ended()
      else attempt.failed(failure)
      throw error
    }
  }

  private contextFor(channel: Channel, call: Call, deadlineAtMs: number): CallContext {
    const { credentials, options } = channel.config
    return {
      call,
      channelId: channel.id,
      target: channel.target,
      credentials: credentials.kind === 'own' ? credentials.secret : (call.caller.bearer ?? ''),
      callersKey: credentials.kind === 'caller',
      upstreamModel: channel.upstreamModel(this.model),
      options,
      deadlineAtMs,
    }
  }
}

/** One channel by itself: there is no other that knows the task. */
export class ChannelRoute<Provider> extends RoutedCall<Provider> implements PinnedRoute<Provider> {
  readonly channelId: string
  readonly options: Readonly<Record<string, unknown>>

  constructor(channel: Channel, provider: Provider, health: ChannelHealth, budget: RetryBudget) {
    super(classOn(channel, undefined), '', [{ channel, provider }], new HealthOfReads(health), budget)
    this.channelId = channel.id
    this.options = channel.config.options
  }
}

/**
 * Only failures of the upstream are worth another channel: the caller's own fault would be refused there as well, and a
 * request that was sent and not answered may already have been done.
 */
function mayTryAnother(error: unknown, policy: AttemptPolicy, call: Call): boolean {
  if (!(error instanceof GatewayError) || call.departure.left) return false
  const { attempt } = error.details
  if (attempt === undefined) return false
  if (attempt.phase === 'sent') return policy.repeatableOnceSent
  return attempt.phase === 'unsent' || attempt.channelFault === true
}

/** A first channel's 429 says when to come back; a second channel's failure says less. */
function preferredError(firstError: unknown, error: unknown): unknown {
  const isFault = error instanceof GatewayError && error.details.attempt?.channelFault === true
  return isFault && firstError instanceof GatewayError && firstError.kind === 'rate_limited' ? firstError : error
}

/** What a failure says about the channel; undefined when it says nothing. */
function failureOfChannel(error: unknown): ChannelFailure | undefined {
  if (!(error instanceof GatewayError) || error.details.attempt?.channelFault !== true) return undefined
  const { retryAfterSeconds, attempt, retryable } = error.details
  if (retryAfterSeconds !== undefined) return { openMs: retryAfterSeconds * 1000 }
  return attempt.phase === 'answered' && retryable === false ? { openMs: REFUSED_OPEN_MS } : {}
}

/** An account that answers questions may still refuse new work: only new work shows that it is well again. */
class HealthOfReads implements Pick<ChannelHealth, 'begin'> {
  constructor(private readonly health: ChannelHealth) {}

  begin(channelId: string): ChannelAttempt {
    return this.health.beginRead(channelId)
  }
}
