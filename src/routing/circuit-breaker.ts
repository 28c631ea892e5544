import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type ChannelAttempt, Read, Work } from './channel-attempt.js'
import { ChannelRecord } from './channel-record.js'

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
  /** To the first byte, on average; undefined where nobody knows. */
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
   * What one more call would wait for, in milliseconds; undefined where nobody knows. A channel that is meant to carry
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
   * neither silence nor a load, however light the channel. 0 where nobody knows. No measure of how fast a channel is.
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
    return new Work(channel, this.store.current.breaker, stateOf(channel) === 'half_open')
  }

  /** An attempt whose success says nothing about new work; its failure does. */
  beginRead(channelId: string): ChannelAttempt {
    return new Read(this.recordOf(channelId), this.store.current.breaker)
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
