import { Injectable } from '@nestjs/common'
import { Metrics } from '../observability/metrics.js'
import { byLabel, registerCounter, registerGauge, single } from '../observability/readings.js'
import { RealtimeSeats } from './realtime-seats.js'
import { RealtimeTraffic } from './realtime-traffic.js'

/** Tells of open sessions and what passes through them while they are open: their calls end hours later. */
@Injectable()
export class RealtimeMetrics {
  constructor(seats: RealtimeSeats, traffic: RealtimeTraffic, metrics: Metrics) {
    const sessions = { name: 'gateway_realtime_sessions', help: 'Sessions open or being dialled.', labelNames: [] }
    registerGauge(metrics, sessions, () => single(seats.taken))
    const labelNames = ['from']
    const events = { name: 'gateway_realtime_events_total', help: 'Messages on realtime sockets.', labelNames }
    registerCounter(metrics, events, () =>
      byLabel('from', { client: traffic.clientEvents, upstream: traffic.upstreamEvents }),
    )
    const bytes = { name: 'gateway_realtime_bytes_total', help: 'Bytes of those messages.', labelNames }
    registerCounter(metrics, bytes, () =>
      byLabel('from', { client: traffic.clientBytes, upstream: traffic.upstreamBytes }),
    )
  }
}
