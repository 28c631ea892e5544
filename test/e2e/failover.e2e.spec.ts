import { describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import { CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { startGateway } from '../support/gateway.js'
import { p1Channel, UPSTREAM_KEY, withP1Gateway } from '../support/p1-gateway.js'
import { errorOf, eventsOf, sendRaw } from '../support/raw-http.js'
import { ACCOUNT_FAULTS, CALLER_FAULTS, CHANNEL_FAULTS, SHORT_TIMEOUTS } from '../support/upstream-faults.js'

const TWO = { withSecond: true }
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

  it('is told when to come back when the first is busy and the second fails', async () => {
    await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
      simulator.queueFault('429')
      second.queueFault('500')
      const answer = await sendRaw(gateway.url, { path, body })
      expect(answer.status).toBe(429)
      expect(answer.headers['retry-after']).toBe('2')
    })
  })

  it('is served by it when nobody listens at the first, which is left alone for a while after the third time', async () => {
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
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        simulator.queueFault(fault)
        const answer = await sendRaw(gateway.url, { path, body })
        expect(answer.status).toBeGreaterThanOrEqual(400)
        expect(second.requests).toEqual([])
        // The channel is not marked either: the next call goes there again.
        expect((await sendRaw(gateway.url, { path, body })).status).toBe(200)
        expect(simulator.requests).toHaveLength(2)
      })
    },
  )

  it('shows the failure of the second when both fail, and tries no third', async () => {
    const simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY })
    const channels = [0, 1, 2].map((priority) => p1Channel(`channel-${priority}`, simulator, { priority }))
    const gateway = await startGateway({ channels })
    try {
      simulator.queueFault('500')
      simulator.queueFault('quota')
      const answer = await sendRaw(gateway.url, { path, body })
      expect([500, 502]).toContain(answer.status)
      expect(errorOf(answer)).toMatchObject({ type: 'upstream_error', code: 'upstream_failed' })
      expect(simulator.requests).toHaveLength(2)
    } finally {
      await gateway.close()
      await simulator.close()
    }
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
      expect(performance.now() - startedAtMs).toBeLessThan(2_000)
      expect(answer.status).toBe(504)
      expect(errorOf(answer)).toMatchObject({ code: 'upstream_timeout' })
      expect(second.requests).toEqual([])
    })
  })
})
