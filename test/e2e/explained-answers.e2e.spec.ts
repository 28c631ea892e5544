import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { type RawUpstream, startRawUpstream } from '../support/raw-upstream.js'
import { realtimeChannel, startRealtimeUpstream } from '../support/realtime-upstream.js'
import { REALTIME_PATH } from '../support/upgrade-client.js'

const THINKING_MS = 300
const JSON_ANSWER = '{"id":"c","object":"chat.completion","choices":[]}'
const EVENTS = 'data: {"id":"c","choices":[]}\n\ndata: [DONE]\n\n'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const answer = (status: string, type: string, body: string): string =>
  `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`

async function upstreamWith(text: string, thinkingMs = 0): Promise<RawUpstream> {
  const upstream = await startRawUpstream((socket) => {
    setTimeout(() => socket.write(text), thinkingMs)
  })
  closers.push(() => upstream.close())
  return upstream
}

async function gatewayWith(upstreams: readonly RawUpstream[], sections: object = {}): Promise<TestGateway> {
  const channels = upstreams.map(({ port }, priority) => ({
    ...{ id: `channel-${priority}`, provider: 'p1', baseUrl: `http://127.0.0.1:${port}` },
    ...{ credentials: 'k', models: ['m'], priority },
  }))
  const gateway = await startGateway({ channels, sections })
  closers.push(() => gateway.close())
  return gateway
}

const chat = (gateway: TestGateway, stream = false) =>
  sendRaw(gateway.url, {
    path: '/v1/chat/completions',
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], stream }),
  })

const NAMES = ['x-gateway-channel', 'x-gateway-attempts', 'x-gateway-overhead-ms'] as const

describe('An answer that went to an upstream', () => {
  it.each([
    ['whole', false, answer('200 OK', 'application/json', JSON_ANSWER)],
    ['as a stream', true, answer('200 OK', 'text/event-stream', EVENTS)],
  ])('%s says who gave it, and what the gateway took beside the wait for the upstream', async (_how, stream, text) => {
    const gateway = await gatewayWith([await upstreamWith(text, THINKING_MS)])
    const { status, headers } = await chat(gateway, stream)
    const [channel, attempts, overheadMs] = NAMES.map((name) => headers[name])
    expect([status, channel, attempts]).toEqual([200, 'channel-0', '1'])
    expect(overheadMs).toMatch(/^\d+(?:\.\d{1,2})?$/)
    const { totalMs } = await gateway.logLine(String(headers['x-request-id']))
    // A timer may be a little early.
    expect(Number(overheadMs)).toBeLessThanOrEqual(Number(totalMs) - THINKING_MS + 5)
  })

  it('names the channel that answered in the end', async () => {
    const failing = await upstreamWith(answer('500 Broken', 'application/json', '{}'))
    const gateway = await gatewayWith([failing, await upstreamWith(answer('200 OK', 'application/json', JSON_ANSWER))])
    const { headers } = await chat(gateway)
    expect([headers['x-gateway-channel'], headers['x-gateway-attempts']]).toEqual(['channel-1', '2'])
  })

  it('says it as well when it is an error', async () => {
    const gateway = await gatewayWith([await upstreamWith(answer('500 Broken', 'application/json', '{}'))])
    const { status, headers } = await chat(gateway)
    expect([status, headers['x-gateway-channel'], headers['x-gateway-attempts']]).toEqual([502, 'channel-0', '1'])
  })

  it('says nothing of it where the operator does not want that', async () => {
    const upstream = await upstreamWith(answer('200 OK', 'application/json', JSON_ANSWER))
    const gateway = await gatewayWith([upstream], { server: { explainHeaders: false } })
    const { status, headers } = await chat(gateway)
    expect([status, ...NAMES.map((name) => headers[name])]).toEqual([200, undefined, undefined, undefined])
  })

  it('says it in the 101 of a socket', async () => {
    const upstream = await startRealtimeUpstream()
    closers.push(() => upstream.close())
    const gateway = await startGateway({ channels: [realtimeChannel(upstream)] })
    closers.push(() => gateway.close())
    const client = new WebSocket(gateway.url.replace('http', 'ws') + REALTIME_PATH, {
      headers: { authorization: `Bearer ${TEST_KEY}` },
    })
    const [{ headers }] = (await once(client, 'upgrade')) as [{ headers: Record<string, string> }]
    client.terminate()
    expect(headers['x-gateway-attempts']).toBe('1')
    expect(headers['x-gateway-channel']).toEqual(expect.any(String))
    expect(Number(headers['x-gateway-overhead-ms'])).toBeGreaterThanOrEqual(0)
  })
})

describe('An answer of the gateway alone', () => {
  it('has nothing to explain', async () => {
    const gateway = await gatewayWith([])
    const { status, headers } = await chat(gateway)
    expect([status, ...NAMES.map((name) => headers[name])]).toEqual([404, undefined, undefined, undefined])
  })
})
