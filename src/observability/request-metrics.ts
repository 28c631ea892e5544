import { Injectable } from '@nestjs/common'
import type { Call } from '../core/request-context.js'
import { type LabelledCounts, registerHistogram } from './bucket-counts.js'
import { CALL_PHASES, CallCounts, PHASE_BOUNDS_MS } from './call-counts.js'
import { verdictOf } from './call-verdict.js'
import { Metrics } from './metrics.js'
import { KnownRoutes } from './observability-known-routes.js'
import { type Reading, registerCounter, registerGauge } from './readings.js'
import { CallEndings, type CallOutcome } from './request-hooks.js'
import { type KnownRoute, OTHER_METHOD } from './routes.js'
import { TRAFFIC_FAMILIES, type TrafficFamily } from './traffic-family.js'

interface FamilyCounts {
  inFlight: number
  receivedBytes: number
  sentBytes: number
}

/** Counts every call by its route. What a caller makes up (paths, methods, models) never becomes a label. */
@Injectable()
export class CallMetrics {
  private readonly routes = new Map<KnownRoute, CallCounts>()
  private readonly families = new Map<TrafficFamily, FamilyCounts>(
    TRAFFIC_FAMILIES.map((family) => [family, { inFlight: 0, receivedBytes: 0, sentBytes: 0 }]),
  )

  constructor(
    private readonly known: KnownRoutes,
    endings: CallEndings,
    metrics: Metrics,
  ) {
    endings.watchBeginnings(this.onBeginning)
    endings.watch(this.onEnding)
    this.registerRoutes(metrics)
    this.registerFamilies(metrics)
  }

  private readonly onBeginning = ({ path }: Call): void => {
    this.familyOf(this.known.table.find(path)).inFlight++
  }

  private readonly onEnding = (call: Call, outcome: CallOutcome): void => {
    const { path, method, log } = call
    const route = this.known.table.find(path)
    const family = this.familyOf(route)
    family.inFlight--
    family.receivedBytes += log.bytesIn
    family.sentBytes += log.bytesOut
    const counts = this.countsOf(route)
    counts.end(route.methods.has(method) ? method : OTHER_METHOD, outcome.status, verdictOf(call, outcome))
    counts.phases.total.observe(outcome.totalMs)
    counts.phases.gateway.observe(outcome.gatewayMs)
    if (log.receiveMs > 0) counts.phases.receive.observe(log.receiveMs)
    if (log.upstreamMs > 0) counts.phases.upstream.observe(log.upstreamMs)
    if (log.firstByteMs !== undefined) counts.phases.first_byte.observe(log.firstByteMs)
  }

  private familyOf({ family }: KnownRoute): FamilyCounts {
    const counts = this.families.get(family)
    if (counts === undefined) throw new Error(`no family ${family}`)
    return counts
  }

  private countsOf(route: KnownRoute): CallCounts {
    const known = this.routes.get(route)
    if (known !== undefined) return known
    const counts = new CallCounts()
    this.routes.set(route, counts)
    return counts
  }

  private registerRoutes(metrics: Metrics): void {
    registerCounter(
      metrics,
      {
        name: 'gateway_requests_total',
        help: 'Requests whose answer is over, by how they ended.',
        labelNames: ['route', 'method', 'status', 'outcome'],
      },
      () =>
        [...this.routes].flatMap(([{ template: route }, counts]) =>
          [...counts.endedCalls()].map(({ method, status, verdict, count }) => ({
            labels: { route, method, status: String(status), outcome: verdict },
            value: count,
          })),
        ),
    )
    registerHistogram(
      metrics,
      {
        name: 'gateway_request_seconds',
        help: 'How long requests took, as a whole and by phase.',
        labelNames: ['route', 'phase'],
        boundsMs: PHASE_BOUNDS_MS,
      },
      () => this.phases(),
    )
  }

  private registerFamilies(metrics: Metrics): void {
    const read = (field: keyof FamilyCounts) => (): readonly Reading[] =>
      [...this.families].map(([family, counts]) => ({ labels: { family }, value: counts[field] }))
    const labelNames = ['family']
    const inFlight = { name: 'gateway_requests_in_flight', help: 'Requests under way; a socket is one.', labelNames }
    const received = { name: 'gateway_received_bytes_total', help: 'Bytes of bodies that callers sent.', labelNames }
    const sent = { name: 'gateway_sent_bytes_total', help: 'Bytes of bodies relayed to callers.', labelNames }
    registerGauge(metrics, inFlight, read('inFlight'))
    registerCounter(metrics, received, read('receivedBytes'))
    registerCounter(metrics, sent, read('sentBytes'))
  }

  private phases(): LabelledCounts[] {
    return [...this.routes].flatMap(([{ template: route }, { phases }]) =>
      CALL_PHASES.map((phase) => ({ labels: { route, phase }, counts: phases[phase] })),
    )
  }
}
