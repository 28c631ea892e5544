import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../../config/config-store.js'
import type { BreakerSection } from '../../config/gateway-config.js'

/** Weight of the newest sample in the average; older ones fade. */
const NEWEST_SHARE = 0.2
/** A channel that nobody used for so long may have changed: its average says nothing any more. */
const LATENCY_LIFETIME_MS = 10_000

/** `closed` = calls as usual, `half_open` = one call may try whether it works again, `open` = spared. */
export type BreakerState = 'closed' | 'half_open' | 'open'

/** Why an attempt ended badly by the channel's own fault; `openMs` where that says how long it will last. */
export interface ChannelFailure {
  readonly openMs?: number
}

/** One attempt under way; exactly one of its ends must be told. */
export interface ChannelAttempt {
  succeeded(): void
  failed(failure: ChannelFailure): void
  /** Neither: the caller's fault, or the caller has left. */
  ended(): void
}

interface Channel {
  consecutiveFailures: number
  /** On the performance clock; 0 = closed. */
  openUntilMs: number
  coolDownMs: number
  isProbed: boolean
  /** Calls that wait for their first byte. */
  waiting: number
  latencyMs: number
  sampledAtMs: number
}

/**
 * How each channel does (design: breaker per channel). Consecutive failures open its breaker; after a cool-down, which
 * grows from one opening to the next, a single call probes it. Kept per process, by channel id, through reloads.
 */
@Injectable()
export class ChannelHealth {
  private readonly channels = new Map<string, Channel>()

  constructor(private readonly store: ConfigStore) {}

  stateOf(channelId: string): BreakerState {
    const channel = this.channels.get(channelId)
    if (channel === undefined || channel.openUntilMs === 0) return 'closed'
    return channel.isProbed || channel.openUntilMs > performance.now() ? 'open' : 'half_open'
  }

  /** When an open breaker lets a probe through, on the performance clock. */
  openUntilMs(channelId: string): number {
    return this.channels.get(channelId)?.openUntilMs ?? 0
  }

  /** What one more call would wait for, in milliseconds; undefined where nobody knows. */
  expectedWaitMs(channelId: string): number | undefined {
    const channel = this.channels.get(channelId)
    if (channel === undefined || performance.now() - channel.sampledAtMs > LATENCY_LIFETIME_MS) return undefined
    return channel.latencyMs * (channel.waiting + 1)
  }

  /** An attempt that shows whether the channel works: it may be the probe of a half-open breaker. */
  begin(channelId: string): ChannelAttempt {
    const isProbe = this.stateOf(channelId) === 'half_open'
    const channel = this.channelOf(channelId)
    if (isProbe) channel.isProbed = true
    return new Work(channel, this.store.current.breaker, isProbe)
  }

  /** An attempt whose success says nothing about new work; its failure does. */
  beginRead(channelId: string): ChannelAttempt {
    return new Read(this.channelOf(channelId), this.store.current.breaker)
  }

  /** As if the channel had never failed. */
  reset(channelId: string): void {
    this.channels.delete(channelId)
  }

  /** Opens the breaker for a time, whatever was before. */
  open(channelId: string, durationMs: number): void {
    const channel = this.channelOf(channelId)
    channel.openUntilMs = performance.now() + durationMs
  }

  private channelOf(channelId: string): Channel {
    const known = this.channels.get(channelId)
    if (known !== undefined) return known
    const channel = {
      consecutiveFailures: 0,
      openUntilMs: 0,
      coolDownMs: 0,
      isProbed: false,
      waiting: 0,
      latencyMs: 0,
      sampledAtMs: Number.NEGATIVE_INFINITY,
    }
    this.channels.set(channelId, channel)
    return channel
  }
}

class Work implements ChannelAttempt {
  private readonly startedAtMs = performance.now()

  constructor(
    private readonly channel: Channel,
    private readonly breaker: BreakerSection,
    private readonly isProbe = false,
  ) {
    channel.waiting++
  }

  succeeded(): void {
    this.ended()
    const { channel } = this
    const nowMs = performance.now()
    const sampleMs = nowMs - this.startedAtMs
    const isKnown = nowMs - channel.sampledAtMs <= LATENCY_LIFETIME_MS
    channel.latencyMs = isKnown ? channel.latencyMs + NEWEST_SHARE * (sampleMs - channel.latencyMs) : sampleMs
    channel.sampledAtMs = nowMs
    channel.consecutiveFailures = 0
    channel.openUntilMs = 0
    channel.coolDownMs = 0
  }

  failed({ openMs }: ChannelFailure): void {
    this.ended()
    const { channel, breaker } = this
    channel.consecutiveFailures++
    if (openMs !== undefined) channel.openUntilMs = performance.now() + openMs
    // What was under way when it opened says nothing new.
    else if (this.isProbe || (channel.openUntilMs === 0 && channel.consecutiveFailures >= breaker.failures)) {
      channel.coolDownMs = Math.min(breaker.maximumCoolDownMs, Math.max(breaker.coolDownMs, channel.coolDownMs * 2))
      channel.openUntilMs = performance.now() + channel.coolDownMs
    }
  }

  ended(): void {
    this.channel.waiting--
    if (this.isProbe) this.channel.isProbed = false
  }
}

class Read extends Work {
  override succeeded(): void {
    this.ended()
  }
}
