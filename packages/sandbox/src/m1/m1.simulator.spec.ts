import Anthropic from '@anthropic-ai/sdk'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { helloMessage, M1SimulatorLab, tool } from '../../test/chat-simulator-labs.js'
import { isSignatureOf, THINKING_TEXT } from './m1-thoughts.js'

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
  const holding = (...content: object[]): object => ({
    messages: [user, use, { role: 'user', content: [{ ...result, content }] }],
  })
  const gif = { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'R0lGODlh' } }
  const newVersion = { 'anthropic-version': '2026-10-21' }
  const cases: readonly [string, object, string, Record<string, string>?][] = [
    ['no max_tokens', { max_tokens: undefined }, 'max_tokens: Field required'],
    ['unknown field', { foo: 1 }, 'foo: Extra inputs are not permitted'],
    [
      'an unknown version',
      {},
      'anthropic-version: "2020-01-01" is not a valid version',
      { 'anthropic-version': '2020-01-01' },
    ],
    ['temperature in the new version', { temperature: 1 }, 'temperature: Extra inputs are not permitted', newVersion],
    [
      'a document from the assistant in the new version',
      { messages: [user, { role: 'assistant', content: [{ type: 'document', source: { type: 'url' } }] }, user] },
      'not permitted in assistant messages',
      newVersion,
    ],
    [
      'budget too small',
      { thinking: { type: 'enabled', budget_tokens: 1000 } },
      'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024',
    ],
    [
      'budget not below max_tokens',
      { thinking: { type: 'enabled', budget_tokens: 1024 } },
      '`max_tokens` must be greater than `thinking.budget_tokens`.',
    ],
    [
      'temperature with thinking',
      { max_tokens: 2000, temperature: 0.5, thinking: { type: 'enabled', budget_tokens: 1024 } },
      '`temperature` may only be set to 1 when thinking is enabled',
    ],
    [
      'old thinking on a new model',
      { model: 'claude-opus-4-7', max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } },
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"',
    ],
    [
      'thinking turned off where it cannot be',
      { model: 'claude-opus-5-5', thinking: { type: 'disabled' } },
      '"thinking.type.disabled" is not supported for this model.',
    ],
    [
      'adaptive thinking on an older model',
      { model: 'claude-haiku-4-5', thinking: { type: 'adaptive' } },
      'adaptive thinking is not supported on this model',
    ],
    [
      'an effort on an older model',
      { model: 'claude-sonnet-4-5', output_config: { effort: 'low' } },
      'This model does not support the effort parameter.',
    ],
    ['an unknown effort', { output_config: { effort: 'huge' } }, "output_config.effort: Input should be 'low'"],
    [
      'another output format',
      { output_config: { format: { type: 'xml' } } },
      "output_config.format.type: Input should be 'json_schema'",
    ],
    [
      'a forced tool on one of the newest models',
      { model: 'claude-opus-5-5', tools: [tool], tool_choice: { type: 'any' } },
      'not supported for this model',
    ],
    ['an unknown speed', { speed: 'warp' }, "speed: Input should be 'standard' or 'fast'"],
    ['an unknown service tier', { service_tier: 'flex' }, "service_tier: Input should be 'auto' or 'standard_only'"],
    ['a container of another shape', { container: { name: 'x' } }, 'container.name: Extra inputs are not permitted'],
    [
      'a server tool of another name',
      { tools: [{ type: 'web_search_20250305', name: 'search' }] },
      "tools.0.web_search_20250305.name: Input should be 'web_search'",
    ],
    [
      'more than the model can say',
      { model: 'claude-opus-4-1', max_tokens: 48_000 },
      'max_tokens: 48000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4-1',
    ],
    [
      'more than the model of another spelling can say',
      { model: 'claude-opus-4-0', max_tokens: 48_000 },
      'max_tokens: 48000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4-0',
    ],
    [
      'missing tool result',
      { messages: [user, use, user] },
      '`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.',
    ],
    [
      'text before the tool result',
      { messages: [user, use, { role: 'user', content: [{ type: 'text', text: 'x' }, result] }] },
      'without `tool_result` blocks immediately after',
    ],
    [
      'an id of two calls',
      { messages: [user, use, { role: 'user', content: [result] }, use, { role: 'user', content: [result] }] },
      '`tool_use` ids must be unique',
    ],
    [
      'stray tool result',
      { messages: [{ role: 'user', content: [result] }] },
      'unexpected `tool_use_id` found in `tool_result` blocks: toolu_1',
    ],
    [
      'empty text',
      { messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] },
      'text content blocks must be non-empty',
    ],
    [
      'text of white space',
      { messages: [{ role: 'user', content: [{ type: 'text', text: ' \n' }] }] },
      'text content blocks must contain non-whitespace text',
    ],
    [
      'a message of white space',
      { messages: [{ role: 'user', content: ' ' }] },
      'text content blocks must contain non-whitespace text',
    ],
    [
      'a part of chat in a result',
      holding({ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }),
      "messages.2.content.0.tool_result.content.0: Input tag 'image_url' found using 'type' does not match",
    ],
    [
      'a picture of no media type in a result',
      holding({ type: 'text', text: 'a picture' }, { type: 'image', source: { type: 'base64', data: 'R0lGODlh' } }),
      'messages.2.content.0.tool_result.content.1.image.source.base64.media_type: Input should be',
    ],
    [
      'a part that is no object in a result',
      holding(['x']),
      'tool_result.content.0: Input should be a valid dictionary',
    ],
    [
      'a picture in the result of a failure',
      { messages: [user, use, { role: 'user', content: [{ ...result, is_error: true, content: [gif] }] }] },
      'all content must be type "text" if "is_error" is true',
    ],
    [
      'a long name of a call',
      { messages: [user, { ...use, content: [{ ...use.content[0], name: 'n'.repeat(201) }] }] },
      'tool_use.name: String should have at most 200 characters',
    ],
    ['system role on a classic model', { messages: [{ role: 'system', content: 'x' }] }, 'Unexpected role "system"'],
    [
      'a chat-style tool',
      { tools: [{ type: 'function', function: { name: 'f' } }] },
      "tools.0: Input tag 'function' found using 'type' does not match any of the expected tags: 'bash_20250124'",
    ],
  ]

  it.each(cases)('%s', async (_name, change, message, headers = {}) => {
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

describe('what messages accepts with its beta header only', () => {
  const server = { type: 'url', name: 'files', url: 'https://mcp.example.com/sse' }
  const edits = [{ type: 'clear_tool_uses_20250919' }]
  const schema = { type: 'object', properties: { city: { type: 'string', examples: ['Paris'] } }, required: ['city'] }
  const cases: readonly [string, string, object][] = [
    ['billing_policy', 'user-profiles-billing-2026-10-01', { billing_policy: { bill_to: 'self' } }],
    ['compaction', 'compact-2026-09-04', { compaction: { type: 'summarize' } }],
    ['context_management', 'context-management-2025-06-27', { context_management: { edits } }],
    ['fallback_credit_token', 'fallback-credit-2026-07-01', { fallback_credit_token: 'token' }],
    ['fallbacks', 'server-side-fallback-2026-07-01', { fallbacks: 'default' }],
    ['mcp_servers', 'mcp-client-2025-04-04', { mcp_servers: [server] }],
    ['output_format', 'structured-outputs-2025-11-13', { output_format: { type: 'json_schema', schema } }],
    ['thread', 'message-threads-2026-08-12', { thread: { type: 'create' } }],
    ['speed', 'fast-mode-2026-02-01', { speed: 'fast' }],
    [
      'output_config.task_budget',
      'task-budgets-2026-03-13',
      { output_config: { task_budget: { type: 'tokens', total: 20_000 } } },
    ],
  ]

  it.each(cases)('%s: %s', async (field, beta, change) => {
    const refused = await post({ ...helloMessage, ...change })
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining(`"${field}: Extra inputs are not permitted"`),
    ])
    const accepted = await post({ ...helloMessage, ...change }, { 'anthropic-beta': `other-1,${beta}` })
    expect([accepted.status, await accepted.text()]).toEqual([200, expect.stringContaining('"type":"message"')])
  })

  const betaOf = (name: string): string => cases.find(([field]) => field === name)?.[1] ?? ''
  const wrong: readonly [string, string, object, string][] = [
    [
      'an unknown edit',
      betaOf('context_management'),
      { context_management: { edits: [{ type: 'x' }] } },
      "Input tag 'x'",
    ],
    [
      'an edit of another beta',
      betaOf('context_management'),
      { context_management: { edits: [{ type: 'compact_20260112' }] } },
      "context_management.edits.0: Input tag 'compact_20260112'",
    ],
    [
      'a server without a name',
      betaOf('mcp_servers'),
      { mcp_servers: [{ type: 'url', url: 'https://x' }] },
      '.name: Field',
    ],
    [
      'tools of a server that is not there',
      'mcp-client-2025-11-20',
      { mcp_servers: [server], tools: [{ type: 'mcp_toolset', mcp_server_name: 'mail' }] },
      "MCP server 'mail' not found in mcp_servers",
    ],
    ['a thread without its message', betaOf('thread'), { thread: { type: 'continue' } }, 'previous_message_id: Field'],
  ]

  it.each(wrong)('and not %s', async (_name, beta, change, message) => {
    const response = await post({ ...helloMessage, ...change }, { 'anthropic-beta': beta })
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(message)])
  })

  it('tools that have a beta of their own', async () => {
    const tools = [{ type: 'computer_20250124', name: 'computer', display_width_px: 1, display_height_px: 1 }]
    const refused = await post({ ...helloMessage, tools })
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining("Input tag 'computer_20250124'"),
    ])
    const beta = { 'anthropic-beta': 'computer-use-2025-01-24' }
    expect((await post({ ...helloMessage, tools }, beta)).status).toBe(200)
    const toolset = { mcp_servers: [server], tools: [{ type: 'mcp_toolset', mcp_server_name: 'files' }] }
    expect((await post({ ...helloMessage, ...toolset }, { 'anthropic-beta': 'mcp-client-2025-11-20' })).status).toBe(
      200,
    )
  })

  it('a conversation that is held, and goes on with the new turn only', async () => {
    const messages = [{ role: 'user' as const, content: 'the weather please' }]
    const betas = ['message-threads-2026-08-12']
    const open = { ...helloMessage, messages, tools: [tool], betas, thread: { type: 'create' as const } }
    for (const create of [
      () => lab.newClient.beta.messages.create(open),
      () => lab.newClient.beta.messages.stream(open).finalMessage(),
    ]) {
      const first = await create()
      const call = first.content.find((block) => block.type === 'tool_use')
      const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'sunny' }
      const next = await lab.newClient.beta.messages.create({
        ...open,
        messages: [{ role: 'user', content: [result] }],
        thread: { type: 'continue', previous_message_id: first.id },
      })
      expect(next.content).toMatchObject([{ text: 'The tools answered: sunny' }])
    }
    const thread = { type: 'continue' as const, previous_message_id: 'msg_unknown' }
    await expect(lab.newClient.beta.messages.create({ ...open, thread })).rejects.toMatchObject({ status: 404 })
  })

  it('a conversation that is to be summarized', async () => {
    const ask = { ...helloMessage, betas: ['compact-2026-09-04'], compaction: { type: 'summarize' as const } }
    for (const answer of [
      await lab.newClient.beta.messages.create(ask),
      await lab.newClient.beta.messages.stream(ask).finalMessage(),
    ]) {
      expect(answer.stop_reason).toBe('compaction')
      expect(answer.content).toMatchObject([{ type: 'compaction', content: 'A conversation of 1 messages.' }])
    }
  })
})

