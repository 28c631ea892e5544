import { Injectable } from '@nestjs/common'
import { Metrics } from '../observability/metrics.js'
import { type Reading, registerGauge } from '../observability/readings.js'
import { type BreakerState, ChannelHealth, type ChannelSnapshot } from './circuit-breaker.js'

const BREAKER_NUMBERS: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 }

/** How each channel of the configuration does, as this process sees it. */
@Injectable()
export class ChannelMetrics {
  constructor(
    private readonly health: ChannelHealth,
    metrics: Metrics,
  ) {
    const labelNames = ['channel']
    const breaker = { name: 'gateway_breaker_state', help: 'Breaker: 0 closed, 1 half open, 2 open.', labelNames }
    registerGauge(metrics, { ...breaker, aggregator: 'max' }, () => this.read(({ state }) => BREAKER_NUMBERS[state]))
    const waiting = { name: 'gateway_channel_waiting', help: 'Calls that wait for an answer to begin.', labelNames }
    registerGauge(metrics, waiting, () => this.read((channel) => channel.waiting))
    const latency = {
      name: 'gateway_channel_latency_seconds',
      help: 'Until answers begin, or calls fail that waited longer, on average; not shown after seconds without either.',
      labelNames,
    }
    registerGauge(metrics, { ...latency, aggregator: 'average' }, () =>
      this.read(({ latencyMs }) => (latencyMs === undefined ? undefined : latencyMs / 1000)),
    )
  }

  private read(valueOf: (channel: ChannelSnapshot) => number | undefined): readonly Reading[] {
    return this.health.snapshot().flatMap((channel) => {
      const value = valueOf(channel)
      return value === undefined ? [] : [{ labels: { channel: channel.channelId }, value }]
    })
  }
}
