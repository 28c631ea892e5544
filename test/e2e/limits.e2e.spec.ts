import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { toFile } from 'openai'
import { sample } from '../support/audio-uploads.js'
import { chat, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'
import { ANTHROPIC_CLIENTS, message, MESSAGES, messageText } from '../support/m1-gateway.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'

const TWO = { requestsPerMinute: 2 }

let lab: LimitedGateway

beforeAll(async () => {
  lab = await startLimitedGateway({
    'openai-0': TWO,
    'openai-1': TWO,
    'anthropic-0': { ...TWO, tokensPerMinute: 5000 },
    'anthropic-1': { ...TWO, tokensPerMinute: 5000 },
    reads: { requestsPerMinute: 1 },
    places: { concurrency: 1 },
    tokens: { tokensPerMinute: 1000 },
    failing: { tokensPerMinute: 1000 },
    streaming: { tokensPerMinute: 100_000, concurrency: 2 },
    speech: { audioSecondsPerMinute: 10 },
    transcription: { audioSecondsPerMinute: 3, tokensPerMinute: 1000 },
    families: { requestsPerMinute: 1 },
    never: { tokensPerMinute: 100 },
    free: undefined,
  })
})
afterAll(() => lab.close())

describe.each(OPENAI_CLIENTS.map(([name, make], index) => [name, make, `openai-${index}`] as const))(
  'A caller with %s that has no requests left',
  (_name, make, apiKey) => {
    it('gets its error with the limit, and what is left with each answer', async () => {
      const client = make(lab.gateway, { apiKey })
      const { response } = await client.chat.completions.create(chat('Hi')).withResponse()
      expect(response.headers.get('x-ratelimit-limit-requests')).toBe('2')
      expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('1')
      expect(response.headers.get('x-ratelimit-reset-requests')).toMatch(/^(?:1m0s|5\ds)$/)
      await client.chat.completions.create(chat('Hi'))
      const error = (await client.chat.completions.create(chat('Hi')).catch((reason: unknown) => reason)) as {
        readonly status: number
        readonly code: string
        readonly type: string
        readonly message: string
        readonly constructor: { readonly name: string }
        readonly headers: Headers | Record<string, string>
      }
      expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' })
      expect(error.constructor.name).toBe('RateLimitError')
      expect(error.message).toMatch(
        new RegExp(
          `The limit of 2 requests per minute of this API key \\(key:${apiKey}\\) is used up. It is reset in \\d+ s.`,
        ),
      )
      const headers = new Headers(error.headers)
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(30)
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
      expect(headers.get('x-gateway-limit')).toBe(
        `requestsPerMinute; scope=key:${apiKey}; reset=${headers.get('retry-after')}`,
      )
      expect(headers.get('x-ratelimit-remaining-requests')).toBe('0')
      expect(headers.get('x-should-retry')).toBeNull()
    })
  },
)

describe.each(ANTHROPIC_CLIENTS.map(([name, make], index) => [name, make, `anthropic-${index}`] as const))(
  'A caller with %s that has no requests left',
  (_name, make, apiKey) => {
    it("gets its family's error and headers", async () => {
      const client = make(lab.gateway, { apiKey })
      const { response } = await client.messages.create(message('Hi')).withResponse()
      expect(response.headers.get('anthropic-ratelimit-requests-limit')).toBe('2')
      expect(response.headers.get('anthropic-ratelimit-requests-remaining')).toBe('1')
      expect(Date.parse(response.headers.get('anthropic-ratelimit-requests-reset') ?? '')).toBeGreaterThan(Date.now())
      expect(response.headers.get('anthropic-ratelimit-tokens-limit')).toBe('5000')
      // While it is under way: what it may use at most.
      expect(Number(response.headers.get('anthropic-ratelimit-tokens-remaining'))).toBeLessThanOrEqual(4800)
      expect(response.headers.get('x-ratelimit-limit-requests')).toBeNull()
      await client.messages.create(message('Hi'))
      const error: unknown = await client.messages.create(message('Hi')).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ status: 429, error: { type: 'error', error: { type: 'rate_limit_error' } } })
      expect((error as Error).constructor.name).toBe('RateLimitError')
      const { headers } = error as { headers: Headers }
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(30)
      expect(headers.get('anthropic-ratelimit-requests-remaining')).toBe('0')
      expect(headers.get('x-gateway-limit')).toMatch(/^requestsPerMinute; scope=key:anthropic-\d; reset=\d+$/)
    })
  },
)

