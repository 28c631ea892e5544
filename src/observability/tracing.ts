import type { AttemptRecord, RequestContext } from '../core/request-context.js'
import { type RequestTrace, newSpanId } from './trace-context.js'
import { countedUnits } from '../core/usage-record.js'
import { verdictOf } from './access-log.js'
import type { RequestOutcome } from './request-hooks.js'
import { type KnownRoute, OTHER_METHOD } from './routes.js'

/** A span that is over, without the packages that send it. Times are Unix milliseconds with fractions. */
export interface SpanRecord {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** The parent is somebody else's: the caller's. */
  readonly isParentRemote: boolean
  /** `server` = a request of a caller; `client` = an attempt at an upstream. */
  readonly kind: 'server' | 'client'
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** When the answer began; attempts that got one. */
  readonly answeredAtMs?: number
}

const MAXIMUM_MODEL_CHARACTERS = 128
const SERVER_ERROR = 500

type Attributes = Record<string, string | number | boolean>

/**
 * The spans of a call that is over: its own, and one for each attempt. Neither bodies nor keys nor addresses; names by
 * OpenTelemetry's conventions for HTTP and generative AI where these have one.
 */
export function spansOf(
  call: RequestContext,
  trace: RequestTrace,
  outcome: RequestOutcome,
  route: KnownRoute,
): SpanRecord[] {
  // Both clocks are read now, as they drift apart over the weeks that a process runs.
  const clockOffsetMs = Date.now() - performance.now()
  const startMs = clockOffsetMs + call.startedAtMs
  const endMs = startMs + outcome.totalMs
  const { tried } = call.log
  return [
    serverSpan(call, trace, outcome, route, { startMs, endMs }),
    ...tried.map((attempt, index) =>
      attemptSpan(call, trace, attempt, index === tried.length - 1, { clockOffsetMs, endMs }),
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
  const verdict = verdictOf(call, outcome)
  const method = methods.has(call.method) ? call.method : OTHER_METHOD
  const attributes: Attributes = {
    'http.request.method': method,
    'http.route': template,
    'http.response.status_code': outcome.status,
    'gateway.request_id': call.requestId,
    'gateway.outcome': verdict,
  }
  const isError = outcome.status >= SERVER_ERROR || verdict === 'upstream_failed' || verdict === 'gateway_failed'
  if (isError) attributes['error.type'] = verdict
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
    // An answer that began lasts as long as the call.
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
