import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { TEST_KEY } from '../support/gateway.js'
import { anthropic0, anthropic1, message, startM1Gateway, type M1Gateway } from '../support/m1-gateway.js'
import { type MessagesError } from '../support/messages-errors.js'

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

describe.each([
  ['@anthropic-ai/sdk 0.137.0', anthropic0],
  ['@anthropic-ai/sdk 1.11.0', anthropic1],
] as const)('%s without retries', (name, makeClient) => {
  it.each([
    ['an unknown key', { apiKey: 'unknown' }, {}, undefined, 401, 'AuthenticationError', 'authentication_error'],
    ['a forbidden model', { apiKey: LIMITED_KEY }, {}, undefined, 403, 'PermissionDeniedError', 'permission_error'],
    ['a model of another class', {}, { model: 'gpt-4o' }, undefined, 404, 'NotFoundError', 'not_found_error'],
    ['a bad field', {}, { max_tokens: 0 }, undefined, 400, 'BadRequestError', 'invalid_request_error'],
    ['a refusal of the upstream', {}, {}, '422', 422, 'UnprocessableEntityError', 'invalid_request_error'],
    ['a busy upstream', {}, {}, '429', 429, 'RateLimitError', 'rate_limit_error'],
    ['a failed upstream', {}, {}, '500', 502, 'InternalServerError', 'api_error'],
    ['a channel whose key is bad', {}, {}, '401', 502, 'InternalServerError', 'api_error'],
    ['a channel without credit', {}, {}, 'quota', 502, 'InternalServerError', 'api_error'],
  ] as const)('throws for %s the right error', async (_case, options, fields, fault, status, className, type) => {
    if (fault !== undefined) lab.simulator.queueFault(fault)
    const error: unknown = await makeClient(lab.gateway, options)
      .messages.create(message('Hi', fields))
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ status, error: { type: 'error', error: { type } } })
    expect((error as Error).constructor.name).toBe(className)
    const { requestID, error: body } = error as { requestID: string; error: MessagesError }
    expect(requestID).toMatch(/^req_[0-9a-f]{32}$/)
    expect(body.request_id).toBe(requestID)
  })

  it('throws for a body too large', async () => {
    const call = makeClient(lab.gateway).messages.create(message('x'.repeat(30_000)))
    await expect(call).rejects.toMatchObject({ status: 413, error: { error: { type: 'request_too_large' } } })
    expect(name).toContain('@anthropic-ai')
  })
})