describe('A refusal', () => {
  it.each([
    ['/v1/audio/speech', speechText('Hi'), { error: { code: 'rate_limit_exceeded', type: 'rate_limit_error' } }],
    [MESSAGES, messageText('Hi'), { type: 'error', error: { type: 'rate_limit_error' } }],
    ['/v1/document/parse', '{}', { code: 1302 }],
    ['/vidgen/v1/videos/text2video', '{}', { code: 1302 }],
    ['/vidgen/v1/videos/multi-image2video', '{}', { code: 1302 }],
  ])('is in the dialect of %s', async (path, body, expected) => {
    await lab.chat('families')
    const answer = await lab.post('families', path, body)
    expect(answer.status).toBe(429)
    expect(await answer.json()).toMatchObject(expected)
    expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d?$/)
    expect(answer.headers.get('x-gateway-limit')).toMatch(/^requestsPerMinute; scope=key:families; reset=[1-9]\d?$/)
  })

  it('costs the caller no byte of a body: it is told before it sends one', async () => {
    await lab.chat('families')
    const answer = await lab.post('families', '/v1/chat/completions', 'not JSON at all')
    expect(answer.status).toBe(429)
  })
})

describe('A limit of requests', () => {
  it('is not touched by reads, and questions about limits are free', async () => {
    for (let count = 0; count < 3; count++) {
      const answer = await lab.get('reads', '/v1/models')
      expect([answer.status, answer.headers.get('x-ratelimit-remaining-requests')]).toEqual([200, '1'])
    }
    await lab.limits('reads')
    expect((await lab.chat('reads')).status).toBe(200)
    expect((await lab.chat('reads')).status).toBe(429)
    expect((await lab.get('reads', '/v1/models')).status).toBe(200)
    expect((await lab.limits('reads')).limits['requestsPerMinute']).toMatchObject({ limit: 1, remaining: 0 })
  })
})

describe('A limit of requests at once', () => {
  it('is free again whatever becomes of the call that filled it', async () => {
    const inUse = async (): Promise<number | undefined> => (await lab.limits('places')).limits['concurrency']?.in_use
    const controller = new AbortController()
    const hanging = lab.chat('places', '#hang', {}, controller.signal).catch(() => 'aborted')
    await eventually(async () => (await inUse()) === 1)
    const refused = await lab.chat('places')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.headers.get('x-gateway-limit')).toBe('concurrency; scope=key:places; reset=1')
    expect(await refused.json()).toMatchObject({ error: { code: 'concurrency_limit_exceeded' } })
    const read = await lab.get('places', '/imggen/task/1/fetch')
    expect([read.status, await read.json()]).toMatchObject([429, { code: 1303 }])
    controller.abort()
    expect(await hanging).toBe('aborted')
    await eventually(async () => (await inUse()) === 0)
    for (const text of ['Hello', '#500', '#cut', '#reset', 'Hello']) {
      const answer = await lab.chat('places', text)
      expect(answer.status).not.toBe(429)
      await answer.text().catch(() => 'cut')
      await eventually(async () => (await inUse()) === 0)
    }
    expect((await lab.post('places', '/v1/chat/completions', '{')).status).toBe(400)
    await eventually(async () => (await inUse()) === 0)
  })
})

