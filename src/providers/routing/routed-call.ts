import { GatewayError } from '../../common/errors/gateway-error.js'
import type { Call } from '../../common/http/call.js'
import type { ModelClass } from '../../config/gateway-config.js'
import type { CallContext } from '../contracts/call-context.js'
import type { AttemptPolicy, PinnedRoute, Route } from '../provider-router.js'
import type { Channel } from './channel.js'
import type { ChannelMarks } from './channel-marks.js'
import { classOn } from './model-catalogue.js'
import type { RetryBudget } from './retry-budget.js'

/** A refused key or an empty account does not mend itself in seconds; other faults may. */
const REFUSED_MARK_MS = 60_000
const FAILED_MARK_MS = 5_000

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
    private readonly marks: Pick<ChannelMarks, 'mark' | 'clear'>,
    private readonly budget: RetryBudget,
  ) {}

  attempt<Result>(
    call: Call,
    policy: AttemptPolicy,
    run: (provider: Provider, context: CallContext) => Promise<Result>,
  ): Promise<Result> {
    const [first, second] = this.candidates
    const deadlineAtMs = performance.now() + first.channel.target.timeouts.totalMs
    const recover = (error: unknown): Promise<Result> => {
      const isLate = performance.now() >= deadlineAtMs
      if (second === undefined || isLate || !mayTryAnother(error, policy, call)) throw error
      return this.budget.retry(error, () => this.tryOn(second, call, deadlineAtMs, run, preferRateLimit(error)))
    }
    return this.budget.spend(() => this.tryOn(first, call, deadlineAtMs, run, recover))
  }

  /** One attempt; what it fails with goes to `recover`, which throws or answers in its place. */
  private async tryOn<Result>(
    { channel, provider }: Candidate<Provider>,
    call: Call,
    deadlineAtMs: number,
    run: (provider: Provider, context: CallContext) => Promise<Result>,
    recover: (error: unknown) => Promise<Result>,
  ): Promise<Result> {
    call.log.attempts++
    call.log.channelId = channel.id
    try {
      const result = await run(provider, this.contextFor(channel, call, deadlineAtMs))
      this.marks.clear(channel.id)
      return result
    } catch (error) {
      this.markIfAtFault(channel, error)
      return await recover(error)
    }
  }

  private markIfAtFault(channel: Channel, error: unknown): void {
    if (!(error instanceof GatewayError) || error.details.attempt?.channelFault !== true) return
    const { retryAfterSeconds, attempt, retryable } = error.details
    const refused = attempt.phase === 'answered' && retryable === false
    const fallback = refused ? REFUSED_MARK_MS : FAILED_MARK_MS
    this.marks.mark(channel.id, retryAfterSeconds === undefined ? fallback : retryAfterSeconds * 1000)
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

  constructor(channel: Channel, provider: Provider, marks: ChannelMarks, budget: RetryBudget) {
    // An account that answers questions may still refuse new work: only new work shows that it is well again.
    const readMarks: Pick<ChannelMarks, 'mark' | 'clear'> = {
      mark: (channelId, durationMs) => {
        marks.mark(channelId, durationMs)
      },
      clear: () => undefined,
    }
    super(classOn(channel, undefined), '', [{ channel, provider }], readMarks, budget)
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
const preferRateLimit =
  (firstError: unknown) =>
  (error: unknown): never => {
    const isFault = error instanceof GatewayError && error.details.attempt?.channelFault === true
    throw isFault && firstError instanceof GatewayError && firstError.kind === 'rate_limited' ? firstError : error
  }
