import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { ERROR_KINDS, type ErrorKind, GatewayError, UPSTREAM_FAILURES } from '../core/errors.js'
import type { AttemptRecord, RequestContext } from '../core/request-context.js'
import { OUTCOME_LABELS, type OutcomeLabel, outcomeLabelOf } from './access-log.js'
import {
  BucketCounts,
  type LabelledCounts,
  Metrics,
  type Reading,
  registerCounter,
  registerGauge,
  registerHistogram,
} from './metrics.js'
import { RequestHooks, type RequestOutcome } from './request-hooks.js'
import { type KnownRoute, KnownRoutes, OTHER_METHOD } from './routes.js'

const ANSWERED = 'ok'

/** Counts attempts at upstreams, and failed requests by error kind. */
@Injectable()
export class AttemptMetrics {
  /** By channel, then by outcome. Channels removed from the configuration are dropped. */
  private readonly channels = new Map<string, Map<string, number>>()
  /** All kinds from the start, as the first failure must show as an increase. */
  private readonly failures = new Map(Object.keys(ERROR_KINDS).map((kind) => [kind as ErrorKind, 0]))

  constructor(
    private readonly store: ConfigStore,
    hooks: RequestHooks,
    metrics: Metrics,
  ) {
    hooks.onFinished(this.onFinished)
    hooks.onRepeated(({ log: { failure } }, _outcome, times) => {
      this.countFailure(failure, times)
    })
    store.onChange(({ channels }) => {
      const ids = new Set(channels.map(({ id }) => id))
      for (const id of this.channels.keys()) if (!ids.has(id)) this.channels.delete(id)
    })
    this.register(metrics)
  }

  private readonly onFinished = ({ log: { attempts, failure } }: RequestContext): void => {
    const kind = this.countFailure(failure, 1)
    for (const attempt of attempts)
      this.countAttempt(attempt, attempt === attempts[attempts.length - 1] ? kind : undefined)
  }

  private countFailure(failure: unknown, times: number): ErrorKind | undefined {
    if (failure === undefined) return undefined
    const kind = failure instanceof GatewayError ? failure.kind : 'internal'
    this.failures.set(kind, (this.failures.get(kind) ?? 0) + times)
    return kind
  }

  /** `kind`: the error of the request, if this was its last attempt. */
  private countAttempt({ channelId, failure }: AttemptRecord, kind: ErrorKind | undefined): void {
    const late = kind !== undefined && UPSTREAM_FAILURES.has(kind) ? kind : ANSWERED
    const outcome = failure ?? late
    const outcomes = this.channels.get(channelId)
    if (outcomes !== undefined) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    // A request may end after the reload that removed its channel.
    else if (this.isConfigured(channelId)) this.channels.set(channelId, new Map([[outcome, 1]]))
  }

  private isConfigured(channelId: string): boolean {
    return this.store.current.channels.some(({ id }) => id === channelId)
  }

  private register(metrics: Metrics): void {
    registerCounter(
      metrics,
      {
        name: 'gateway_attempts_total',
        help: 'What was tried at upstreams for callers, by how it ended.',
        labelNames: ['channel', 'outcome'],
      },
      () =>
        [...this.channels].flatMap(([channel, outcomes]) =>
          [...outcomes].map(([outcome, value]) => ({ labels: { channel, outcome }, value })),
        ),
    )
    registerCounter(
      metrics,
      { name: 'gateway_failures_total', help: 'Requests that failed, by kind of error.', labelNames: ['kind'] },
      () => [...this.failures].map(([kind, value]) => ({ labels: { kind }, value })),
    )
  }
}

/** Phases of a request; `total` includes the others. */
const REQUEST_PHASES = ['total', 'gateway', 'receive', 'upstream', 'first_byte'] as const
type RequestPhase = (typeof REQUEST_PHASES)[number]

/** From a millisecond, the gateway's own share, to an hour, the maximum length of a session. */
const PHASE_BOUNDS_MS: readonly number[] = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 3_600_000,
]

interface FinishedRequests {
  readonly method: string
  readonly status: number
  readonly label: OutcomeLabel
  readonly count: number
}

