import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Metrics } from '../../src/observability/metrics.js'
import { chat, CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { askAs, BY_MINUTE, inChat, inMessages, limitHeaders, REQUEST_ID, shownLimit } from '../support/limit-answers.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'
import { ANTHROPIC_CLIENTS, message, MESSAGES, messageText } from '../support/m1-gateway.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'

let lab: LimitedGateway

beforeAll(async () => {
  lab = await startLimitedGateway({
    tokens: { tokensPerMinute: 1000 },
    never: { tokensPerMinute: 100 },
  })
})
afterAll(() => lab.close())

describe('A caller of messages who has too few tokens left', () => {
  const body = messageText('Hi', { max_tokens: 900 })
  const controller = new AbortController()
  let hanging: Promise<unknown>

  beforeAll(async () => {
    const held = messageText('#hang', { max_tokens: 900 })
    hanging = lab.post('tokens', MESSAGES, held, controller.signal).catch(() => 'aborted')
    await eventually(async () => ((await lab.limits('tokens')).limits['tokensPerMinute']?.remaining ?? NaN) < 100)
  })
  afterAll(() => {
    controller.abort()
    return hanging
  })

  it('reads how many they are, how many the request may use, and when to come back', async () => {
    const answer = await askAs('tokens', lab.gateway, { path: MESSAGES, body })
    const seconds = answer.headers['retry-after'] ?? ''
    const left = String(answer.headers['anthropic-ratelimit-tokens-remaining'])
    expect(Number(left)).toBeGreaterThan(0)
    expect(Number(seconds)).toBeGreaterThan(30)
    const text =
      `The limit of 1000 tokens per minute of this API key (key:tokens) has ${left} left, and this request expects ` +
      `to use ${Math.ceil(body.length / 4) + 900}. It is reset in ${seconds} s.`
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text)).toEqual(inMessages({ message: text, ...BY_MINUTE }))
    expect(answer.headers['request-id']).toBe(REQUEST_ID)
    expect(limitHeaders(answer)).toEqual({
      'retry-after': seconds,
      'x-gateway-limit': `tokensPerMinute; scope=key:tokens; reset=${seconds}`,
      ...shownLimit(MESSAGES, 'tokens', 1000, left),
    })
  })

  it.each(ANTHROPIC_CLIENTS.map(([name, make]) => [name, make] as const))(
    'gets the error of its client: %s',
    async (_name, make) => {
      const error: unknown = await make(lab.gateway, { apiKey: 'tokens' })
        .messages.create(message('Hi', { max_tokens: 900 }))
        .catch((reason: unknown) => reason)
      expect(error).toMatchObject({ status: 429, error: { type: 'error', error: { type: 'rate_limit_error' } } })
      expect((error as Error).constructor.name).toBe('RateLimitError')
    },
  )
})

describe('A request that is larger than its limit', () => {
  const neverText = (tokens: number): string =>
    `The limit of 100 tokens per minute of this API key (key:never) is less than the ${tokens} that this request ` +
    'expects to use: it can never be served. Ask for less at once.'

  it.each([
    [CHAT_PATH, chatText('Hi', { max_tokens: 101 }), inChat],
    [MESSAGES, messageText('Hi', { max_tokens: 101 }), inMessages],
  ])('is told that waiting does not help, and no time to wait, at %s', async (path, body, dialect) => {
    const answer = await askAs('never', lab.gateway, { path, body })
    const text = neverText(Math.ceil(body.length / 4) + 101)
    const words = { ...BY_MINUTE, message: text, code: 'request_exceeds_limit' }
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text)).toEqual(dialect(words))
    expect(limitHeaders(answer)).toEqual({
      'x-should-retry': 'false',
      'x-gateway-limit': 'tokensPerMinute; scope=key:never',
      ...shownLimit(path, 'tokens', 100, 100),
    })
  })

  async function refusals(): Promise<number> {
    const text = await lab.gateway.application.get(Metrics).registry.metrics()
    return Number(/gateway_limit_refusals_total\{limit="tokensPerMinute"\} (\d+)/.exec(text)?.[1])
  }

  it.each([
    ...OPENAI_CLIENTS.map(([name, make]) => {
      const send = (): Promise<unknown> =>
        make(lab.gateway, { apiKey: 'never', maxRetries: 3 }).chat.completions.create(chat('Hi', { max_tokens: 101 }))
      return [name, send] as const
    }),
    ...ANTHROPIC_CLIENTS.map(([name, make]) => {
      const send = (): Promise<unknown> =>
        make(lab.gateway, { apiKey: 'never', maxRetries: 3 }).messages.create(message('Hi', { max_tokens: 101 }))
      return [name, send] as const
    }),
  ])('is sent once by a client that would try three times again: %s', async (_name, send) => {
    const before = await refusals()
    const error = await send().catch((reason: unknown) => reason as Error)
    expect((error as Error).constructor.name).toBe('RateLimitError')
    expect(await refusals()).toBe(before + 1)
  })
})
