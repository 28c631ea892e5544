import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { CHAT_PATH, sendRaw, startGateway, TEST_KEY } from '../support/gateway.js'
import { closeAfterEach } from '../support/lab-lifetime.js'
import { startP1Gateway, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { unusedPort } from '../support/raw-upstream.js'
import { connectRealtime, startRealtimeLab } from '../support/realtime-upstream.js'
import { chat, ofRequest, SPAN, spanCounts, TRACE, TracingLab } from '../support/tracing-lab.js'

describe('tracing', () => {
  const lab = new TracingLab()
  const { opened, spansOf, tracedGateway } = lab

  const TRACE_PARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$/

  const SERVER = 2
  const CLIENT = 3
  const ERROR = 2

  describe('A traced request', () => {
    it('is one trace from its caller to both upstreams that were tried', async () => {
      const { gateway, simulator, second } = await tracedGateway()
      simulator.queueFault('500')
      const traceparent = `00-${TRACE}-${SPAN}-01`
      const answer = await chat(gateway, 'prompt-canary', {
        traceparent,
        tracestate: 'vendor=value',
        'x-request-id': 'req-1',
      })
      expect(answer.status).toBe(200)
      const [server, failed, answered] = await spansOf('req-1', 2)
      expect(server).toMatchObject({
        traceId: TRACE,
        parentSpanId: SPAN,
        kind: SERVER,
        name: `POST ${CHAT_PATH}`,
        attributes: {
          'http.request.method': 'POST',
          'http.route': CHAT_PATH,
          'http.response.status_code': 200,
          'gateway.outcome': 'ok',
        },
      })
      expect(failed).toMatchObject({
        traceId: TRACE,
        parentSpanId: server?.spanId,
        kind: CLIENT,
        status: ERROR,
        attributes: { 'gateway.channel': 'first', 'error.type': 'upstream_failed' },
      })
      expect(answered).toMatchObject({
        traceId: TRACE,
        parentSpanId: server?.spanId,
        kind: CLIENT,
        attributes: {
          'gateway.channel': 'second',
          'gen_ai.request.model': 'gpt-4o-mini',
          'http.response.status_code': 200,
        },
      })
      expect(answered?.attributes['gen_ai.usage.input_tokens']).toBeGreaterThan(0)
      expect(answered?.events.map(({ name }) => name)).toEqual(['answered'])
      const heard = [simulator, second].map(({ lastRequest }) => lastRequest?.headers)
      expect(heard.map((headers) => headers?.['traceparent'])).toEqual(
        [failed, answered].map((span) => `00-${TRACE}-${String(span?.spanId)}-01`),
      )
      expect(heard.map((headers) => headers?.['tracestate'])).toEqual(['vendor=value', 'vendor=value'])
      expect(
        new Set([SPAN, server, failed, answered].map((span) => (typeof span === 'string' ? span : span?.spanId))).size,
      ).toBe(4)
    })

    it('begins a trace where its caller has none, or none that can be read', async () => {
      const { gateway, simulator } = await tracedGateway()
      await chat(gateway, 'hello', {
        'x-request-id': 'req-1',
        traceparent: `00-${TRACE}-${SPAN}-01-more`,
        tracestate: 'a=1',
      })
      const [server, attempt] = await spansOf('req-1', 1)
      expect(server).not.toHaveProperty('parentSpanId')
      expect(server?.traceId).not.toBe(TRACE)
      const [, traceId, spanId] = TRACE_PARENT.exec(String(simulator.lastRequest?.headers['traceparent'])) ?? []
      expect([traceId, spanId]).toEqual([server?.traceId, attempt?.spanId])
      expect(simulator.lastRequest?.headers).not.toHaveProperty('tracestate')
    })

    it('lasts as long as it did, its attempts within it', async () => {
      const { gateway, simulator } = await tracedGateway()
      simulator.queueFault({ kind: 'delay', ms: 100 })
      await chat(gateway, 'hello', { 'x-request-id': 'req-1' })
      const [server, attempt] = await spansOf('req-1', 1)
      const at = (nanoseconds: string | undefined): bigint => BigInt(nanoseconds ?? '0')
      expect(at(attempt?.startTimeUnixNano)).toBeGreaterThanOrEqual(at(server?.startTimeUnixNano))
      expect(at(attempt?.endTimeUnixNano)).toBeLessThanOrEqual(at(server?.endTimeUnixNano))
      const answeredAt = at(attempt?.events[0]?.timeUnixNano)
      expect(answeredAt - at(attempt?.startTimeUnixNano)).toBeGreaterThanOrEqual(99_000_000n)
      expect(answeredAt).toBeLessThanOrEqual(at(attempt?.endTimeUnixNano))
    })

    it('is not sent when its caller does not sample it; the upstream gets the flag', async () => {
      const { gateway, simulator } = await tracedGateway()
      await chat(gateway, 'hello', { traceparent: `00-${TRACE}-${SPAN}-00`, 'x-request-id': 'unsampled' })
      expect(simulator.lastRequest?.headers['traceparent']).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
      await chat(gateway, 'hello', { 'x-request-id': 'sampled' })
      await spansOf('sampled', 1)
      expect(ofRequest(lab.collector.spans, 'unsampled')).toEqual([])
    })

    it('is sent as often as the configuration says, but always when its caller samples it', async () => {
      const { gateway } = await tracedGateway({ traceSampleRatio: 0 })
      await chat(gateway, 'hello', { 'x-request-id': 'ours' })
      await chat(gateway, 'hello', { traceparent: `00-${TRACE}-${SPAN}-01`, 'x-request-id': 'theirs' })
      await spansOf('theirs', 1)
      expect(ofRequest(lab.collector.spans, 'ours')).toEqual([])
    })

    it('is sent for a stranger who samples it as often as the configuration says', async () => {
      const { gateway } = await tracedGateway()
      const traceparent = `00-${TRACE}-${SPAN}-01`
      await chat(gateway, 'hello', { traceparent, 'x-request-id': 'stranger', authorization: 'Bearer invented' })
      expect(await spansOf('stranger', 0)).toMatchObject([{ parentSpanId: SPAN }])
    })

    it('is never sent for a stranger where the configuration samples none', async () => {
      const { gateway } = await tracedGateway({ traceSampleRatio: 0 })
      const traceparent = `00-${TRACE}-${SPAN}-01`
      await chat(gateway, 'hello', { traceparent, 'x-request-id': 'stranger', authorization: 'Bearer invented' })
      await sendRaw(gateway.url, {
        method: 'GET',
        path: '/health/live',
        headers: { traceparent, 'x-request-id': 'probe' },
      })
      await chat(gateway, 'hello', { traceparent, 'x-request-id': 'theirs' })
      await spansOf('theirs', 1)
      for (const id of ['stranger', 'probe']) expect(ofRequest(lab.collector.spans, id)).toEqual([])
    })

    it('is a trace on sockets as well', async () => {
      const sections = { observability: { otlpUrl: lab.collector.url } }
      const { gateway, upstream } = opened(await startRealtimeLab({ sections }))
      const headers = { traceparent: `00-${TRACE}-${SPAN}-01`, 'x-request-id': 'req-1' }
      const client = connectRealtime(gateway, headers)
      await once(client, 'open')
      client.close()
      const [server, attempt] = await spansOf('req-1', 1)
      expect(server).toMatchObject({ parentSpanId: SPAN, attributes: { 'http.response.status_code': 101 } })
      expect(upstream.requests[0]?.headers['traceparent']).toBe(`00-${TRACE}-${String(attempt?.spanId)}-01`)
    })

    it('tells the collector who it is, and nothing of callers, upstreams and their keys', async () => {
      const { gateway, simulator } = await tracedGateway()
      const answer = await chat(gateway, 'prompt-canary', { 'x-request-id': 'req-1' })
      await spansOf('req-1', 1)
      expect(lab.collector.paths).toEqual(lab.collector.paths.map(() => '/v1/traces'))
      expect(lab.collector.headers[0]).toMatchObject({
        'content-type': 'application/json',
        authorization: 'Api-Key collector-canary',
      })
      expect(lab.collector.bodies).toContain('multi-model-gateway')
      expect(answer.text).toContain('content')
      const address = ['127.0.0.1', String(simulator.port)]
      for (const secret of ['prompt-canary', 'collector-canary', TEST_KEY, UPSTREAM_KEY, ...address]) {
        expect(lab.collector.bodies).not.toContain(secret)
      }
      expect(gateway.logText()).not.toContain('collector-canary')
    })

    it('is sent before the process ends', async () => {
      const p1 = await startP1Gateway({ sections: { observability: { otlpUrl: lab.collector.url } } })
      await chat(p1.gateway, 'hello', { 'x-request-id': 'last' })
      await p1.close()
      expect(ofRequest(lab.collector.spans, 'last')).toHaveLength(2)
    })
  })

  describe('Without a collector', () => {
    it('nothing is traced, and no upstream gets a traceparent', async () => {
      const p1 = opened(await startP1Gateway())
      await chat(p1.gateway, 'hello', { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'a=1' })
      expect(p1.simulator.lastRequest?.headers).not.toHaveProperty('traceparent')
      expect(p1.simulator.lastRequest?.headers).not.toHaveProperty('tracestate')
      expect(await spanCounts(p1.gateway)).toEqual({ sent: 0, failed: 0, dropped: 0 })
    })
  })

  describe('A collector that does not do its work', () => {
    it('is seen in the metrics when it refuses, and nowhere else', async () => {
      const { gateway } = await tracedGateway()
      lab.collector.mood = 'refuses'
      const refused = lab.collector.nextRequest()
      expect((await chat(gateway, 'hello')).status).toBe(200)
      await refused
      for (;;) {
        const { failed } = await spanCounts(gateway)
        if (failed === 2) break
      }
      expect(gateway.logText()).not.toMatch(/"level":(40|50)/)
    })

    it('does not keep a gateway from ending when it hangs', async () => {
      const p1 = await startP1Gateway({ sections: { observability: { otlpUrl: lab.collector.url } } })
      lab.collector.mood = 'hangs'
      const held = lab.collector.nextRequest()
      expect((await chat(p1.gateway, 'hello')).status).toBe(200)
      await held
      await p1.close()
      expect(lab.collector.spans).toEqual([])
    })

    it('does not delay callers when the port is closed', async () => {
      const otlpUrl = `http://127.0.0.1:${String(await unusedPort())}`
      const p1 = await startP1Gateway({ sections: { observability: { otlpUrl } } })
      for (let calls = 0; calls < 3; calls++) expect((await chat(p1.gateway, 'hello')).status).toBe(200)
      await p1.close()
    })
  })
})

describe('start log', () => {
  const opened = closeAfterEach()

  describe('The log of a start', () => {
    it('knows the dependency of every parameter', async () => {
      const gateway = opened(await startGateway({ channels: [] }))
      expect(gateway.logText()).toContain('AppModule dependencies initialized')
      expect(gateway.logText().match(/undefined dependency/g) ?? []).toEqual([])
    })
  })
})
