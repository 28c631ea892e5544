import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { TEST_KEY } from '../support/gateway.js'
import { COUNT_TOKENS, MESSAGES, messageText, startM1Gateway, type M1Gateway } from '../support/m1-gateway.js'
import { sendRaw, type RawAnswer, type RawRequest } from '../support/raw-http.js'
import { expectError } from '../support/messages-errors.js'

const LIMITED_KEY = 'limited-gateway-key'
const keys = [
  { id: 'test', key: TEST_KEY },
  { id: 'limited', key: LIMITED_KEY, models: ['claude-haiku-*'] },
]

let lab: M1Gateway

beforeAll(async () => {
  lab = await startM1Gateway({ keys, sections: { limits: { jsonBodyBytes: 20_000 } } })
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const send = (body: string | Buffer, more: Partial<RawRequest> = {}, target = lab): Promise<RawAnswer> =>
  sendRaw(target.gateway.url, { path: MESSAGES, body, ...more })

const THINK = (budget: unknown, maximum = 4000, type = 'enabled'): string =>
  messageText('Hi', {
    max_tokens: maximum,
    thinking: { type, ...(budget === undefined ? {} : { budget_tokens: budget }) },
  })

describe('the gateway refuses before the upstream is asked', () => {
  it.each<[string, Partial<RawRequest> & { body: string | Buffer }, number, string]>([
    ['no key', { body: messageText('Hi'), headers: { authorization: undefined } }, 401, 'authentication_error'],
    [
      'an unknown key',
      { body: messageText('Hi'), headers: { authorization: 'Bearer x' } },
      401,
      'authentication_error',
    ],
    [
      'an unknown x-api-key',
      { body: messageText('Hi'), headers: { authorization: undefined, 'x-api-key': 'x' } },
      401,
      'authentication_error',
    ],
    [
      'a model the key may not use',
      { body: messageText('Hi'), headers: { authorization: `Bearer ${LIMITED_KEY}` } },
      403,
      'permission_error',
    ],
    ['an unknown model', { body: messageText('Hi', { model: 'claude-none' }) }, 404, 'not_found_error'],
    ['a chat model', { body: messageText('Hi', { model: 'gpt-4o' }) }, 404, 'not_found_error'],
    ['a speech model', { body: messageText('Hi', { model: 'tts-1' }) }, 404, 'not_found_error'],
    ['an unknown path', { path: '/v1/messages/none', body: '{}' }, 404, 'not_found_error'],
    ['another method', { method: 'PUT', body: '{}' }, 405, 'invalid_request_error'],
    ['a body too large', { body: messageText('x'.repeat(20_000)) }, 413, 'request_too_large'],
    [
      'another content type',
      { body: messageText('Hi'), headers: { 'content-type': 'text/plain' } },
      415,
      'invalid_request_error',
    ],
    [
      'a compressed body',
      { body: messageText('Hi'), headers: { 'content-encoding': 'gzip' } },
      415,
      'invalid_request_error',
    ],
    ['broken JSON', { body: '{"model":' }, 400, 'invalid_request_error'],
    [
      'a second model',
      { body: messageText('Hi').replace('{', '{"model":"claude-opus-4-5",') },
      400,
      'invalid_request_error',
    ],
    ['no model', { body: messageText('Hi', { model: undefined }) }, 400, 'invalid_request_error'],
    ['no max_tokens', { body: messageText('Hi', { max_tokens: undefined }) }, 400, 'invalid_request_error'],
    ['max_tokens 0', { body: messageText('Hi', { max_tokens: 0 }) }, 400, 'invalid_request_error'],
    ['max_tokens 1.5', { body: messageText('Hi', { max_tokens: 1.5 }) }, 400, 'invalid_request_error'],
    ['max_tokens as text', { body: messageText('Hi', { max_tokens: '10' }) }, 400, 'invalid_request_error'],
    ['no messages', { body: messageText('Hi', { messages: undefined }) }, 400, 'invalid_request_error'],
    ['empty messages', { body: messageText('Hi', { messages: [] }) }, 400, 'invalid_request_error'],
    [
      'a message without content',
      { body: messageText('Hi', { messages: [{ role: 'user' }] }) },
      400,
      'invalid_request_error',
    ],
    [
      'content of a number',
      { body: messageText('Hi', { messages: [{ role: 'user', content: 5 }] }) },
      400,
      'invalid_request_error',
    ],
    ['stream as text', { body: messageText('Hi', { stream: 'true' }) }, 400, 'invalid_request_error'],
    ['thinking as text', { body: messageText('Hi', { thinking: 'enabled' }) }, 400, 'invalid_request_error'],
    ['thinking without a budget', { body: THINK(undefined) }, 400, 'invalid_request_error'],
    ['a budget of 1023', { body: THINK(1023) }, 400, 'invalid_request_error'],
    ['a budget as large as max_tokens', { body: THINK(1024, 1024) }, 400, 'invalid_request_error'],
    ['a budget over max_tokens', { body: THINK(5000) }, 400, 'invalid_request_error'],
    ['a budget of 1024.5', { body: THINK(1024.5) }, 400, 'invalid_request_error'],
    [
      'counting with a budget of 10',
      {
        path: COUNT_TOKENS,
        body: messageText('Hi', { max_tokens: undefined, thinking: { type: 'enabled', budget_tokens: 10 } }),
      },
      400,
      'invalid_request_error',
    ],
    [
      'counting for an unknown model',
      { path: COUNT_TOKENS, body: messageText('Hi', { max_tokens: undefined, model: 'gpt-4o' }) },
      404,
      'not_found_error',
    ],
  ])('%s', async (_name, { body, ...more }, status, type) => {
    const answer = await send(body, more)
    expectError(answer, status, type)
    expect(answer.headers['x-should-retry']).toBe('false')
    expect(lab.simulator.requests).toEqual([])
  })

  it('and names the field', async () => {
    expectError(await send(THINK(1023)), 400, 'invalid_request_error', /thinking\.budget_tokens.*1024/)
    const error = await send(messageText('Hi', { max_tokens: undefined }))
    expectError(error, 400, 'invalid_request_error', /max_tokens/)
  })
})

describe('the gateway accepts', () => {
  it.each([
    ['a budget one below max_tokens', THINK(1024, 1025), {}],
    ['a larger budget with the beta for it', THINK(5000), { 'anthropic-beta': 'interleaved-thinking-2025-05-14' }],
    ['thinking switched off', THINK(undefined, 100, 'disabled'), {}],
    ['an empty text block list', messageText('Hi', { system: [{ type: 'text', text: 'Be kind.' }] }), {}],
    ['null for what is optional', messageText('Hi', { thinking: null }), {}],
  ])('%s', async (_name, body, headers) => {
    await send(body, { headers })
    expect(lab.simulator.requests).toHaveLength(1)
    expect(lab.simulator.lastRequest?.body.toString()).toBe(body)
  })

  it('adaptive thinking for models that know it', async () => {
    const body = messageText('Hi', { model: 'claude-sonnet-4-6', thinking: { type: 'adaptive' } })
    expect((await send(body)).status).toBe(200)
  })

  it('a key in either header', async () => {
    const headers = { authorization: undefined, 'x-api-key': TEST_KEY }
    expect((await send(messageText('Hi'), { headers })).status).toBe(200)
    expect((await send(messageText('Hi'), { headers: { 'x-api-key': '' } })).status).toBe(200)
  })
})