describe('what messages accepts', () => {
  const cases: readonly [string, object][] = [
    ['128,000 tokens of the models that can say so much', { max_tokens: 128_000 }],
    [
      'null for what the types allow to be null',
      { cache_control: null, speed: null, container: null, diagnostics: null },
    ],
    ['an effort and a format', { output_config: { effort: 'max', format: null } }],
    ['adaptive thinking', { thinking: { type: 'adaptive', display: null } }],
    ['thinking between tools only', { model: 'claude-sonnet-5-5', thinking: { type: 'between_tools' } }],
    ['a speed of a model that needs no beta for it', { model: 'claude-opus-5', speed: 'fast' }],
    [
      'pictures, documents and references in a result, and white space beside them',
      {
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} }] },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 'toolu_1',
                content: [
                  { type: 'text', text: ' ' },
                  { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } },
                  { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } },
                  { type: 'search_result', source: 'https://a.example', title: 'x', content: [] },
                  { type: 'tool_reference', tool_name: 'get_weather' },
                ],
              },
            ],
          },
        ],
      },
    ],
    ['a container', { container: { id: 'container_1', skills: [] } }],
    ['automatic caching', { cache_control: { type: 'ephemeral' } }],
    [
      'tools of the upstream',
      {
        tools: [
          { type: 'web_search_20250305', name: 'web_search', max_uses: 3 },
          { type: 'code_execution_20250825', name: 'code_execution' },
          { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
          { type: 'browser_toolset_20260801' },
        ],
      },
    ],
  ]

  it.each(cases)('%s', async (_name, change) => {
    const response = await post({ ...helloMessage, ...change })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"type":"message"')])
  })

  it('no tokens at all, which fills the cache only', async () => {
    const answer = await lab.client.messages.create({ ...helloMessage, max_tokens: 0 })
    expect(answer).toMatchObject({ content: [], stop_reason: 'max_tokens', usage: { output_tokens: 0 } })
    expect((await post({ ...helloMessage, max_tokens: -1 })).status).toBe(400)
  })

  it('an output format at its older place, and answers in it', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string', examples: ['Paris'] } } }
    const answer = await lab.newClient.beta.messages.create({
      ...helloMessage,
      betas: ['structured-outputs-2025-11-13'],
      output_format: { type: 'json_schema', schema },
    })
    expect(answer.content).toMatchObject([{ text: '{"city":"Paris"}' }])
  })
})

