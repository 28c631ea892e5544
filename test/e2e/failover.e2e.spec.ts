import { once } from 'node:events'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { promised } from '../support/eventually.js'
import { ACCOUNT_FAULTS, CALLER_FAULTS, CHANNEL_FAULTS, SHORT_TIMEOUTS } from '../support/failing-calls.js'
import {
  CHAT_PATH,
  chatText,
  errorOf,
  eventsOf,
  sendRaw,
  SPEECH_PATH,
  speechText,
  startGateway,
  type TestGateway,
} from '../support/gateway.js'
import { closeAfterEach, shareLab } from '../support/lab-lifetime.js'
import { p1Channel, type P1Gateway, startP1Gateway, UPSTREAM_KEY, withP1Gateway } from '../support/provider-gateways.js'
import { type RawUpstream, startRawUpstream } from '../support/raw-upstream.js'
import { connectRealtime, startRealtimeLab } from '../support/realtime-upstream.js'

describe('failover', () => {
  const TWO = { withSecond: true }
  const opened = closeAfterEach()

  /** Only for faults of the caller, which do not count against a channel. */
  let unmarked: P1Gateway
  shareLab(async () => (unmarked = await startP1Gateway(TWO)))

  const nameOf = ({ fault }: { fault: string }): string => fault

  const CHAT = ['a chat completion', CHAT_PATH, chatText('Hello')] as const
  const STREAM = ['a chat stream', CHAT_PATH, chatText('#chunks=20', { stream: true })] as const
  const SPEECH = ['a speech', SPEECH_PATH, speechText('#bytes=2000000', { response_format: 'pcm' })] as const
  const EVENTS = [
    'a speech as events',
    SPEECH_PATH,
    speechText('Hello', { model: 'gpt-4o-mini-tts', stream_format: 'sse' }),
  ] as const
  const ALL = [CHAT, STREAM, SPEECH, EVENTS]

  describe.each(ALL)('%s with a second channel', (_name, path, body) => {
    const faults = [...ACCOUNT_FAULTS, ...CHANNEL_FAULTS].map(nameOf)

    it.each([...faults, '429'] as '429'[])(
      'is served by it when the first fails with %s before the first byte',
      async (fault) => {
        const patience = (fault as string) === 'hang' ? { channel: SHORT_TIMEOUTS } : {}
        await withP1Gateway({ ...TWO, ...patience }, async ({ gateway, simulator, second }) => {
          simulator.queueFault(fault)
          const answer = await sendRaw(gateway.url, { path, body })
          expect(answer.status).toBe(200)
          expect(answer.complete).toBe(true)
          expect([simulator.requests.length, second.requests.length]).toEqual([1, 1])
          expect(second.lastRequest?.body.equals(simulator.lastRequest?.body ?? Buffer.alloc(0))).toBe(true)
          const line = await gateway.logLine(String(answer.headers['x-request-id']))
          expect(line).toMatchObject({ attempts: 2, channel: 'second', status: 200 })
          const ms: unknown = expect.any(Number)
          expect(line['tried']).toEqual([
            { channel: 'first', ms, failure: expect.stringMatching(/^(?:upstream_|rate_limited)/) },
            { channel: 'second', ms },
          ])
        })
      },
    )

    it('gets Retry-After when the first is busy and the second fails', async () => {
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        simulator.queueFault('429')
        second.queueFault('500')
        const answer = await sendRaw(gateway.url, { path, body })
        expect(answer.status).toBe(429)
        expect(answer.headers['retry-after']).toBe('2')
      })
    })

    it('is served by it when the port of the first is closed, which is skipped for a while after the third failure', async () => {
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        await simulator.close()
        for (const attempts of [2, 2, 2, 1]) {
          const answer = await sendRaw(gateway.url, { path, body })
          expect(answer.status).toBe(200)
          const line = await gateway.logLine(String(answer.headers['x-request-id']))
          expect(line).toMatchObject({ attempts, channel: 'second' })
        }
        expect(second.requests).toHaveLength(4)
      })
    })

    it.each(CALLER_FAULTS.map(nameOf) as '400'[])(
      'is not tried there when the caller is at fault with %s',
      async (fault) => {
        const { gateway, simulator, second } = unmarked
        simulator.queueFault(fault)
        const answer = await sendRaw(gateway.url, { path, body })
        expect(answer.status).toBeGreaterThanOrEqual(400)
        expect(second.requests).toEqual([])
        // The channel is not marked either: the next call goes there again.
        expect((await sendRaw(gateway.url, { path, body })).status).toBe(200)
        expect(simulator.requests).toHaveLength(2)
      },
    )

    it('shows the failure of the second when both fail, and tries no third', async () => {
      const simulator = opened(await startP1Simulator({ apiKey: UPSTREAM_KEY }))
      const channels = [0, 1, 2].map((priority) => p1Channel(`channel-${priority}`, simulator, { priority }))
      const gateway = opened(await startGateway({ channels }))
      simulator.queueFault('500')
      simulator.queueFault('quota')
      const answer = await sendRaw(gateway.url, { path, body })
      expect([500, 502]).toContain(answer.status)
      expect(errorOf(answer)).toMatchObject({ type: 'upstream_error', code: 'upstream_failed' })
      expect(simulator.requests).toHaveLength(2)
    })
  })

  describe.each([STREAM, SPEECH, EVENTS])('%s that has begun', (_name, path, body) => {
    it('is never begun again on a second channel', async () => {
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        simulator.queueFault('cut')
        const answer = await sendRaw(gateway.url, { path, body })
        expect(answer.status).toBe(200)
        expect(answer.text).not.toContain('[DONE]')
        expect([simulator.requests.length, second.requests.length]).toEqual([1, 0])
      })
    })
  })

  describe('a chat stream', () => {
    it('whose first frame is an error is served by the second channel', async () => {
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        const body = 'data: {"error":{"message":"overloaded","type":"server_error","param":null,"code":null}}\n\n'
        simulator.queueFault({ kind: 'status', status: 200, headers: { 'content-type': 'text/event-stream' }, body })
        const answer = await sendRaw(gateway.url, { path: CHAT_PATH, body: STREAM[2] })
        expect(eventsOf(answer.text).at(-1)).toBe('[DONE]')
        expect(second.requests).toHaveLength(1)
      })
    })
  })

  describe('all attempts of a call', () => {
    it('share one total deadline', async () => {
      const channel = { timeouts: { totalMs: 400, firstByteMs: 60_000 } }
      await withP1Gateway({ ...TWO, channel }, async ({ gateway, simulator, second }) => {
        simulator.queueFault('hang')
        second.queueFault('hang')
        const startedAtMs = performance.now()
        const answer = await sendRaw(gateway.url, { path: CHAT_PATH, body: CHAT[2] })
        expect(performance.now() - startedAtMs).toBeLessThan(promised(2_000))
        expect(answer.status).toBe(504)
        expect(errorOf(answer)).toMatchObject({ code: 'upstream_timeout' })
        expect(second.requests).toEqual([])
      })
    })
  })
})

