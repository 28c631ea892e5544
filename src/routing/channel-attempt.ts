import type { BreakerSection } from '../config/channel-config.js'
import type { ChannelRecord } from './channel-record.js'
import type { WaitingCall } from './latency.js'

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

/** An attempt at new work, whose success shows that the channel is well. */
export class Work implements ChannelAttempt, WaitingCall {
  readonly beganAtMs = performance.now()
  older: WaitingCall | undefined = undefined
  newer: WaitingCall | undefined = undefined
  private readonly openings: number
  private isWaiting = true

  constructor(
    protected readonly channel: ChannelRecord,
    private readonly breaker: BreakerSection,
    private readonly isProbe = false,
  ) {
    this.openings = channel.openings
    channel.waiting.begin(this)
    if (isProbe) channel.isProbed = true
  }

  /**
   * Calls may come again from here on. Failures are forgotten only with an answer that came to its end: a channel that
   * cuts off every answer it begins is not well, and a probe that is cut opens the breaker at once.
   */
  answered(): void {
    if (!this.isWaiting) return
    const nowMs = performance.now()
    this.channel.noteLatency(nowMs - this.beganAtMs, nowMs)
    this.channel.waiting.answer(this)
    this.noLongerWaits()
    if (this.isNews) this.channel.openUntilMs = 0
  }

  succeeded(): void {
    this.answered()
    if (!this.isNews) return
    this.channel.consecutiveFailures = 0
    this.channel.coolDownMs = 0
  }

  failed({ openMs }: ChannelFailure): void {
    const { channel, breaker, isWaiting } = this
    const isFailedProbe = this.isProbe && isWaiting
    if (isWaiting) {
      const nowMs = performance.now()
      channel.noteLeastLatency(nowMs - this.beganAtMs, nowMs)
    }
    this.stopWaiting()
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
    this.channel.waiting.end(this)
    this.noLongerWaits()
  }

  private noLongerWaits(): void {
    this.isWaiting = false
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