describe('the official SDKs against the M1 simulator', () => {
  it('the old one, with x-api-key, gets a message and its request id', async () => {
    const message = await lab.client.messages.create(helloMessage)
    expect(message.content).toEqual([{ type: 'text', text: 'You said: hello there' }])
    expect(message).toMatchObject({ model: 'claude-sonnet-4-6', stop_reason: 'end_turn', stop_sequence: null })
    expect(message._request_id).toMatch(/^req_011/)
  })

  it('the new one, with Bearer and the new version, gets the same', async () => {
    const message = await lab.newClient.messages.create(helloMessage)
    expect(message.content).toMatchObject([{ type: 'text', text: 'You said: hello there' }])
    expect(lab.simulator.lastRequest?.headers).toMatchObject({ 'anthropic-version': '2026-10-21' })
    expect(lab.simulator.lastRequest?.headers['authorization']).toBe('Bearer sk-ant-test')
  })

  it('both assemble a thinking stream with its signature', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1024 }
    for (const stream of [
      lab.client.messages.stream({ ...helloMessage, max_tokens: 2048, thinking }),
      lab.newClient.messages.stream({ ...helloMessage, max_tokens: 2048, thinking }),
    ]) {
      const final = await stream.finalMessage()
      const [first, second] = final.content
      expect(first).toMatchObject({ type: 'thinking', thinking: THINKING_TEXT })
      expect(isSignatureOf(THINKING_TEXT, first?.type === 'thinking' ? first.signature : '')).toBe(true)
      expect(second).toMatchObject({ type: 'text', text: 'You said: hello there' })
      expect(final.usage.output_tokens).toBeGreaterThan(4)
    }
  })

  it('a tool loop with thinking goes through when the blocks come back unchanged', async () => {
    const options = {
      ...helloMessage,
      max_tokens: 2048,
      tools: [tool],
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
    }
    const first = await lab.client.messages.stream(options).finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    const call = first.content.find((block) => block.type === 'tool_use')
    expect(call?.input).toEqual({ city: 'Paris' })
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'sunny' }
    const turn = (content: Anthropic.ContentBlockParam[]): Promise<Anthropic.Message> =>
      lab.client.messages.create({
        ...options,
        messages: [...helloMessage.messages, { role: 'assistant', content }, { role: 'user', content: [result] }],
      })
    const second = await turn(first.content)
    expect(second.content.at(-1)).toMatchObject({ text: 'The tools answered: sunny' })
    await expect(turn(first.content.slice(1))).rejects.toThrow(
      'Expected `thinking` or `redacted_thinking`, but found `tool_use`',
    )
    const edited = first.content.map((block) => (block.type === 'thinking' ? { ...block, thinking: 'edited' } : block))
    await expect(turn(edited)).rejects.toThrow('blocks in the latest assistant message cannot be modified')
  })

  it('counts tokens', async () => {
    const { messages, model } = helloMessage
    expect((await lab.client.messages.countTokens({ model, messages })).input_tokens).toBe(7)
    expect((await lab.newClient.messages.countTokens({ model, messages })).input_tokens).toBe(7)
    const counting = lab.client.messages.countTokens({ model, messages, ...{ max_tokens: 5 } })
    await expect(counting).rejects.toThrow('max_tokens: Extra inputs are not permitted')
  })

  it('counts what is said, in whatever form it is said', async () => {
    const { model } = helloMessage
    const count = async (content: Anthropic.MessageParam['content'], tool: object = {}): Promise<number> => {
      const tools = [{ name: 'look', input_schema: { type: 'object' as const }, ...tool }]
      const counted = { model, messages: [{ role: 'user' as const, content }], tools, system: content }
      return (await lab.client.messages.countTokens(counted as Anthropic.MessageCountTokensParams)).input_tokens
    }
    const plain = await count('Hello, you')
    expect(await count([{ type: 'text', text: 'Hello, you' }])).toBe(plain)
    expect(await count('Hello, you', { type: 'custom', strict: false })).toBe(plain)
    expect(await count('Hello, you', { description: 'Looks' })).toBeGreaterThan(plain)
    expect(await count('Hello, you two')).toBeGreaterThan(plain)
  })

  it.each([
    ['#400', Anthropic.BadRequestError, 'invalid_request_error'],
    ['#403', Anthropic.PermissionDeniedError, 'permission_error'],
    ['#404', Anthropic.NotFoundError, 'not_found_error'],
    ['#422', Anthropic.UnprocessableEntityError, 'invalid_request_error'],
    ['#429', Anthropic.RateLimitError, 'rate_limit_error'],
    ['#500', Anthropic.InternalServerError, 'api_error'],
    ['#529', Anthropic.InternalServerError, 'overloaded_error'],
    ['#402', Anthropic.APIError, 'billing_error'],
    ['#413', Anthropic.APIError, 'request_too_large'],
    ['#quota', Anthropic.BadRequestError, 'invalid_request_error'],
  ])('%s raises the right class', async (content, errorClass, type) => {
    const failing = lab.client.messages.create({ ...helloMessage, messages: [{ role: 'user', content }] })
    const error: unknown = await failing.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(errorClass)
    expect(error).toMatchObject({ error: { error: { type } }, requestID: expect.stringMatching(/^req_/) as unknown })
  })

  it('the new SDK knows 529 by a class of its own', async () => {
    const failing = lab.newClient.messages.create({ ...helloMessage, messages: [{ role: 'user', content: '#529' }] })
    await expect(failing).rejects.toMatchObject({ status: 529 })
  })

  it('an error event in the middle is thrown with its type', async () => {
    const stream = lab.client.messages.stream({
      ...helloMessage,
      messages: [{ role: 'user', content: '#errorframe a b' }],
    })
    await expect(stream.finalMessage()).rejects.toThrow('Overloaded')
  })

  it('a stream without its end is noticed', async () => {
    const stream = lab.client.messages.stream({
      ...helloMessage,
      messages: [{ role: 'user', content: '#cleancut a b c' }],
    })
    await expect(stream.finalMessage()).rejects.toThrow('stream ended without producing a Message')
  })
})

