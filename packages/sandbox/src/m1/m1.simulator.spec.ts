import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { helloMessage, M1SimulatorLab } from '../../test/chat-simulator-labs.js'

const lab = new M1SimulatorLab()
const { post } = lab

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe('what messages refuses', () => {
  const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} }] }
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }
  const user = helloMessage.messages[0]
  const newVersion = { 'anthropic-version': '2026-10-21' }
  const cases: readonly [string, object, Record<string, string>, string][] = [
    ['no max_tokens', { max_tokens: undefined }, {}, 'max_tokens: Field required'],
    ['unknown field', { foo: 1 }, {}, 'foo: Extra inputs are not permitted'],
    [
      'an unknown version',
      {},
      { 'anthropic-version': '2020-01-01' },
      'anthropic-version: "2020-01-01" is not a valid version',
    ],
    ['temperature in the new version', { temperature: 1 }, newVersion, 'temperature: Extra inputs are not permitted'],
    [
      'a document from the assistant in the new version',
      { messages: [user, { role: 'assistant', content: [{ type: 'document', source: { type: 'url' } }] }, user] },
      newVersion,
      'not permitted in assistant messages',
    ],
    [
      'budget too small',
      { thinking: { type: 'enabled', budget_tokens: 1000 } },
      {},
      'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024',
    ],
    [
      'budget not below max_tokens',
      { thinking: { type: 'enabled', budget_tokens: 1024 } },
      {},
      '`max_tokens` must be greater than `thinking.budget_tokens`.',
    ],
    [
      'temperature with thinking',
      { max_tokens: 2000, temperature: 0.5, thinking: { type: 'enabled', budget_tokens: 1024 } },
      {},
      '`temperature` may only be set to 1 when thinking is enabled',
    ],
    [
      'old thinking on a new model',
      { model: 'claude-opus-4-7', max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } },
      {},
      'not supported by this model',
    ],
    [
      'more than the model can say',
      { model: 'claude-opus-4-1', max_tokens: 48_000 },
      {},
      'max_tokens: 48000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4-1',
    ],
    [
      'missing tool result',
      { messages: [user, use, user] },
      {},
      '`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.',
    ],
    [
      'text before the tool result',
      { messages: [user, use, { role: 'user', content: [{ type: 'text', text: 'x' }, result] }] },
      {},
      'without `tool_result` blocks immediately after',
    ],
    [
      'stray tool result',
      { messages: [{ role: 'user', content: [result] }] },
      {},
      'unexpected `tool_use_id` found in `tool_result` blocks: toolu_1',
    ],
    [
      'empty text',
      { messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] },
      {},
      'text content blocks must be non-empty',
    ],
    [
      'system role on a classic model',
      { messages: [{ role: 'system', content: 'x' }] },
      {},
      'Unexpected role "system"',
    ],
    [
      'a chat-style tool',
      { tools: [{ type: 'function', function: { name: 'f' } }] },
      {},
      'tools.0.name: Field required',
    ],
  ]

  it.each(cases)('%s', async (_name, change, headers, message) => {
    const response = await post({ ...helloMessage, ...change }, headers)
    expect(response.status).toBe(400)
    const body = (await response.json()) as {
      type: string
      request_id: string
      error: { type: string; message: string }
    }
    expect(body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
    expect(body.error.message).toContain(message)
    expect(body.request_id).toBe(response.headers.get('request-id'))
  })

  it('credentials, versions, models and bodies', async () => {
    const raw = (headers: Record<string, string>): Promise<Response> =>
      fetch(`${lab.simulator.url}/v1/messages`, { method: 'POST', headers, body: '{}' })
    expect(await (await raw({})).json()).toMatchObject({
      error: { type: 'authentication_error', message: 'x-api-key header is required' },
    })
    expect(await (await raw({ 'x-api-key': 'no' })).json()).toMatchObject({ error: { message: 'invalid x-api-key' } })
    expect(await (await raw({ 'x-api-key': 'sk-ant-test' })).json()).toMatchObject({
      error: { message: 'anthropic-version: header is required' },
    })
    const missing = await post({ ...helloMessage, model: 'missing-claude' })
    expect([missing.status, ((await missing.json()) as { error: object }).error]).toEqual([
      404,
      { type: 'not_found_error', message: 'model: missing-claude' },
    ])
    expect((await post('{"model":')).status).toBe(400)
  })
})
