import { describe, expect, it } from '@jest/globals'
import { beginTrace } from './call-trace.js'
import type { Attempt } from './request-context.js'
import { newSpanId, newTraceId } from './span-ids.js'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

const attempt = (): Attempt => ({ channelId: 'one', startedAtMs: 0 })

describe('The trace of a call', () => {
  it('goes on with that of its caller, who decides whether it is sampled', () => {
    for (const [flags, isSampled] of [
      ['01', true],
      ['00', false],
    ] as const) {
      const trace = beginTrace({ traceparent: `00-${TRACE}-${SPAN}-${flags}`, tracestate: 'a=1' }, isSampled ? 0 : 1)
      expect(trace).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, isSampled })
      const tried = attempt()
      expect(trace.beginAttempt(tried)).toEqual([
        'traceparent',
        `00-${TRACE}-${String(tried.spanId)}-${flags}`,
        'tracestate',
        'a=1',
      ])
    }
  })

  it('begins here without one, sampled as often as it is to be', () => {
    expect(beginTrace({}, 1)).toMatchObject({ isSampled: true, parentSpanId: undefined })
    expect(beginTrace({}, 0).isSampled).toBe(false)
    expect(beginTrace({ traceparent: 'nonsense', tracestate: 'a=1' }, 1).beginAttempt(attempt())).toHaveLength(2)
    const sampled = Array.from({ length: 2000 }, () => beginTrace({}, 0.5)).filter(({ isSampled }) => isSampled)
    expect(sampled.length).toBeGreaterThan(800)
    expect(sampled.length).toBeLessThan(1200)
  })

  it('names each attempt by a span of its own', () => {
    const trace = beginTrace({}, 1)
    const [one, other] = [attempt(), attempt()]
    trace.beginAttempt(one)
    trace.beginAttempt(other)
    expect(new Set([trace.spanId, one.spanId, other.spanId]).size).toBe(3)
  })
})

describe('Ids', () => {
  it('are of their length, and never the same twice', () => {
    const traces = Array.from({ length: 5000 }, newTraceId)
    const spans = Array.from({ length: 5000 }, newSpanId)
    expect(traces.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true)
    expect(spans.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true)
    expect(new Set([...traces, ...spans]).size).toBe(10_000)
  })
})