describe('A limit of tokens', () => {
  const remaining = async (key: string): Promise<number> =>
    (await lab.limits(key)).limits['tokensPerMinute']?.remaining ?? NaN

  it('is reserved by what a request may use and settled by what it has used', async () => {
    const answer = await lab.chat('tokens', 'Hello', { max_tokens: 900 })
    expect(Number(answer.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThanOrEqual(100)
    const { usage } = (await answer.json()) as { usage: { total_tokens: number } }
    await eventually(async () => (await remaining('tokens')) === 1000 - usage.total_tokens)
    const controller = new AbortController()
    const hanging = lab.chat('tokens', '#hang', { max_tokens: 900 }, controller.signal).catch(() => 'aborted')
    await eventually(async () => (await remaining('tokens')) < 100)
    const refused = await lab.chat('tokens', 'Hello', { max_tokens: 900 })
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({
      error: { code: 'rate_limit_exceeded', message: expect.stringContaining('and this request expects to use') },
    })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1)
    controller.abort()
    await hanging
    await eventually(async () => (await remaining('tokens')) === 1000 - usage.total_tokens)
  })

  it.each(['#500', '#reset', '#malformed', '#400', '#429', '#html'])(
    'is given back when the upstream fails: %s',
    async (text) => {
      await (await lab.chat('failing', text, { max_tokens: 900 })).text()
      await eventually(async () => (await remaining('failing')) === 1000)
    },
  )

  it('is told apart from one that can never be served, which nobody is to try again', async () => {
    const answer = await lab.chat('never', 'Hello', { max_tokens: 101 })
    expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([
      429,
      'false',
      null,
    ])
    expect(await answer.json()).toMatchObject({
      error: { code: 'request_exceeds_limit', message: expect.stringContaining('it can never be served') },
    })
    expect(answer.headers.get('x-gateway-limit')).toBe('tokensPerMinute; scope=key:never')
  })

  it('pays for a stream what it was told of it', async () => {
    const answer = await lab.chat('streaming', 'Hello #chunks=20', {
      stream: true,
      stream_options: { include_usage: true },
    })
    const total = /"total_tokens": ?(\d+)/.exec(await answer.text())?.[1]
    expect(Number(total)).toBeGreaterThan(20)
    await eventually(async () => (await remaining('streaming')) === 100_000 - Number(total))
  })
})

describe('A limit of audio', () => {
  it('is used by the length of what is to be spoken', async () => {
    const answer = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(90)))
    expect([answer.status, answer.headers.get('x-ratelimit-remaining-audio-seconds')]).toEqual([200, '4'])
    await answer.arrayBuffer()
    const refused = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(90)))
    expect([refused.status, refused.headers.get('x-ratelimit-limit-audio-seconds')]).toEqual([429, '10'])
    const never = await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(200)))
    expect([never.status, never.headers.get('x-should-retry')]).toEqual([429, 'false'])
    expect((await lab.post('speech', SPEECH_PATH, speechText('a'.repeat(50)))).status).toBe(200)
  })

  it('is used by the length of what was heard, and tokens by what the model made of it', async () => {
    const [, make] = OPENAI_CLIENTS[0] as (typeof OPENAI_CLIENTS)[number]
    const client = make(lab.gateway, { apiKey: 'transcription' })
    const file = await toFile(sample('tone.wav'), 'tone.wav')
    const { data, response } = await client.audio.transcriptions
      .create({ model: 'gpt-4o-mini-transcribe', file })
      .withResponse()
    const { usage } = data as { usage?: { total_tokens: number } }
    const left = Number(response.headers.get('x-ratelimit-remaining-audio-seconds'))
    expect(left).toBeLessThan(3)
    await eventually(async () => {
      const { limits } = await lab.limits('transcription')
      return limits['tokensPerMinute']?.remaining === 1000 - (usage?.total_tokens ?? NaN)
    })
    expect((await lab.limits('transcription')).limits['audioSecondsPerMinute']?.remaining).toBe(left)
  })
})

describe('A key without limits', () => {
  it('hears of none but those of the upstream', async () => {
    const answer = await lab.chat('free')
    expect([answer.status, answer.headers.get('x-gateway-limit')]).toEqual([200, null])
    expect(answer.headers.get('x-ratelimit-limit-requests')).not.toBe('2')
    expect(await lab.limits('free')).toEqual({ object: 'limits', scope: 'key:free', shared: false, limits: {} })
  })
})
