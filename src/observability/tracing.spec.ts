import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { OtlpCollector } from '../../test/support/otlp-collector.js'
import { attemptRecord } from '../../test/support/raw-upstream.js'
import { GatewayError } from '../core/errors.js'
import { RequestContext } from '../core/request-context.js'
import { RequestTrace } from './trace-context.js'
import { OtlpExporter } from './otlp-exporter.js'
import type { RequestOutcome } from './request-hooks.js'
import { RouteTable } from './routes.js'
import { type SpanRecord, spansOf } from './tracing.js'

const ROUTES = new RouteTable([{ path: '/v1/chat/completions', methods: ['POST'] }], () => 'chat')
const OK: RequestOutcome = { status: 200, left: false, totalMs: 300, gatewayMs: 5 }

const TRACE = new RequestTrace('a'.repeat(32), true, 'b'.repeat(16))

const endedCall = (method = 'POST', path = '/v1/chat/completions'): RequestContext =>
  new RequestContext('req_1', method, path, 1000)

function spans(call: RequestContext, outcome: RequestOutcome = OK): readonly [SpanRecord, ...SpanRecord[]] {
  return spansOf(call, TRACE, outcome, ROUTES.find(call)) as [SpanRecord, ...SpanRecord[]]
}

describe('The spans of a call', () => {
  it('are one for the request under its caller, and one under it for each attempt', () => {
    const call = endedCall()
    call.log.model = 'gpt-4o'
    call.log.usage = { units: { prompt_tokens: 12, completion_tokens: 34 }, estimated: false }
    call.log.tried.push(
      attemptRecord('first', 1010, { endedAtMs: 1050, failure: 'upstream_failed', spanId: 'c'.repeat(16) }),
      attemptRecord('second', 1060, { endedAtMs: 1100, spanId: 'd'.repeat(16), upstreamStatus: 200 }),
    )
    const [server, first, second] = spans(call)
    expect(server).toMatchObject({
      traceId: 'a'.repeat(32),
      spanId: TRACE.spanId,
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
      attemptRecord('first', 1010, { endedAtMs: 1050, failure: 'upstream_timeout' }),
      attemptRecord('second', 1060, { endedAtMs: 1100 }),
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
    call.log.tried.push(attemptRecord('only', 1010))
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
    call.log.tried.push(attemptRecord('only', 1010, { endedAtMs: 1020 }))
    const [server, attempt] = spans(call)
    expect(server.name).toBe('other other')
    expect(JSON.stringify([server, attempt])).not.toContain('canary')
    expect(attempt?.attributes['gen_ai.request.model']).toBe('m'.repeat(128))
    expect(attempt?.name.length).toBeLessThan(140)
  })
})

describe('span sender', () => {
  const spanOf = (index: number, changes: Partial<SpanRecord> = {}): SpanRecord => ({
    traceId: 'a'.repeat(32),
    spanId: index.toString(16).padStart(16, '0'),
    isParentRemote: false,
    kind: 'server',
    name: 'GET /v1/models',
    startMs: 1_750_000_000_000.25,
    endMs: 1_750_000_000_001.5,
    isError: false,
    attributes: { 'http.response.status_code': 200 },
    ...changes,
  })

  let collector: OtlpCollector
  let sender: OtlpExporter

  beforeEach(async () => {
    collector = await OtlpCollector.start()
    sender = new OtlpExporter({ url: collector.url, headers: {}, version: '1.2.3' })
  })

  afterEach(async () => {
    await sender.close(1)
    await collector.close()
  })

  describe('The sender of spans', () => {
    it('sends them as they are', async () => {
      sender.send(
        spanOf(1, { parentSpanId: 'b'.repeat(16), kind: 'client', isError: true, answeredAtMs: 1_750_000_000_001 }),
      )
      await sender.close(5_000)
      expect(collector.spans).toEqual([
        expect.objectContaining({
          traceId: 'a'.repeat(32),
          spanId: '0000000000000001',
          parentSpanId: 'b'.repeat(16),
          kind: 3,
          status: 2,
          name: 'GET /v1/models',
          startTimeUnixNano: '1750000000000250000',
          endTimeUnixNano: '1750000000001500000',
          attributes: { 'http.response.status_code': 200 },
          events: [expect.objectContaining({ name: 'answered', timeUnixNano: '1750000000001000000' })],
        }),
      ])
      expect(sender.counts).toEqual({ sent: 1, failed: 0, dropped: 0 })
      expect(JSON.parse(collector.bodies)).toMatchObject({
        resourceSpans: [
          {
            resource: {
              attributes: [
                { key: 'service.name', value: { stringValue: 'multi-model-gateway' } },
                { key: 'service.version', value: { stringValue: '1.2.3' } },
              ],
            },
          },
        ],
      })
    })

    it('sends them in batches', async () => {
      for (let index = 1; index <= 1000; index++) sender.send(spanOf(index))
      await sender.close(5_000)
      expect([collector.spans.length, new Set(collector.spans.map(({ spanId }) => spanId)).size]).toEqual([1000, 1000])
      expect(collector.paths.length).toBeLessThan(10)
      expect(sender.waitingSpans).toBe(0)
    })

    it('drops what comes while 2,048 wait, and counts it', async () => {
      collector.mood = 'hangs'
      for (let index = 1; index <= 3000; index++) sender.send(spanOf(index))
      expect([sender.waitingSpans, sender.counts.dropped]).toEqual([2048, 952])
      await sender.close(50)
      expect(sender.counts.sent).toBe(0)
    })

    it('counts what the collector refused, and goes on', async () => {
      collector.mood = 'refuses'
      const refused = collector.nextRequest()
      sender.send(spanOf(1))
      await refused
      collector.mood = 'takes'
      sender.send(spanOf(2))
      await sender.close(5_000)
      expect(sender.counts).toEqual({ sent: 1, failed: 1, dropped: 0 })
      expect(collector.spans.map(({ spanId }) => spanId)).toEqual(['0000000000000002'])
    })
  })
})
