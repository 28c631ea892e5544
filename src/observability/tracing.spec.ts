import { describe, expect, it } from '@jest/globals'
import { CallTrace } from '../core/call-trace.js'
import { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'
import type { CallOutcome } from './request-hooks.js'
import { RouteTable } from './routes.js'
import type { SpanRecord } from './span-record.js'
import { spansOf } from './tracing.js'

const ROUTES = new RouteTable([{ path: '/v1/chat/completions', methods: ['POST'] }])
const OK: CallOutcome = { status: 200, left: false, totalMs: 300, gatewayMs: 5 }

function endedCall(method = 'POST', path = '/v1/chat/completions'): Call {
  const call = new Call('req_1', method, path, 1000)
  call.trace = new CallTrace('a'.repeat(32), true, 'b'.repeat(16))
  return call
}

function spans(call: Call, outcome: CallOutcome = OK): readonly [SpanRecord, ...SpanRecord[]] {
  const { trace } = call
  if (trace === undefined) throw new Error('not traced')
  return spansOf(call, trace, outcome, ROUTES.find(call.path)) as [SpanRecord, ...SpanRecord[]]
}

describe('The spans of a call', () => {
  it('are one for the request under its caller, and one under it for each attempt', () => {
    const call = endedCall()
    call.log.model = 'gpt-4o'
    call.log.upstreamStatus = 200
    call.log.usage = { units: { prompt_tokens: 12, completion_tokens: 34 }, estimated: false }
    call.log.tried.push(
      { channelId: 'first', startedAtMs: 1010, endedAtMs: 1050, failure: 'upstream_failed', spanId: 'c'.repeat(16) },
      { channelId: 'second', startedAtMs: 1060, endedAtMs: 1100, spanId: 'd'.repeat(16) },
    )
    const [server, first, second] = spans(call)
    expect(server).toMatchObject({
      traceId: 'a'.repeat(32),
      spanId: call.trace?.spanId,
      parentSpanId: 'b'.repeat(16),
      isParentRemote: true,
      kind: 'server',
      name: 'POST /v1/chat/completions',
      isError: false,
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/v1/chat/completions',
        'http.response.status_code': 200,
        'gateway.request_id': 'req_1',
        'gateway.outcome': 'ok',
      },
    })
    expect(first).toMatchObject({
      spanId: 'c'.repeat(16),
      parentSpanId: server.spanId,
      isParentRemote: false,
      kind: 'client',
      isError: true,
      attributes: { 'gateway.channel': 'first', 'error.type': 'upstream_failed', 'gen_ai.request.model': 'gpt-4o' },
    })
    expect(first).not.toHaveProperty('answeredAtMs')
    expect(second).toMatchObject({
      spanId: 'd'.repeat(16),
      isError: false,
      attributes: {
        'gateway.channel': 'second',
        'http.response.status_code': 200,
        'gen_ai.usage.input_tokens': 12,
        'gen_ai.usage.output_tokens': 34,
      },
    })
  })

  it('begin and end when things did: a failed attempt at its failure, an answered one with the call', () => {
    const call = endedCall()
    call.log.tried.push(
      { channelId: 'first', startedAtMs: 1010, endedAtMs: 1050, failure: 'upstream_timeout' },
      { channelId: 'second', startedAtMs: 1060, endedAtMs: 1100 },
    )
    const [server, first, second] = spans(call)
    const after = (timeMs: number | undefined): number => Math.round(((timeMs ?? 0) - server.startMs) * 1000) / 1000
    expect(after(server.endMs)).toBe(300)
    expect([after(first?.startMs), after(first?.endMs)]).toEqual([10, 50])
    expect([after(second?.startMs), after(second?.answeredAtMs), after(second?.endMs)]).toEqual([60, 100, 300])
    // Unix time, give or take how long the test has run.
    expect(Math.abs(server.startMs - (Date.now() - performance.now() + 1000))).toBeLessThan(1000)
  })

  it('of an attempt that nobody ended end with the call', () => {
    const call = endedCall()
    call.log.tried.push({ channelId: 'only', startedAtMs: 1010 })
    const [server, attempt] = spans(call, { ...OK, status: 499, left: true })
    expect(attempt?.endMs).toBe(server.endMs)
    expect(attempt).not.toHaveProperty('answeredAtMs')
    expect(server.attributes).toMatchObject({ 'gateway.outcome': 'left', 'http.response.status_code': 499 })
    expect(server.isError).toBe(false)
  })

  it('are errors when the gateway or an upstream failed, though the status was sent before', () => {
    const call = endedCall()
    call.log.failure = new GatewayError('upstream_failed', 'cut')
    expect(spans(call)[0]).toMatchObject({ isError: true, attributes: { 'error.type': 'upstream_failed' } })
    const refused = endedCall()
    refused.log.failure = new GatewayError('invalid_request', 'no')
    expect(spans(refused, { ...OK, status: 400 })[0].isError).toBe(false)
  })

  it('hold nothing a caller made up but the model, and no more of that than 128 characters', () => {
    const call = endedCall('BREW', '/nothing/secret-canary')
    call.log.model = 'm'.repeat(1000)
    call.log.tried.push({ channelId: 'only', startedAtMs: 1010, endedAtMs: 1020 })
    const [server, attempt] = spans(call)
    expect(server.name).toBe('other other')
    expect(JSON.stringify([server, attempt])).not.toContain('canary')
    expect(attempt?.attributes['gen_ai.request.model']).toBe('m'.repeat(128))
    expect(attempt?.name.length).toBeLessThan(140)
  })
})