describe('the wire format of messages', () => {
  it('names every event by its type, pings once, and sends no [DONE]', async () => {
    const raw = await (await post({ ...helloMessage, stream: true })).text()
    const frames = raw.trimEnd().split('\n\n')
    const names = frames.map((frame) => {
      const [name, data] = frame.split('\n')
      const parsed = JSON.parse(data?.slice('data: '.length) ?? '') as { type: string }
      expect(name).toBe(`event: ${parsed.type}`)
      return parsed.type
    })
    expect(names.slice(0, 3)).toEqual(['message_start', 'content_block_start', 'ping'])
    expect(names.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
    expect(raw).toMatch(/ +\}\n\n/)
    expect(raw).not.toContain('[DONE]')
  })

  it('starts tool input with an empty piece', async () => {
    const raw = await (await post({ ...helloMessage, tools: [tool], stream: true })).text()
    const pieces = [...raw.matchAll(/"partial_json":("(?:[^"\\]|\\.)*")/g)].map(
      (match) => JSON.parse(match[1] ?? '') as string,
    )
    expect(pieces[0]).toBe('')
    expect(pieces.join('')).toBe('{"city":"Paris"}')
  })

  it('says why it stopped', async () => {
    const limited = await lab.client.messages.create({ ...helloMessage, max_tokens: 2 })
    expect(limited).toMatchObject({ stop_reason: 'max_tokens', usage: { output_tokens: 2 } })
    const stopped = await lab.client.messages.create({ ...helloMessage, stop_sequences: ['there'] })
    expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'there' })
  })

  it('refuses, or is filtered, where the text asks for it', async () => {
    const answered = (content: string): Promise<unknown> =>
      lab.client.messages.stream({ ...helloMessage, messages: [{ role: 'user', content }] }).finalMessage()
    const details = { type: 'refusal', category: null, explanation: 'I cannot help with that.' }
    expect(await answered('#refuse')).toMatchObject({ content: [], stop_reason: 'refusal', stop_details: details })
    expect(await answered('#filter #words=9')).toMatchObject({
      content: [{ text: 'word1 word2 word3' }],
      stop_reason: 'refusal',
      stop_details: { explanation: null },
    })
  })

  it('writes marked blocks to the cache once and reads them afterwards', async () => {
    const system = [
      {
        type: 'text' as const,
        text: 'Be short. '.repeat(50),
        cache_control: { type: 'ephemeral' as const, ttl: '1h' as const },
      },
    ]
    const first = (await lab.client.messages.create({ ...helloMessage, system })).usage
    const second = (await lab.client.messages.create({ ...helloMessage, system })).usage
    expect(first.cache_creation?.ephemeral_1h_input_tokens).toBe(first.cache_creation_input_tokens)
    expect(second).toMatchObject({
      cache_read_input_tokens: first.cache_creation_input_tokens,
      cache_creation_input_tokens: 0,
    })
    expect(second.input_tokens).toBe(first.input_tokens)
  })

  it('sends its rate limits, request id and what a relay must hide', async () => {
    const response = await post(helloMessage)
    expect(response.headers.get('request-id')).toMatch(/^req_/)
    expect(response.headers.get('x-request-id')).toBeNull()
    expect(response.headers.get('anthropic-organization-id')).toBe('org-simulated')
    expect(response.headers.get('anthropic-ratelimit-tokens-reset')).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    expect(lab.simulator.violations).toEqual([])
  })

  it('notes two credentials as a violation', async () => {
    await post(helloMessage, { authorization: 'Bearer sk-caller' })
    expect(lab.simulator.violations).toEqual(['forwarded header: authorization'])
  })
})
