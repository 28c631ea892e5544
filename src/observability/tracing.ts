import { randomFillSync } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { Injectable, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { type AttemptRecord, NO_KEY, type RequestContext, type TraceSpan } from '../core/request-context.js'
import { countedUnits } from '../core/usage-record.js'
import { outcomeLabelOf } from './access-log.js'
import { gatewayVersion } from './logger.js'
import { byLabel, Metrics, registerCounter } from './metrics.js'
import type { OtlpExporter, SpanCounts, SpanRecord } from './otlp-exporter.js'
import { RequestHooks, type RequestOutcome } from './request-hooks.js'
import { type KnownRoute, KnownRoutes, KnownRoutesModule, OTHER_METHOD } from './routes.js'

/** Random bytes for many ids are drawn at once: one draw costs as much as a hundred ids. */
const POOL_BYTES = 4096
const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8

const pool = Buffer.allocUnsafeSlow(POOL_BYTES)
let used = POOL_BYTES

/** 32 hex digits, never all zero. */
export const newTraceId = (): string => randomHex(TRACE_ID_BYTES)

/** 16 hex digits, never all zero. */
export const newSpanId = (): string => randomHex(SPAN_ID_BYTES)

function randomHex(bytes: number): string {
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const id = pool.toString('hex', used, used + bytes)
  used += bytes
  return /[^0]/.test(id) ? id : randomHex(bytes)
}

/** The trace context of a caller's request (W3C Trace Context), ids in lower-case hex. */
interface TraceContext {
  readonly traceId: string
  readonly parentSpanId: string
  readonly isSampled: boolean
  /** `tracestate` as received, if it was well formed. */
  readonly traceState?: string
}

const TRACE_PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const NO_TRACE = '0'.repeat(32)
const NO_SPAN = '0'.repeat(16)
const FORBIDDEN_VERSION = 'ff'
const SAMPLED = 0x01

const MAXIMUM_STATE_CHARACTERS = 512
const MAXIMUM_STATE_MEMBERS = 32
const STATE_KEY = /^(?:[a-z0-9][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/
const STATE_VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/**
 * Reads `traceparent` and `tracestate` strictly (W3C Trace Context, sections 3.2 and 3.3). Undefined when the first
 * is missing or malformed: then the trace begins here. A malformed `tracestate` is dropped.
 */
export function readTraceContext(
  traceParent: string | string[] | undefined,
  traceState: string | string[] | undefined,
): TraceContext | undefined {
  const [, version, traceId, parentSpanId, flags = '', rest] =
    typeof traceParent === 'string' ? (TRACE_PARENT.exec(traceParent) ?? []) : []
  if (version === undefined || traceId === undefined || parentSpanId === undefined) return undefined
  // Later versions may append fields; version 00 must end here.
  if (version === FORBIDDEN_VERSION || (version === '00' && rest !== undefined)) return undefined
  if (traceId === NO_TRACE || parentSpanId === NO_SPAN) return undefined
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) !== 0
  const state = typeof traceState === 'string' && isTraceState(traceState) ? traceState : undefined
  return { traceId, parentSpanId, isSampled, ...(state === undefined ? {} : { traceState: state }) }
}

function isTraceState(text: string): boolean {
  if (text.length > MAXIMUM_STATE_CHARACTERS) return false
  const members = text
    .split(',')
    .map((member) => member.replace(/^[\t ]+|[\t ]+$/g, ''))
    .filter((member) => member !== '')
  const keys = new Set(members.map((member) => member.split('=', 1)[0]))
  const areMembers = members.every((member) => {
    const equals = member.indexOf('=')
    return equals > 0 && STATE_KEY.test(member.slice(0, equals)) && STATE_VALUE.test(member.slice(equals + 1))
  })
  return areMembers && members.length > 0 && members.length <= MAXIMUM_STATE_MEMBERS && keys.size === members.length
}

/** The trace of one request: its span, and the headers that its attempts send upstream. */
export class RequestTrace implements TraceSpan {
  readonly spanId = newSpanId()

  constructor(
    /** 32 hex digits. */
    readonly traceId: string,
    /** Whether its spans are sent; upstreams get the same flag. */
    readonly isSampled: boolean,
    /** The caller's span; absent when the trace begins here. */
    readonly parentSpanId?: string,
    private readonly traceState?: string,
  ) {}

  beginAttempt(attempt: { spanId?: string | undefined }): readonly string[] {
    attempt.spanId = newSpanId()
    const traceParent = `00-${this.traceId}-${attempt.spanId}-${this.isSampled ? '01' : '00'}`
    return this.traceState === undefined
      ? ['traceparent', traceParent]
      : ['traceparent', traceParent, 'tracestate', this.traceState]
  }
}

/**
 * Continues the caller's trace with the caller's sampling decision, or begins a trace, which is sampled
 * with the probability `sampleRatio`.
 */
export function beginTrace({ traceparent, tracestate }: IncomingHttpHeaders, sampleRatio: number): RequestTrace {
  const context = traceparent === undefined ? undefined : readTraceContext(traceparent, tracestate)
  if (context === undefined) return new RequestTrace(newTraceId(), Math.random() < sampleRatio)
  return new RequestTrace(context.traceId, context.isSampled, context.parentSpanId, context.traceState)
}

const MAXIMUM_MODEL_CHARACTERS = 128
const SERVER_ERROR = 500

type Attributes = Record<string, string | number | boolean>

/**
 * The spans of a finished request: its own, and one for each attempt. No bodies, keys or addresses; names by
 * OpenTelemetry's conventions for HTTP and generative AI where these have one.
 */
export function spansOf(
  call: RequestContext,
  trace: RequestTrace,
  outcome: RequestOutcome,
  route: KnownRoute,
): SpanRecord[] {
  // Both clocks are read now, as they drift apart while a process runs for weeks.
  const clockOffsetMs = Date.now() - performance.now()
  const startMs = clockOffsetMs + call.startedAtMs
  const endMs = startMs + outcome.totalMs
  const { attempts } = call.log
  return [
    serverSpan(call, trace, outcome, route, { startMs, endMs }),
    ...attempts.map((attempt, index) =>
      attemptSpan(call, trace, attempt, index === attempts.length - 1, { clockOffsetMs, endMs }),
    ),
  ]
}

function serverSpan(
  call: RequestContext,
  { traceId, spanId, parentSpanId }: RequestTrace,
  outcome: RequestOutcome,
  { template, methods }: KnownRoute,
  times: Pick<SpanRecord, 'startMs' | 'endMs'>,
): SpanRecord {
  const label = outcomeLabelOf(call, outcome)
  const method = methods.has(call.method) ? call.method : OTHER_METHOD
  const attributes: Attributes = {
    'http.request.method': method,
    'http.route': template,
    'http.response.status_code': outcome.status,
    'gateway.request_id': call.requestId,
    'gateway.outcome': label,
  }
  const isError = outcome.status >= SERVER_ERROR || label === 'upstream_failed' || label === 'gateway_failed'
  if (isError) attributes['error.type'] = label
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    isParentRemote: parentSpanId !== undefined,
    kind: 'server',
    name: `${method} ${template}`,
    ...times,
    isError,
    attributes,
  }
}

function attemptSpan(
  call: RequestContext,
  { traceId, spanId: parentSpanId }: RequestTrace,
  attempt: AttemptRecord,
  isLast: boolean,
  { clockOffsetMs, endMs }: { readonly clockOffsetMs: number; readonly endMs: number },
): SpanRecord {
  const { log } = call
  const model = log.model?.slice(0, MAXIMUM_MODEL_CHARACTERS)
  const attributes: Attributes = { 'gateway.channel': attempt.channelId, 'gateway.request_id': call.requestId }
  if (model !== undefined) attributes['gen_ai.request.model'] = model
  if (isLast) Object.assign(attributes, answerAttributes(call))
  if (attempt.failure !== undefined) attributes['error.type'] = attempt.failure
  const settledAtMs = attempt.endedAtMs === undefined ? endMs : clockOffsetMs + attempt.endedAtMs
  const hasAnswered = attempt.failure === undefined && attempt.endedAtMs !== undefined
  return {
    traceId,
    spanId: attempt.spanId ?? newSpanId(),
    parentSpanId,
    isParentRemote: false,
    kind: 'client',
    name: model === undefined ? 'attempt' : `attempt ${model}`,
    startMs: clockOffsetMs + attempt.startedAtMs,
    // A response that has begun ends with the request.
    endMs: hasAnswered ? endMs : settledAtMs,
    isError: attempt.failure !== undefined,
    attributes,
    ...(hasAnswered ? { answeredAtMs: settledAtMs } : {}),
  }
}

function answerAttributes({ log: { upstreamStatus, usage } }: RequestContext): Attributes {
  const attributes: Attributes = {}
  if (upstreamStatus !== undefined) attributes['http.response.status_code'] = upstreamStatus
  if (usage === undefined) return attributes
  const { promptTokens, completionTokens } = countedUnits(usage.units)
  if (promptTokens !== undefined) attributes['gen_ai.usage.input_tokens'] = promptTokens
  if (completionTokens !== undefined) attributes['gen_ai.usage.output_tokens'] = completionTokens
  return attributes
}

/**
 * Whether the decision to sample came from a client without a key of the gateway, who must not choose how much the collector gets.
 */
const hasUntrustedParent = ({ parentSpanId }: RequestTrace, { caller }: RequestContext): boolean =>
  parentSpanId !== undefined && (caller.keyId === NO_KEY || caller.bearer !== undefined)

/** What a collector that does not answer may keep a shutdown waiting. */
const CLOSE_DEADLINE_MS = 2_000

const NOTHING_SENT: SpanCounts = { sent: 0, failed: 0, dropped: 0 }

/**
 * Traces every call where a collector is configured: goes on with the trace of its caller, names each attempt to its
 * upstream, and sends the spans when the call is over. Without a collector nothing is loaded, watched or sent.
 */
@Injectable()
class Tracing implements OnModuleInit, OnApplicationShutdown {
  private sender: OtlpExporter | undefined

  constructor(
    private readonly store: ConfigStore,
    private readonly hooks: RequestHooks,
    private readonly known: KnownRoutes,
    metrics: Metrics,
  ) {
    registerCounter(
      metrics,
      {
        name: 'gateway_trace_spans_total',
        help: 'Spans sent to the collector, refused by it, or dropped because too many waited.',
        labelNames: ['outcome'],
      },
      () => byLabel('outcome', { ...(this.sender?.counts ?? NOTHING_SENT) }),
    )
  }

  async onModuleInit(): Promise<void> {
    const { otlpUrl, otlpHeaders } = this.store.current.observability
    if (otlpUrl === undefined) return
    const { OtlpExporter } = await import('./otlp-exporter.js')
    this.onFinished(new OtlpExporter({ url: otlpUrl, headers: otlpHeaders, version: gatewayVersion() }))
  }

  async onApplicationShutdown(): Promise<void> {
    await this.sender?.close(CLOSE_DEADLINE_MS)
  }

  private onFinished(sender: OtlpExporter): void {
    this.sender = sender
    this.hooks.onStarted((call, { headers }) => {
      call.trace = beginTrace(headers, this.store.current.observability.traceSampleRatio)
    })
    this.hooks.onFinished((call, outcome) => {
      const { trace } = call
      if (!(trace instanceof RequestTrace) || !trace.isSampled) return
      const { traceSampleRatio } = this.store.current.observability
      if (hasUntrustedParent(trace, call) && Math.random() >= traceSampleRatio) return
      for (const span of spansOf(call, trace, outcome, this.known.table.find(call))) sender.send(span)
    })
  }
}

/** OpenTelemetry traces of calls, where a collector is configured. */
@Module({ imports: [KnownRoutesModule], providers: [Tracing] })
export class TracingModule {}
