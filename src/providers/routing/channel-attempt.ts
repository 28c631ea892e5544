import type { BreakerSection } from '../../config/gateway-config.js'

/** Weight of the newest sample in the average; older ones fade. */
const NEWEST_SHARE = 0.2
/** A channel that nobody used for so long may have changed: its average says nothing any more. */
export const LATENCY_LIFETIME_MS = 10_000

/** Why an attempt ended badly by the channel's own fault; `openMs` where that says how long it will last. */
export interface ChannelFailure {
  readonly openMs?: number
}

/** One attempt under way; exactly one of `succeeded`, `failed` and `ended` must be told, whatever came before. */
export interface ChannelAttempt {
  /** The answer has begun. Whether it comes to its end is told later. */
  answered(): void
  succeeded(): void
  failed(failure: ChannelFailure): void
  /** Neither: the caller's fault, or the caller has left. */
  ended(): void
}

/** What is known of a channel. Times are on the performance clock. */
export class ChannelRecord {
  consecutiveFailures = 0
  /** 0 = closed. */
  openUntilMs = 0
  coolDownMs = 0
  /** How often it was opened: whoever began before the last time knows nothing new. */
  openings = 0
  isProbed = false
  /** Calls that wait for their first byte. */
  waiting = 0
  latencyMs = 0
  sampledAtMs = Number.NEGATIVE_INFINITY

  openFor(durationMs: number): void {
    this.openings++
    this.openUntilMs = Math.max(this.openUntilMs, performance.now() + durationMs)
  }

  noteLatency(sampleMs: number, nowMs: number): void {
    const isKnown = nowMs - this.sampledAtMs <= LATENCY_LIFETIME_MS
    this.latencyMs = isKnown ? this.latencyMs + NEWEST_SHARE * (sampleMs - this.latencyMs) : sampleMs
    this.sampledAtMs = nowMs
  }
}

/** An attempt at new work, whose success shows that the channel is well. */
export class Work implements ChannelAttempt {
  private readonly startedAtMs = performance.now()
  private readonly openings: number
  private isWaiting = true

  constructor(
    protected readonly channel: ChannelRecord,
    private readonly breaker: BreakerSection,
    private readonly isProbe = false,
  ) {
    this.openings = channel.openings
    channel.waiting++
    if (isProbe) channel.isProbed = true
  }

  /**
   * Calls may come again from here on. Failures are forgotten only with an answer that came to its end: a channel that
   * cuts off every answer it begins is not well, and a probe that is cut opens the breaker at once.
   */
  answered(): void {
    if (!this.isWaiting) return
    this.stopWaiting()
    const nowMs = performance.now()
    this.channel.noteLatency(nowMs - this.startedAtMs, nowMs)
    if (this.isNews) this.channel.openUntilMs = 0
  }

  succeeded(): void {
    this.answered()
    if (!this.isNews) return
    this.channel.consecutiveFailures = 0
    this.channel.coolDownMs = 0
  }

  failed({ openMs }: ChannelFailure): void {
    const isFailedProbe = this.isProbe && this.isWaiting
    this.stopWaiting()
    const { channel, breaker } = this
    channel.consecutiveFailures++
    if (openMs !== undefined) channel.openFor(openMs)
    else if (isFailedProbe || (this.isTelling && channel.consecutiveFailures >= breaker.failures)) {
      channel.coolDownMs = Math.min(breaker.maximumCoolDownMs, Math.max(breaker.coolDownMs, channel.coolDownMs * 2))
      channel.openFor(channel.coolDownMs)
    }
  }

  ended(): void {
    this.stopWaiting()
  }

  private stopWaiting(): void {
    if (!this.isWaiting) return
    this.isWaiting = false
    this.channel.waiting--
    if (this.isProbe) this.channel.isProbed = false
  }

  /** A failure that may open a closed breaker. */
  private get isTelling(): boolean {
    return this.isNews && this.channel.openUntilMs === 0
  }

  /** False for what was under way when the breaker opened. */
  private get isNews(): boolean {
    return this.openings === this.channel.openings
  }
}

/** A question about work that was done before: its success says nothing about new work, its failure does. */
export class Read extends Work {
  override answered(): void {
    this.ended()
  }

  override succeeded(): void {
    this.ended()
  }
}
