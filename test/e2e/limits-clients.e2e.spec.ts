import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { TRANSCRIPTIONS, TRANSLATIONS } from '../support/audio-uploads.js'
import { chat, CHAT_PATH, chatText, speechText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { type LimitedGateway, startLimitedGateway } from '../support/limited-gateway.js'
import { ANTHROPIC_CLIENTS, COUNT_TOKENS, message, MESSAGES, messageText } from '../support/m1-gateway.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { sendRaw } from '../support/raw-http.js'
import { openUpload } from '../support/slow-uploads.js'
import { filePart, MULTIPART, multipartBytes } from '../support/upload-server.js'

const TWO = { requestsPerMinute: 2 }

let lab: LimitedGateway

beforeAll(async () => {
  lab = await startLimitedGateway({
    'openai-0': TWO,
    'openai-1': TWO,
    'anthropic-0': { ...TWO, tokensPerMinute: 5000 },
    'anthropic-1': { ...TWO, tokensPerMinute: 5000 },
    families: { requestsPerMinute: 1 },
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

const JSON_BODY = { 'content-type': 'application/json' }

describe('A refusal', () => {
  const inAudio = { error: { code: 'rate_limit_exceeded', type: 'rate_limit_error' } }
  const inMessages = { type: 'error', error: { type: 'rate_limit_error' } }

  it.each([
    [CHAT_PATH, chatText('Hi'), JSON_BODY, inAudio],
    ['/v1/audio/speech', speechText('Hi'), JSON_BODY, inAudio],
    [TRANSCRIPTIONS, multipartBytes([filePart('no audio')]), MULTIPART, inAudio],
    [TRANSLATIONS, multipartBytes([filePart('no audio')]), MULTIPART, inAudio],
    [MESSAGES, messageText('Hi'), JSON_BODY, inMessages],
    [COUNT_TOKENS, messageText('Hi'), JSON_BODY, inMessages],
    ['/v1/document/parse', '{}', JSON_BODY, { code: 1302 }],
    ['/vidgen/v1/videos/text2video', '{}', JSON_BODY, { code: 1302 }],
    ['/vidgen/v1/videos/multi-image2video', '{}', JSON_BODY, { code: 1302 }],
  ])('is in the dialect of %s', async (path, body, type, expected) => {
    await lab.chat('families')
    const headers = { authorization: 'Bearer families', ...type }
    const answer = await sendRaw(lab.gateway.url, { path, headers, body })
    expect(answer.status).toBe(429)
    expect(JSON.parse(answer.text)).toMatchObject(expected)
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d?$/)
    expect(answer.headers['x-gateway-limit']).toMatch(/^requestsPerMinute; scope=key:families; reset=[1-9]\d?$/)
  })

  it.each([
    [CHAT_PATH, JSON_BODY],
    [MESSAGES, JSON_BODY],
    [TRANSCRIPTIONS, MULTIPART],
    ['/v1/document/parse', MULTIPART],
  ])('costs the caller no byte of a body: %s is refused before one is sent', async (path, type) => {
    await lab.chat('families')
    const headers = { authorization: 'Bearer families', ...type }
    const { answer, socket } = await openUpload(lab.gateway.url, 1_000_000, headers, path)
    await eventually(() => answer().startsWith('HTTP/1.1 429 '))
    socket.destroy()
  })
})