describe('explained answers', () => {
  const THINKING_MS = 300
  const JSON_ANSWER = '{"id":"c","object":"chat.completion","choices":[]}'
  const EVENTS = 'data: {"id":"c","choices":[]}\n\ndata: [DONE]\n\n'

  const opened = closeAfterEach()

  const answer = (status: string, type: string, body: string): string =>
    `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`

  const upstreamWith = async (text: string, thinkingMs = 0): Promise<RawUpstream> =>
    opened(
      await startRawUpstream((socket) => {
        setTimeout(() => socket.write(text), thinkingMs)
      }),
    )

  async function gatewayWith(upstreams: readonly RawUpstream[], sections: object = {}): Promise<TestGateway> {
    const channels = upstreams.map(({ port }, priority) => ({
      ...{ id: `channel-${priority}`, provider: 'p1', baseUrl: `http://127.0.0.1:${port}` },
      ...{ credentials: 'k', models: ['m'], priority },
    }))
    return opened(await startGateway({ channels, sections }))
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
    ])(
      '%s says who gave it, and what the gateway took beside the wait for the upstream',
      async (_how, stream, text) => {
        const gateway = await gatewayWith([await upstreamWith(text, THINKING_MS)])
        const { status, headers } = await chat(gateway, stream)
        const [channel, attempts, overheadMs] = NAMES.map((name) => headers[name])
        expect([status, channel, attempts]).toEqual([200, 'channel-0', '1'])
        expect(overheadMs).toMatch(/^\d+(?:\.\d{1,2})?$/)
        const { totalMs } = await gateway.logLine(String(headers['x-request-id']))
        // A timer may be a little early.
        expect(Number(overheadMs)).toBeLessThanOrEqual(Number(totalMs) - THINKING_MS + 5)
      },
    )

    it('names the channel that answered in the end', async () => {
      const failing = await upstreamWith(answer('500 Broken', 'application/json', '{}'))
      const answering = await upstreamWith(answer('200 OK', 'application/json', JSON_ANSWER))
      const gateway = await gatewayWith([failing, answering])
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
      const { gateway } = opened(await startRealtimeLab())
      const client = connectRealtime(gateway)
      const [{ headers }] = (await once(client, 'upgrade')) as [{ headers: Record<string, string> }]
      client.terminate()
      expect(headers['x-gateway-attempts']).toBe('1')
      expect(headers['x-gateway-channel']).toEqual(expect.any(String))
      expect(Number(headers['x-gateway-overhead-ms'])).toBeGreaterThanOrEqual(0)
    })
  })

  describe('A single channel', () => {
    const JSON_OK = answer('200 OK', 'application/json', JSON_ANSWER)

    it('loses no call to an upstream that gives up connections between calls', async () => {
      let requests = 0
      const used = new WeakSet<Socket>()
      const upstream = opened(
        await startRawUpstream((socket) => {
          requests++
          if (used.has(socket)) socket.destroy()
          else socket.write(JSON_OK)
          used.add(socket)
        }),
      )
      const gateway = await gatewayWith([upstream])
      for (let call = 0; call < 20; call++) {
        const { status, headers } = await chat(gateway)
        expect([status, headers['x-gateway-attempts']]).toEqual([200, '1'])
      }
      // Whatever was idle for as long as a connection that failed is not tried again.
      expect(requests).toBeGreaterThan(20)
    })

    it('may answer in an encoding that was not asked for, and with a 100 Continue before it', async () => {
      const bodies = {
        'application/json': [false, '200 OK', JSON_ANSWER],
        'text/event-stream': [true, '200 OK', EVENTS],
        'application/json;x': [false, '400 Bad', '{"error":{"message":"Too long.","code":"long"}}'],
      } as const
      for (const [type, [stream, status, text]] of Object.entries(bodies)) {
        const body = gzipSync(text)
        const head = `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}`
        const upstream = opened(
          await startRawUpstream((socket) => {
            socket.write('HTTP/1.1 100 Continue\r\n\r\n')
            socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]))
          }),
        )
        const given = await chat(await gatewayWith([upstream]), stream)
        expect(given.status).toBe(Number(status.slice(0, 3)))
        expect(given.headers['content-encoding']).toBeUndefined()
        if (given.status === 200) expect(given.text).toBe(text)
        else expect(errorOf(given)).toMatchObject({ message: 'Too long.', code: 'long' })
      }
    })
  })

  describe('An answer of the gateway alone', () => {
    it('has nothing to explain', async () => {
      const gateway = await gatewayWith([])
      const { status, headers } = await chat(gateway)
      expect([status, ...NAMES.map((name) => headers[name])]).toEqual([404, undefined, undefined, undefined])
    })
  })
})
