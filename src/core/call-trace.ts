import type { IncomingHttpHeaders } from 'node:http'
import { newSpanId, newTraceId } from './span-ids.js'
import { readTraceContext } from './trace.js'

/** The trace of one call: its own span, and what its attempts tell their upstreams. */
export class CallTrace {
  readonly spanId = newSpanId()

  constructor(
    /** 32 hex digits. */
    readonly traceId: string,
    /** Whether its spans are sent; upstreams are told the same. */
    readonly isSampled: boolean,
    /** The caller's span; absent when the trace begins here. */
    readonly parentSpanId?: string,
    private readonly traceState?: string,
  ) {}

  /** Draws the span of an attempt that begins; returns the headers that name it to the upstream, names and values in turn. */
  beginAttempt(attempt: { spanId?: string }): readonly string[] {
    attempt.spanId = newSpanId()
    const traceParent = `00-${this.traceId}-${attempt.spanId}-${this.isSampled ? '01' : '00'}`
    return this.traceState === undefined
      ? ['traceparent', traceParent]
      : ['traceparent', traceParent, 'tracestate', this.traceState]
  }
}

/**
 * Goes on with the caller's trace, on which the caller decides whether it is sampled, or begins one, which is sampled
 * with the probability `sampleRatio`.
 */
export function beginTrace({ traceparent, tracestate }: IncomingHttpHeaders, sampleRatio: number): CallTrace {
  const context = traceparent === undefined ? undefined : readTraceContext(traceparent, tracestate)
  if (context === undefined) return new CallTrace(newTraceId(), Math.random() < sampleRatio)
  return new CallTrace(context.traceId, context.isSampled, context.parentSpanId, context.traceState)
}
