import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { OtlpCollector } from '../../test/support/otlp-collector.js'
import { attemptRecord } from '../../test/support/raw-upstream.js'
import { GatewayError } from '../core/errors.js'
import { AttemptRecord, RequestContext } from '../core/request-context.js'
import { OtlpExporter, type SpanRecord } from './otlp-exporter.js'
import type { RequestOutcome } from './request-hooks.js'
import { RouteTable } from './routes.js'
import { beginTrace, newSpanId, newTraceId, readTraceContext, RequestTrace, spansOf } from './tracing.js'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

const attempt = (): AttemptRecord => new AttemptRecord('one', 0)

describe('The trace of a call', () => {
  it('goes on with that of its caller, who decides whether it is sampled', () => {
    for (const [flags, isSampled] of [
      ['01', true],
      ['00', false],
    ] as const) {
      const trace = beginTrace({ traceparent: `00-${TRACE_ID}-${SPAN}-${flags}`, tracestate: 'a=1' }, isSampled ? 0 : 1)
      expect(trace).toMatchObject({ traceId: TRACE_ID, parentSpanId: SPAN, isSampled })
      const tried = attempt()
      expect(trace.beginAttempt(tried)).toEqual([
        'traceparent',
        `00-${TRACE_ID}-${String(tried.spanId)}-${flags}`,
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

const PARENT = `00-${TRACE_ID}-${SPAN}-01`

describe('The trace of a caller', () => {
  it('is read from traceparent', () => {
    expect(readTraceContext(PARENT, undefined)).toEqual({ traceId: TRACE_ID, parentSpanId: SPAN, isSampled: true })
  })

  it.each([
    ['00', false],
    ['01', true],
    ['02', false],
    ['03', true],
    ['ff', true],
  ])('is sampled as the last bit of its flags has it: %s', (flags, isSampled) => {
    expect(readTraceContext(`00-${TRACE_ID}-${SPAN}-${flags}`, undefined)?.isSampled).toBe(isSampled)
  })

  it('may be of a later version, whatever that appends', () => {
    expect(readTraceContext(`cc-${TRACE_ID}-${SPAN}-01`, undefined)?.traceId).toBe(TRACE_ID)
    expect(readTraceContext(`cc-${TRACE_ID}-${SPAN}-01-what-else`, undefined)?.traceId).toBe(TRACE_ID)
  })

  it.each([
    ['nothing', undefined],
    ['an empty header', ''],
    ['two headers', `${PARENT}, ${PARENT}`],
    ['a list', [PARENT, PARENT]],
    ['upper case', PARENT.toUpperCase()],
    ['the version that is forbidden', `ff-${TRACE_ID}-${SPAN}-01`],
    ['more than the first version has', `${PARENT}-01`],
    ['a later version that runs on without a dash', `cc-${TRACE_ID}-${SPAN}-01x`],
    ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['no span', `00-${TRACE_ID}-${'0'.repeat(16)}-01`],
    ['a short trace', `00-${TRACE_ID.slice(1)}-${SPAN}-01`],
    ['a short span', `00-${TRACE_ID}-${SPAN.slice(1)}-01`],
    ['flags of one digit', `00-${TRACE_ID}-${SPAN}-1`],
    ['a space before it', ` ${PARENT}`],
    ['a line break after it', `${PARENT}\n`],
    ['what is no hex', `00-${TRACE_ID.replace('4', 'g')}-${SPAN}-01`],
  ])('begins here when traceparent is %s', (_what, header) => {
    expect(readTraceContext(header, 'a=1')).toBeUndefined()
  })

  it.each([
    'a=1',
    'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7',
    ' a=1 ,\tb=2 ',
    'a=1,,b=2',
    '0tenant/x*y-z_@system=v w',
    `a=${'x'.repeat(256)}`,
    Array.from({ length: 32 }, (_, index) => `k${index}=v`).join(','),
  ])('keeps a tracestate that is well formed: %.40s', (state) => {
    expect(readTraceContext(PARENT, state)?.traceState).toBe(state)
  })

  it.each([
    ['', 'nothing in it'],
    [',', 'no member'],
    ['a', 'no value'],
    ['=1', 'no key'],
    ['A=1', 'an upper-case key'],
    ['a=1,a=2', 'a key twice'],
    ['a=b=c', 'an equals sign in a value'],
    ['a=\u00e9', 'a letter that is no ASCII'],
    ['a@=1', 'no system'],
    [`a=${'x'.repeat(257)}`, 'a long value'],
    [`${'k'.repeat(257)}=1`, 'a long key'],
    [Array.from({ length: 33 }, (_, index) => `k${index}=v`).join(','), '33 members'],
    [`a=${'x'.repeat(250)},b=${'x'.repeat(250)},c=${'x'.repeat(10)}`, 'more than 512 characters'],
  ])('drops the tracestate %.20s with %s, and goes on', (state) => {
    expect(readTraceContext(PARENT, state)).toEqual({ traceId: TRACE_ID, parentSpanId: SPAN, isSampled: true })
  })
})

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
    call.log.attempts.push(
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
    call.log.attempts.push(
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

  it('of an attempt that was not ended end with the call', () => {
    const call = endedCall()
    call.log.attempts.push(attemptRecord('only', 1010))
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
    call.log.attempts.push(attemptRecord('only', 1010, { endedAtMs: 1020 }))
    const [server, attempt] = spans(call)
    expect(server.name).toBe('other other')
    expect(JSON.stringify([server, attempt])).not.toContain('canary')
    expect(attempt?.attributes['gen_ai.request.model']).toBe('m'.repeat(128))
    expect(attempt?.name.length).toBeLessThan(140)
  })
})

describe('The sender of spans', () => {
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
