import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { expectRefused, type Refusal } from '../support/bad-requests.js'
import { chat, CHAT_PATH, chatText, SPEECH_PATH, speechText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'

const LIMITED_KEY = 'limited-gateway-key'
const keys = [
  { id: 'test', key: TEST_KEY },
  { id: 'limited', key: LIMITED_KEY, models: ['tts-*', 'gpt-4o'] },
]

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway({ keys })
})
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const BODIES: Readonly<Record<string, string>> = { [CHAT_PATH]: chatText('Hello'), [SPEECH_PATH]: speechText('Hello') }
const UNAUTHORIZED: Refusal = { status: 401, type: 'authentication_error', code: 'invalid_api_key' }
const FORBIDDEN: Refusal = { status: 403, type: 'permission_error', code: 'model_not_allowed', param: 'model' }

describe.each([CHAT_PATH, SPEECH_PATH])('without a key of the gateway, %s', (path) => {
  it.each([
    ['missing', undefined, /^No API key/],
    ['empty', '', /^No API key/],
    ['without a scheme', TEST_KEY, /malformed/],
    ['of another scheme', `Basic ${TEST_KEY}`, /malformed/],
    ['without a key', 'Bearer ', /malformed/],
    ['of two words', `Bearer ${TEST_KEY} ${TEST_KEY}`, /malformed/],
    ['with a character that is not printable', 'Bearer caf\u00e9', /malformed/],
    ['of more than 512 characters', `Bearer ${'k'.repeat(513)}`, /malformed/],
    ['of very many characters', `Bearer ${'k'.repeat(12_000)}`, /malformed/],
    ['unknown', 'Bearer unknown-key-canary', /not valid/],
    ["the key in another letter's case", `Bearer ${TEST_KEY.toUpperCase()}`, /not valid/],
    ['a beginning of the key', `Bearer ${TEST_KEY.slice(0, -1)}`, /not valid/],
    ['the key and more', `Bearer ${TEST_KEY}x`, /not valid/],
  ])('answers 401 when the authorization is %s', async (_name, authorization, message) => {
    const refused = { ...UNAUTHORIZED, message }
    await expectRefused(lab, { path, body: BODIES[path] ?? '', headers: { authorization } }, refused)
    expect(lab.gateway.logText()).not.toContain('unknown-key-canary')
  })

  it('does not read the body', async () => {
    const headers = { authorization: undefined }
    await expectRefused(lab, { path, body: '{', headers }, UNAUTHORIZED)
    await expectRefused(lab, { path, body: 'x'.repeat(11_000_000), headers }, UNAUTHORIZED)
  })

  it('accepts no key in another header or in the query', async () => {
    const headers = { authorization: undefined, 'x-api-key': TEST_KEY, 'api-key': TEST_KEY }
    await expectRefused(lab, { path: `${path}?api_key=${TEST_KEY}`, body: BODIES[path] ?? '', headers }, UNAUTHORIZED)
  })

  it('accepts the scheme in any case', async () => {
    const headers = { authorization: `bearer   ${TEST_KEY}` }
    expect((await sendRaw(lab.gateway.url, { path, body: BODIES[path] ?? '', headers })).status).toBe(200)
  })
})

describe('a key with access to some models', () => {
  const headers = { authorization: `Bearer ${LIMITED_KEY}` }

  it.each([
    [CHAT_PATH, chatText('Hello', { model: 'gpt-4o' })],
    [SPEECH_PATH, speechText('Hello', { model: 'tts-1-hd' })],
  ])('is served on %s', async (path, body) => {
    expect((await sendRaw(lab.gateway.url, { path, body, headers })).status).toBe(200)
  })

  it.each([
    [CHAT_PATH, chatText('Hello', { model: 'gpt-4o-mini' })],
    [CHAT_PATH, chatText('Hello', { model: 'GPT-4o' })],
    [CHAT_PATH, chatText('Hello', { model: 'unknown-model' })],
    [SPEECH_PATH, speechText('Hello', { model: 'gpt-4o-mini-tts' })],
  ])('is refused on %s for %s', async (path, body) => {
    await expectRefused(lab, { path, body, headers }, FORBIDDEN)
  })
})

describe('a model', () => {
  it.each([
    ['unknown', 'no-such-model'],
    ['of speech', 'tts-1'],
    ['of transcription', 'whisper-1'],
    ['of messages', 'claude-sonnet-4-5'],
    ['of realtime', 'gpt-realtime'],
    ['that is a word of the language', 'constructor'],
    ['with markup', '<script>alert(1)</script>\u0000\u2028'],
    ['of endless length', 'm'.repeat(100_000)],
  ])('%s is not found on chat', async (_name, model) => {
    const refused = { status: 404, code: 'model_not_found', param: 'model' }
    await expectRefused(lab, { path: CHAT_PATH, body: chatText('Hello', { model }) }, refused)
  })

  it.each([
    ['unknown', 'no-such-model'],
    ['of chat', 'gpt-4o'],
    ['of transcription', 'whisper-1'],
    ['of a provider without a channel', 'speech-02-hd'],
  ])('%s is not found on speech', async (_name, model) => {
    const refused = { status: 400, code: 'model_not_found', param: 'model' }
    await expectRefused(lab, { path: SPEECH_PATH, body: speechText('Hello', { model }) }, refused)
  })
})

describe.each(OPENAI_CLIENTS)('the error classes of %s', (_name, makeClient) => {
  const wrong = { apiKey: 'wrong' }
  const limited = { apiKey: LIMITED_KEY }

  it.each([
    ['BadRequestError', {}, { temperature: 3 }, 400, 'decimal_above_max_value', 'temperature', 'invalid_request_error'],
    ['AuthenticationError', wrong, {}, 401, 'invalid_api_key', null, 'authentication_error'],
    ['PermissionDeniedError', limited, {}, 403, 'model_not_allowed', 'model', 'permission_error'],
    ['UnprocessableEntityError', {}, chat('#422'), 422, null, null, 'invalid_request_error'],
    ['RateLimitError', {}, chat('#429'), 429, 'rate_limit_exceeded', null, 'rate_limit_error'],
    ['InternalServerError', {}, chat('#500'), 502, 'upstream_failed', null, 'upstream_error'],
    ['NotFoundError', {}, { model: 'no-such-model' }, 404, 'model_not_found', 'model', 'invalid_request_error'],
  ])('hold %s', async (className, options, fields, status, code, param, type) => {
    const error: unknown = await makeClient(lab.gateway, options)
      .chat.completions.create({ ...chat('Hello'), ...fields })
      .catch((thrown: unknown) => thrown)
    expect((error as Error).constructor.name).toBe(className)
    const requestID: unknown = expect.stringMatching(/^req_/)
    // The old client calls it `request_id`.
    const id = 'requestID' in (error as object) ? { requestID } : { request_id: requestID }
    expect(error).toMatchObject({ status, code, param, type, ...id })
  })

  it('do not make the client try again what cannot succeed', async () => {
    const client = makeClient(lab.gateway, { maxRetries: 2 })
    await expect(client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: '#401' })).rejects.toMatchObject({
      status: 500,
    })
    expect(lab.simulator.requests).toHaveLength(1)
  })
})
