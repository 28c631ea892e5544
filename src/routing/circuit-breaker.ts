import { Injectable } from '@nestjs/common'
import type { BreakerSection } from '../config/channel-schema.js'
import { ConfigStore } from '../config/config-store.js'
import { ChannelRecord, type WaitingRequest } from './latency.js'

/** Why an attempt ended badly by the channel's own fault; `openMs` where that says how long it will last. */
export interface ChannelFailure {
  readonly openMs?: number
}

/** One attempt under way; exactly one of `succeeded`, `failed` and `ended` must be called, whatever came before. */
export interface ChannelAttempt {
  /** The answer has begun. Whether it comes to its end is reported later. */
  answered(): void
  succeeded(): void
  failed(failure: ChannelFailure): void
  /** Neither: the caller's fault, or the caller has left. */
  ended(): void
}

/** An attempt at new work, whose success shows that the channel is well. */
class Attempt implements ChannelAttempt, WaitingRequest {
  readonly beganAtMs = performance.now()
  older: WaitingRequest | undefined = undefined
  newer: WaitingRequest | undefined = undefined
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
    this.channel.recordLatency(nowMs - this.beganAtMs, nowMs)
    this.channel.waiting.settle(this)
    this.noLongerWaits()
    if (this.isCurrent) this.channel.openUntilMs = 0
  }

  succeeded(): void {
    this.answered()
    if (!this.isCurrent) return
    this.channel.consecutiveFailures = 0
    this.channel.coolDownMs = 0
  }

  failed({ openMs }: ChannelFailure): void {
    const { channel, breaker, isWaiting } = this
    const isFailedProbe = this.isProbe && isWaiting
    if (isWaiting) {
      const nowMs = performance.now()
      channel.recordLeastLatency(nowMs - this.beganAtMs, nowMs)
    }
    this.stopWaiting()
    channel.consecutiveFailures++
    if (openMs !== undefined) channel.openFor(openMs)
    else if (isFailedProbe || (this.isReporting && channel.consecutiveFailures >= breaker.failures)) {
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
  private get isReporting(): boolean {
    return this.isCurrent && this.channel.openUntilMs === 0
  }

  /** False for what was under way when the breaker opened. */
  private get isCurrent(): boolean {
    return this.openings === this.channel.openings
  }
}

/** A question about work that was done before: its success says nothing about new work, its failure does. */
class ReadAttempt extends Attempt {
  override answered(): void {
    this.ended()
  }

  override succeeded(): void {
    this.ended()
  }
}

/** `closed` = calls as usual, `half_open` = one call may try whether it works again, `open` = spared. */
export type BreakerState = 'closed' | 'half_open' | 'open'

/** How one channel does at this moment, for those who watch over it. */
export interface ChannelSnapshot {
  readonly channelId: string
  readonly state: BreakerState
  readonly consecutiveFailures: number
  /** Until a probe is let through; 0 = not open, or one may be let through now. */
  readonly openForMs: number
  /** Calls that wait for their first byte. */
  readonly waiting: number
  /** To the first byte, on average; undefined where it is unknown. */
  readonly latencyMs: number | undefined
}

/**
 * How each channel does (design: breaker per channel). Consecutive failures open its breaker; after a cool-down, which
 * grows from one opening to the next, a single call probes it. Kept per process, by channel id, through reloads.
 */
@Injectable()
export class ChannelHealth {
  private readonly channels = new Map<string, ChannelRecord>()

  constructor(private readonly store: ConfigStore) {}

  stateOf(channelId: string): BreakerState {
    const channel = this.channels.get(channelId)
    return channel === undefined ? 'closed' : stateOf(channel)
  }

  /** When an open breaker lets a probe through, on the performance clock. */
  openUntilMs(channelId: string): number {
    return this.channels.get(channelId)?.openUntilMs ?? 0
  }

  /**
   * What one more call would wait for, in milliseconds; undefined where it is unknown. A channel that is meant to carry
   * `share` times as much as others carries that much without being slower for it. One that may have fallen silent keeps
   * the next call waiting for as long as the oldest at least. Asked at every choice of a channel.
   */
  expectedWaitMs(channelId: string, share: number): number | undefined {
    const channel = this.channels.get(channelId)
    if (channel === undefined) return undefined
    const nowMs = performance.now()
    if (!channel.isKnown(nowMs)) return undefined
    const { waiting } = channel
    return Math.max(channel.leastLatencyMs(nowMs) * (waiting.count / share + 1), waiting.longestMs(nowMs))
  }

  /**
   * What one more call would wait for even if one of those that wait were just an answer that takes its time: that one is
   * neither silence nor a load, however light the channel. 0 where it is unknown. No measure of how fast a channel is.
   */
  leastWaitMs(channelId: string, share: number): number {
    const channel = this.channels.get(channelId)
    if (channel === undefined) return 0
    const others = Math.max(0, channel.waiting.count - 1)
    return channel.leastLatencyMs(performance.now()) * (others / share + 1)
  }

  /** Every channel of the configuration, in its order, used or not. */
  snapshot(): readonly ChannelSnapshot[] {
    const nowMs = performance.now()
    return this.store.current.channels.map(({ id }) => {
      const channel = this.channels.get(id) ?? new ChannelRecord()
      return {
        channelId: id,
        state: this.stateOf(id),
        consecutiveFailures: channel.consecutiveFailures,
        openForMs: Math.max(0, channel.openUntilMs - nowMs),
        waiting: channel.waiting.count,
        latencyMs: channel.isSampled(nowMs) ? channel.latencyMs : undefined,
      }
    })
  }

  /** An attempt that shows whether the channel works: it may be the probe of a half-open breaker. */
  begin(channelId: string): ChannelAttempt {
    const channel = this.recordOf(channelId)
    return new Attempt(channel, this.store.current.breaker, stateOf(channel) === 'half_open')
  }

  /** An attempt whose success says nothing about new work; its failure does. */
  beginRead(channelId: string): ChannelAttempt {
    return new ReadAttempt(this.recordOf(channelId), this.store.current.breaker)
  }

  /** As if the channel had never failed. */
  reset(channelId: string): void {
    this.channels.delete(channelId)
  }

  /** Opens the breaker for a time at least. */
  open(channelId: string, durationMs: number): void {
    this.recordOf(channelId).openFor(durationMs)
  }

  private recordOf(channelId: string): ChannelRecord {
    const known = this.channels.get(channelId)
    if (known !== undefined) return known
    const channel = new ChannelRecord()
    this.channels.set(channelId, channel)
    return channel
  }
}

function stateOf({ openUntilMs, isProbed }: ChannelRecord): BreakerState {
  if (openUntilMs === 0) return 'closed'
  return isProbed || openUntilMs > performance.now() ? 'open' : 'half_open'
}