/** Finished requests of one route, as plain numbers, since every request is counted. */
class RouteCounts {
  readonly phases: Readonly<Record<RequestPhase, BucketCounts>> = {
    total: new BucketCounts(PHASE_BOUNDS_MS),
    gateway: new BucketCounts(PHASE_BOUNDS_MS),
    receive: new BucketCounts(PHASE_BOUNDS_MS),
    upstream: new BucketCounts(PHASE_BOUNDS_MS),
    first_byte: new BucketCounts(PHASE_BOUNDS_MS),
  }
  /** By method, then by a number that encodes status and label. */
  private readonly finished = new Map<string, Map<number, number>>()

  end(method: string, status: number, label: OutcomeLabel, times: number): void {
    const key = status * OUTCOME_LABELS.length + OUTCOME_LABELS.indexOf(label)
    const ofMethod = this.finished.get(method)
    if (ofMethod === undefined) this.finished.set(method, new Map([[key, times]]))
    else ofMethod.set(key, (ofMethod.get(key) ?? 0) + times)
  }

  *finishedRequests(): Iterable<FinishedRequests> {
    for (const [method, counts] of this.finished) {
      for (const [key, count] of counts) {
        const label = OUTCOME_LABELS[key % OUTCOME_LABELS.length] ?? 'gateway_failed'
        yield { method, status: Math.floor(key / OUTCOME_LABELS.length), label, count }
      }
    }
  }
}

interface FamilyCounts {
  inFlight: number
  receivedBytes: number
  sentBytes: number
}

/** Counts every request by route. Client-supplied paths, methods and models never become labels. */
@Injectable()
export class RequestMetrics {
  private readonly routes = new Map<KnownRoute, RouteCounts>()
  private readonly families: ReadonlyMap<string, FamilyCounts>
  /** Translated requests by their dialects. */
  private readonly translated = new Map<string, number>()

  constructor(
    private readonly known: KnownRoutes,
    hooks: RequestHooks,
    metrics: Metrics,
  ) {
    this.families = new Map(known.families.map((family) => [family, { inFlight: 0, receivedBytes: 0, sentBytes: 0 }]))
    hooks.onStarted(this.onStarted)
    hooks.onFinished(this.onFinished)
    hooks.onRepeated((call, outcome, times) => {
      this.countEnd(call, outcome, times)
    })
    this.registerRoutes(metrics)
    this.registerFamilies(metrics)
  }

  private readonly onStarted = (call: RequestContext): void => {
    this.familyOf(this.known.table.find(call)).inFlight++
  }

  private readonly onFinished = (call: RequestContext, outcome: RequestOutcome): void => {
    const { log } = call
    const route = this.known.table.find(call)
    const family = this.familyOf(route)
    family.inFlight--
    family.receivedBytes += log.bytesIn
    family.sentBytes += log.bytesOut
    const counts = this.countEnd(call, outcome, 1)
    counts.phases.total.observe(outcome.totalMs)
    counts.phases.gateway.observe(outcome.gatewayMs)
    if (log.receiveMs > 0) counts.phases.receive.observe(log.receiveMs)
    if (log.upstreamMs > 0) counts.phases.upstream.observe(log.upstreamMs)
    if (log.firstByteMs !== undefined) counts.phases.first_byte.observe(log.firstByteMs)
    const dialects = log.translation?.dialects
    if (dialects !== undefined) this.translated.set(dialects, (this.translated.get(dialects) ?? 0) + 1)
  }

  private countEnd(call: RequestContext, outcome: RequestOutcome, times: number): RouteCounts {
    const { method } = call
    const route = this.known.table.find(call)
    const counts = this.countsOf(route)
    const label = outcomeLabelOf(call, outcome)
    counts.end(route.methods.has(method) ? method : OTHER_METHOD, outcome.status, label, times)
    return counts
  }

  private familyOf({ family }: KnownRoute): FamilyCounts {
    const counts = this.families.get(family)
    if (counts === undefined) throw new Error(`no family ${family}`)
    return counts
  }

  private countsOf(route: KnownRoute): RouteCounts {
    const known = this.routes.get(route)
    if (known !== undefined) return known
    const counts = new RouteCounts()
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
          [...counts.finishedRequests()].map(({ method, status, label, count }) => ({
            labels: { route, method, status: String(status), outcome: label },
            value: count,
          })),
        ),
    )
    const help = 'Requests that were translated to the dialect of their upstream.'
    registerCounter(metrics, { name: 'gateway_translated_requests_total', help, labelNames: ['dialects'] }, () =>
      [...this.translated].map(([dialects, value]) => ({ labels: { dialects }, value })),
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
      REQUEST_PHASES.map((phase) => ({ labels: { route, phase }, counts: phases[phase] })),
    )
  }
}
