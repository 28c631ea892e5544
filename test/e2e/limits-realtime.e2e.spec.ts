import { once } from 'node:events'
import { describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { Metrics } from '../../src/observability/metrics.js'
import { eventually } from '../support/eventually.js'
import type { TestGateway } from '../support/gateway.js'
import { closeAfterEach } from '../support/lab-lifetime.js'
import {
  costOf,
  CREATED,
  createOf,
  createsOf,
  doneWith,
  judged,
  leftOf,
  type LimitedSession,
  limitHeaders,
  limitsOf,
  openSession,
  say,
  startLimitedRealtime,
} from '../support/limited-gateway.js'
import { parseScrape } from '../support/prometheus-text.js'
import {
  askUpgrade,
  connectRealtime,
  headOf,
  type HttpAnswer,
  type RealtimeLab,
  type RealtimeUpstream,
  sendUpgrade,
} from '../support/realtime-upstream.js'

/** A session is over a moment after its connection. */
const freed = (gateway: TestGateway, limit: string): Promise<void> =>
  eventually(
    async () => (await limitsOf(gateway))[limit]?.in_use === 0,
    () => limitsOf(gateway),
  )

describe('limits realtime', () => {
  const opened = closeAfterEach()

  interface Lab extends RealtimeLab {
    readonly open: () => Promise<LimitedSession>
    readonly tokensLeft: () => Promise<number | undefined>
  }

  async function start(limits: object): Promise<Lab> {
    const lab = opened(await startLimitedRealtime({ concurrency: 20, ...limits }))
    return {
      ...lab,
      open: async () => {
        const session = await openSession(lab.gateway, lab.upstream)
        opened(session.client)
        return session
      },
      tokensLeft: () => leftOf(lab.gateway, 'tokensPerMinute'),
    }
  }

  async function dial({ url }: TestGateway): Promise<WebSocket> {
    const client = connectRealtime({ url }, { authorization: 'Bearer team' })
    opened(() => {
      client.terminate()
    })
    await once(client, 'open')
    return client
  }

  const refusalOf = ({ url }: TestGateway): Promise<HttpAnswer> =>
    askUpgrade(url, { headers: { authorization: 'Bearer team' } })

  const heard = async (socket: WebSocket): Promise<Record<string, unknown>> => {
    const [message] = (await once(socket, 'message')) as [Buffer]
    return JSON.parse(message.toString()) as Record<string, unknown>
  }

  const done = (tokens: number): string =>
    JSON.stringify({
      type: 'response.done',
      event_id: 'event_1',
      response: {
        status: 'completed',
        usage: {
          total_tokens: tokens,
          input_tokens: tokens - 40,
          output_tokens: 40,
          input_token_details: { audio_tokens: 30, cached_tokens: 0 },
          output_token_details: { text_tokens: 0, audio_tokens: 40 },
        },
      },
    })

  const appendText = JSON.stringify({ type: 'input_audio_buffer.append', event_id: 'mine', audio: 'AAAA' })
  const createText = '{"type":"response.create","event_id":"mine"}'

  describe('Realtime sessions of a key', () => {
    it('are as many at once as its limit says; the next is refused before its upstream is dialled', async () => {
      const { gateway, upstream } = await start({ realtimeSessions: 1, requestsPerMinute: 10 })
      const client = await dial(gateway)
      const { status, headers, body } = await refusalOf(gateway)
      expect([status, headers.get('retry-after')]).toEqual([429, '1'])
      expect(headers.get('x-gateway-limit')).toBe('realtimeSessions; scope=key:team; reset=1')
      expect(JSON.parse(body.toString())).toMatchObject({
        error: { code: 'concurrency_limit_exceeded', type: 'rate_limit_error' },
      })
      expect(upstream.requests).toHaveLength(1)
      client.close()
      await freed(gateway, 'realtimeSessions')
      expect((await limitsOf(gateway))['requestsPerMinute']).toMatchObject({ remaining: 9 })
      await dial(gateway)
    })

    it('keep their place among requests under way for all their life, and no place once refused', async () => {
      const { gateway, upstream } = await start({ concurrency: 1 })
      const client = await dial(gateway)
      expect((await refusalOf(gateway)).headers.get('x-gateway-limit')).toBe('concurrency; scope=key:team; reset=1')
      client.terminate()
      await freed(gateway, 'concurrency')
      await upstream.close()
      const refused = await refusalOf(gateway)
      expect(refused.status).toBeGreaterThanOrEqual(500)
      await freed(gateway, 'concurrency')
    })

    it('pay for each answer as it is given', async () => {
      const { gateway, upstream } = await start({ tokensPerMinute: 1000, audioSecondsPerMinute: 60, concurrency: 1 })
      const client = await dial(gateway)
      upstream.sockets[0]?.send(done(100))
      await heard(client)
      expect((await limitsOf(gateway))['tokensPerMinute']).toMatchObject({ remaining: 900 })
      // 30 tokens heard, 40 spoken: 3 s and 2 s.
      expect((await limitsOf(gateway))['audioSecondsPerMinute']).toMatchObject({ remaining: 55 })
      client.close()
      await freed(gateway, 'concurrency')
      expect((await limitsOf(gateway))['tokensPerMinute']).toMatchObject({ remaining: 900 })
    })

    it('get no further answer once nothing is left, and no other session begins', async () => {
      const { gateway, upstream } = await start({ tokensPerMinute: 100 })
      const client = await dial(gateway)
      const [socket] = upstream.sockets
      client.send(createText)
      if (socket === undefined) throw new Error('no connection')
      expect(await heard(socket)).toMatchObject({ type: 'response.create' })
      socket.send(done(150))
      await heard(client)
      const events: Record<string, unknown>[] = []
      client.on('message', (message: Buffer) => events.push(JSON.parse(message.toString()) as Record<string, unknown>))
      for (const event of [createText, appendText, appendText, appendText, '{"type":"response.cancel"}'])
        client.send(event)
      expect(await heard(socket)).toMatchObject({ type: 'response.cancel' })
      await eventually(() => events.length >= 2)
      const refused = {
        type: 'error',
        error: {
          type: 'rate_limit_error',
          code: 'rate_limit_exceeded',
          event_id: 'mine',
          message: expect.stringMatching(/^The limit of 100 tokens per minute of this API key \(key:team\) is used up/),
        },
      }
      expect(events).toMatchObject([refused, refused])
      const { status, headers } = await refusalOf(gateway)
      expect([status, headers.get('x-gateway-limit')]).toMatchObject([429, expect.stringMatching(/^tokensPerMinute; /)])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(30)
      expect(client.readyState).toBe(WebSocket.OPEN)
    })
  })

  /** Hears five seconds of an answer, and leaves. */
  async function hearAndLeave(gateway: TestGateway, upstream: RealtimeUpstream): Promise<void> {
    const client = await dial(gateway)
    const [socket] = upstream.sockets
    socket?.send('{"type":"response.created","response":{"id":"resp_1"}}')
    await once(client, 'message')
    const delta = Buffer.alloc(5 * 48_000).toString('base64')
    socket?.send(JSON.stringify({ type: 'response.output_audio.delta', response_id: 'resp_1', delta }))
    await once(client, 'message')
    client.close()
    await freed(gateway, 'concurrency')
  }

  describe('The limits of a key', () => {
    it('are debited for an answer that its client did not hear to the end', async () => {
      const { gateway, upstream } = await start({ tokensPerMinute: 1000, audioSecondsPerMinute: 60, concurrency: 1 })
      await hearAndLeave(gateway, upstream)
      const { tokensPerMinute, audioSecondsPerMinute } = await limitsOf(gateway)
      expect(audioSecondsPerMinute).toMatchObject({ remaining: 55 })
      expect(tokensPerMinute).toMatchObject({ remaining: 900 })
    })

    it.each([['tokensPerMinute', 100] as const, ['audioSecondsPerMinute', 5] as const])(
      'refuse a connection once %s is used up',
      async (name, limit) => {
        const { gateway, upstream } = await start({ [name]: limit, concurrency: 1 })
        await hearAndLeave(gateway, upstream)
        const { status, headers } = await refusalOf(gateway)
        const named: unknown = expect.stringMatching(new RegExp(`^${name};`))
        expect([status, headers.get('x-gateway-limit')]).toEqual([429, named])
      },
    )
  })

  const CREATE = createOf(100)
  const COST = costOf(100)
  const APPEND = { type: 'input_audio_buffer.append', audio: 'AAAA' }

  const refusal = (words: RegExp): object => ({
    type: 'error',
    error: {
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      event_id: 'mine',
      message: expect.stringMatching(words),
    },
  })

  describe('Answers that two sessions of a key ask for at once', () => {
    it('are both given where the limit is exactly what they may use', async () => {
      const { open, tokensLeft } = await start({ tokensPerMinute: 2 * COST })
      const sessions = [await open(), await open()]
      await Promise.all(sessions.map((session) => judged(session, CREATE)))
      expect(createsOf(sessions)).toBe(2)
      expect(await tokensLeft()).toBe(0)
    })

    it('are one where the limit is a token less: the other is refused before its upstream hears of it', async () => {
      const { open } = await start({ tokensPerMinute: 2 * COST - 1 })
      const [one, other] = [await open(), await open()]
      await judged(one, CREATE)
      await judged(other, CREATE)
      expect(one.heard).toEqual(['response.create', 'input_audio_buffer.clear'])
      expect(other.heard).toEqual(['input_audio_buffer.clear'])
      const words =
        `^The limit of ${2 * COST - 1} tokens per minute of this API key \\(key:team\\) has ${COST - 1} left, ` +
        `and this request expects to use ${COST}\\. It is reset in \\d+ s\\.$`
      expect(await other.client.next('error')).toMatchObject(refusal(new RegExp(words)))
      expect(other.client.socket.readyState).toBe(WebSocket.OPEN)
    })

    it('are never more than fit, however many sessions ask', async () => {
      const { open } = await start({ tokensPerMinute: 4 * COST + 10 })
      const sessions: LimitedSession[] = []
      while (sessions.length < 10) sessions.push(await open())
      await Promise.all(sessions.map((session) => judged(session, CREATE)))
      expect(createsOf(sessions)).toBe(4)
    })

    it('are as long as the settings expect where they have no maximum, and never longer than the whole limit', async () => {
      const { open, tokensLeft } = await start({ tokensPerMinute: 3000 })
      const [one, other] = [await open(), await open()]
      const plain = { type: 'response.create' }
      await judged(one, plain)
      expect(await tokensLeft()).toBe(3000 - 1000 - Math.ceil(JSON.stringify(plain).length / 4))
      await judged(other, createOf(5000))
      expect(other.heard).not.toContain('response.create')
      await say(one, CREATED)
      await say(one, doneWith(0))
      await judged(other, createOf(5000))
      expect(other.heard).toContain('response.create')
      expect(await tokensLeft()).toBe(0)
    })

    it('hold seconds of audio as well where they may be spoken', async () => {
      const { gateway, open } = await start({ audioSecondsPerMinute: 20 })
      const [one, other, third] = [await open(), await open(), await open()]
      for (const session of [one, other, third]) await judged(session, { type: 'response.create', event_id: 'mine' })
      expect(createsOf([one, other])).toBe(2)
      const words = /^The limit of 20 seconds of audio per minute of this API key \(key:team\) is used up/
      expect(await third.client.next('error')).toMatchObject(refusal(words))
      await say(one, CREATED)
      await say(one, doneWith(10))
      expect(await leftOf(gateway, 'audioSecondsPerMinute')).toBe(10)
    })
  })

  describe('What an answer has reserved', () => {
    it('goes back when it has used less, and another session can have it', async () => {
      const { open, tokensLeft } = await start({ tokensPerMinute: COST + 60 })
      const [one, other] = [await open(), await open()]
      await judged(one, CREATE)
      await judged(other, CREATE)
      expect(createsOf([other])).toBe(0)
      await say(one, CREATED)
      await say(one, doneWith(25))
      expect(await tokensLeft()).toBe(COST + 35)
      await judged(other, CREATE)
      expect(createsOf([other])).toBe(1)
    })

    it.each<[string, number | undefined, string]>([
      ['is cancelled', 7, 'cancelled'],
      ['fails without a figure of its cost', undefined, 'failed'],
    ])('goes back when it %s', async (_how, used, status) => {
      const { open, tokensLeft } = await start({ tokensPerMinute: 1000 })
      const session = await open()
      await judged(session, CREATE)
      await say(session, CREATED)
      await judged(session, { type: 'response.cancel' })
      expect(await tokensLeft()).toBe(1000 - COST)
      await say(session, doneWith(used, status))
      expect(await tokensLeft()).toBe(1000 - (used ?? 0))
    })

    it.each<[string, object]>([
      ['by the id of its event', { code: 'invalid_value', param: null, event_id: 'mine' }],
      ['as there is one already', { code: 'conversation_already_has_active_response', param: null, event_id: null }],
      ['for one of its fields', { code: 'invalid_value', param: 'response.output_modalities', event_id: null }],
    ])('goes back when the upstream refuses it %s', async (_how, error) => {
      const { open, tokensLeft } = await start({ tokensPerMinute: 1000 })
      const session = await open()
      await judged(session, CREATE)
      await say(session, { type: 'error', error: { type: 'invalid_request_error', message: 'No.', event_id: 'other' } })
      expect(await tokensLeft()).toBe(1000 - COST)
      await say(session, { type: 'error', error: { type: 'invalid_request_error', message: 'No.', ...error } })
      expect(await tokensLeft()).toBe(1000)
    })

    it.each(['client', 'upstream'] as const)(
      'goes back when its %s vanishes before anything of it has come',
      async (who) => {
        const { gateway, open, tokensLeft } = await start({ tokensPerMinute: 1000, realtimeSessions: 5 })
        const session = await open()
        await judged(session, CREATE)
        expect(await tokensLeft()).toBe(1000 - COST)
        if (who === 'client') session.client.socket.terminate()
        else session.upstream.terminate()
        await freed(gateway, 'realtimeSessions')
        expect(await tokensLeft()).toBe(1000)
      },
    )

    it('is the conversation as well, also after an answer out of band', async () => {
      const { open, tokensLeft } = await start({ tokensPerMinute: 20_000 })
      const session = await open()
      await judged(session, CREATE)
      await say(session, CREATED)
      await say(session, doneWith(5000, 'completed', { conversation_id: 'conv_1' }))
      expect(await tokensLeft()).toBe(15_000)
      await judged(session, CREATE)
      expect(await tokensLeft()).toBe(15_000 - 5000 - COST)
      await say(session, CREATED)
      await say(session, doneWith(10, 'completed', { conversation_id: null }))
      expect(await tokensLeft()).toBe(14_990)
      await judged(session, CREATE)
      expect(await tokensLeft()).toBe(14_990 - 5000 - COST)
    })

    it('goes back but for what had passed of it when the session ends', async () => {
      const { gateway, open, tokensLeft } = await start({ tokensPerMinute: 1000, realtimeSessions: 5 })
      const session = await open()
      await judged(session, CREATE, CREATE)
      await say(session, CREATED)
      const delta = Buffer.alloc(2 * 48_000).toString('base64')
      session.upstream.send(JSON.stringify({ type: 'response.output_audio.delta', response_id: 'resp_1', delta }))
      await session.client.next('response.audio.delta')
      session.client.socket.terminate()
      await freed(gateway, 'realtimeSessions')
      expect(await tokensLeft()).toBe(1000 - 40)
    })

    it('is not taken for used up where the session itself goes on speaking into its answer', async () => {
      const { open } = await start({ tokensPerMinute: COST })
      const session = await open()
      await judged(session, CREATE, APPEND)
      expect(session.heard).toContain('input_audio_buffer.append')
      await say(session, CREATED)
      await say(session, doneWith(COST))
      await judged(session, APPEND)
      expect(session.heard.filter((type) => type === APPEND.type)).toHaveLength(1)
      expect(await session.client.next('error')).toMatchObject({ error: { code: 'rate_limit_exceeded' } })
    })
  })

  describe('An answer that the upstream begins by itself', () => {
    it('holds what it may use from its beginning on, and others ask in vain meanwhile', async () => {
      const { open, tokensLeft } = await start({ tokensPerMinute: 1500 })
      const [one, other] = [await open(), await open()]
      await say(one, CREATED)
      expect(await tokensLeft()).toBe(500)
      await judged(other, createOf(600))
      expect(other.heard).not.toContain('response.create')
      await say(one, doneWith(300))
      expect(await tokensLeft()).toBe(1200)
      await judged(other, createOf(600))
      expect(other.heard).toContain('response.create')
    })

    it('is heard though there is no room for it, and paid; the next one that is asked for is refused', async () => {
      const { open, tokensLeft } = await start({ tokensPerMinute: COST + 500 })
      const [one, other] = [await open(), await open()]
      await judged(one, CREATE)
      await say(other, CREATED)
      expect(await tokensLeft()).toBe(500)
      await say(other, doneWith(550))
      expect(await tokensLeft()).toBe(0)
      await judged(one, createOf(1))
      expect(createsOf([one, other])).toBe(1)
    })
  })

  describe('A session of a key without limits by the minute', () => {
    it('asks for as many answers as it likes', async () => {
      const { open } = await start({})
      const session = await open()
      await judged(session, createOf(1_000_000), createOf(1_000_000))
      expect(createsOf([session])).toBe(2)
    })
  })

  const HEADERS = { authorization: 'Bearer team', 'x-request-id': 'mine-1' }

  /** The answer to an upgrade that is granted; its socket stays open until the test is over. */
  async function granted({ url }: TestGateway): Promise<HttpAnswer> {
    const socket = await sendUpgrade(url, { headers: HEADERS })
    opened({ close: () => socket.destroy() })
    return await headOf(socket)
  }

  const limitsIn = ({ headers }: HttpAnswer): object => limitHeaders({ headers: Object.fromEntries(headers) })

  const RESET: unknown = expect.stringMatching(/^(?:1m0s|5\ds)$/)

  describe('A session of a key with limits', () => {
    it('begins with what is left of them in the head of its 101', async () => {
      const { gateway } = await start({ requestsPerMinute: 10, realtimeSessions: 2 })
      const answer = await granted(gateway)
      expect([answer.status, answer.headers.get('x-request-id')]).toEqual([101, 'mine-1'])
      expect(limitsIn(answer)).toEqual({
        'x-ratelimit-limit-requests': '10',
        'x-ratelimit-remaining-requests': '9',
        'x-ratelimit-reset-requests': RESET,
      })
    })

    it('that is one too many is refused in the words of chat, with what is left and when to come back', async () => {
      const { gateway, upstream } = await start({ requestsPerMinute: 10, realtimeSessions: 1 })
      await granted(gateway)
      const refused = await askUpgrade(gateway.url, { headers: HEADERS })
      expect(refused.status).toBe(429)
      expect(JSON.parse(refused.body.toString())).toEqual({
        error: {
          message:
            'The limit of 1 realtime sessions at once of this API key (key:team) is reached. ' +
            'Try again once one of them has ended.',
          type: 'rate_limit_error',
          param: null,
          code: 'concurrency_limit_exceeded',
        },
      })
      expect(refused.headers.get('content-type')).toBe('application/json')
      expect(refused.headers.get('x-request-id')).toBe('mine-1')
      expect(limitsIn(refused)).toEqual({
        'retry-after': '1',
        'x-gateway-limit': 'realtimeSessions; scope=key:team; reset=1',
        'x-ratelimit-limit-requests': '10',
        'x-ratelimit-remaining-requests': '9',
        'x-ratelimit-reset-requests': RESET,
      })
      expect(upstream.requests).toHaveLength(1)
    })

    it('that no request is left for is refused until the minute is over', async () => {
      const { gateway, upstream } = await start({ requestsPerMinute: 1 })
      await granted(gateway)
      const refused = await askUpgrade(gateway.url, { headers: HEADERS })
      const seconds = refused.headers.get('retry-after') ?? ''
      expect(Number(seconds)).toBeGreaterThan(50)
      expect(Number(seconds)).toBeLessThanOrEqual(60)
      const limit = 'The limit of 1 requests per minute of this API key (key:team)'
      expect(refused.status).toBe(429)
      expect(JSON.parse(refused.body.toString())).toEqual({
        error: {
          message: `${limit} is used up. It is reset in ${seconds} s.`,
          type: 'rate_limit_error',
          param: null,
          code: 'rate_limit_exceeded',
        },
      })
      expect(limitsIn(refused)).toEqual({
        'retry-after': seconds,
        'x-gateway-limit': `requestsPerMinute; scope=key:team; reset=${seconds}`,
        'x-ratelimit-limit-requests': '1',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': RESET,
      })
      expect(upstream.requests).toHaveLength(1)
    })
  })

  /** `gateway_limit_refusals_total` by limit, of those that have refused something. */
  async function refusalsOf({ application }: TestGateway): Promise<Record<string, number>> {
    const scrape = parseScrape(await application.get(Metrics).registry.metrics())
    const samples = scrape.get('gateway_limit_refusals_total')?.samples ?? []
    const refused = samples.filter(({ value }) => value > 0)
    return Object.fromEntries(refused.map(({ labels, value }) => [labels['limit'] ?? '', value]))
  }

  describe('The metric of refusals by limits', () => {
    it('counts each answer that a session is refused, under the limit that refused it', async () => {
      const { open, gateway } = await start({ tokensPerMinute: costOf(100) })
      const [one, other] = [await open(), await open()]
      await judged(one, createOf(100))
      expect(await refusalsOf(gateway)).toEqual({})
      await judged(other, createOf(100))
      await judged(one, createOf(100), createOf(100))
      expect(await refusalsOf(gateway)).toEqual({ tokensPerMinute: 3 })
    })

    it('counts of the audio that is refused the first piece until the reset, of each session', async () => {
      const { open, gateway } = await start({ audioSecondsPerMinute: 20 })
      const [one, other, third] = [await open(), await open(), await open()]
      await judged(one, { type: 'response.create' }, { type: 'response.create' })
      expect(await refusalsOf(gateway)).toEqual({})
      await judged(other, APPEND, APPEND, APPEND)
      expect(await refusalsOf(gateway)).toEqual({ audioSecondsPerMinute: 1 })
      await judged(third, APPEND, APPEND)
      expect(await refusalsOf(gateway)).toEqual({ audioSecondsPerMinute: 2 })
      // A handshake is a request like any other.
      await expect(open()).rejects.toThrow('429')
      expect(await refusalsOf(gateway)).toEqual({ audioSecondsPerMinute: 3 })
    })

    it('counts no request for a response that the upstream starts by itself, because it cannot be refused', async () => {
      const { open, gateway } = await start({ tokensPerMinute: costOf(100) + 1 })
      const [one, other] = [await open(), await open()]
      await judged(one, createOf(100))
      await say(other, CREATED)
      await say(other, doneWith(5))
      expect(await refusalsOf(gateway)).toEqual({})
    })
  })
})
