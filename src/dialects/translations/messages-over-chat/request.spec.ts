import { describe, expect, it } from '@jest/globals'
import { judgeChatRequest } from '@multi-model-gateway/sandbox/p1/chat-request.js'
import { thrownBy, TranslationRun } from '../../../../test/support/translation.js'
import { GatewayError } from '../../../core/errors.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import type { ModelFacts } from '../../model-facts.js'
import type { ChatFields } from '../../openai-wire.js'
import { madeSignature } from '../seals.js'
import { messagesOverChat } from './messages-over-chat.js'

type Members = Record<string, unknown>

const DATA = 'iVBORw0KGgo='

interface Translated {
  readonly run: TranslationRun<MessagesFields, ChatFields>
  readonly sent: Members & { readonly messages: readonly Members[] }
  readonly text: string
  readonly approximated: string | undefined
  readonly dropped: string | undefined
}

const request = (fields: Members): Members => ({
  model: 'claude-here',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hello' }],
  ...fields,
})

/** Whatever is translated must be taken by the simulator of a chat upstream. */
function translate(fields: Members | string, facts: Partial<ModelFacts> = {}, isStrict = false): Translated {
  const run = new TranslationRun<MessagesFields, ChatFields>(
    { client: 'messages', upstream: 'chat' },
    messagesOverChat,
    typeof fields === 'string' ? fields : request(fields),
    { upstreamModel: 'some-model', facts: { thinking: 'adaptive', ...facts }, isStrict },
  )
  const sent = run.sent as Translated['sent']
  judgeChatRequest(sent, { acceptUnknownFields: false, knowsAudio: () => false })
  return { run, sent, text: run.sentText, approximated: run.verdicts.approximated, dropped: run.verdicts.dropped }
}

const refusal = (fields: Members, facts: Partial<ModelFacts> = {}, isStrict = false): GatewayError =>
  thrownBy(() => translate(fields, facts, isStrict))

const user = (...content: Members[]): Members => ({ role: 'user', content })
const userText = (content: string): Members => ({ role: 'user', content })
const assistant = (...content: Members[]): Members => ({ role: 'assistant', content })
const text = (words: string, more: Members = {}): Members => ({ type: 'text', text: words, ...more })
const call = (id: string, more: Members = {}): Members => ({ type: 'tool_use', id, name: 'look', input: {}, ...more })
const result = (id: string, content: unknown = 'seen', more: Members = {}): Members => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
})
const png = (more: Members = {}): Members => ({
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: DATA },
  ...more,
})
const PNG_PART = { type: 'image_url', image_url: { url: `data:image/png;base64,${DATA}` } }
const pdf = (more: Members = {}): Members => ({
  type: 'document',
  source: { type: 'base64', media_type: 'application/pdf', data: DATA },
  ...more,
})
const pdfPart = (filename: string): Members => ({
  type: 'file',
  file: { filename, file_data: `data:application/pdf;base64,${DATA}` },
})
const tool = (more: Members = {}): Members => ({
  name: 'look',
  input_schema: { type: 'object', properties: {} },
  ...more,
})
const EPHEMERAL = { type: 'ephemeral' }
const MARK = { prompt_cache_breakpoint: { mode: 'explicit' } }

describe('A field of a messages request', () => {
  const tools = [tool()]
  const same: readonly [string, Members, Members][] = [
    ['max_tokens', { max_tokens: 7 }, { max_completion_tokens: 7 }],
    ['stop_sequences', { stop_sequences: ['a', 'b', 'c', 'd'] }, { stop: ['a', 'b', 'c', 'd'] }],
    ['temperature', { temperature: 0.25 }, { temperature: 0.25 }],
    ['top_p', { top_p: 0.5 }, { top_p: 0.5 }],
    ['stream', { stream: true }, { stream: true, stream_options: { include_usage: true } }],
    ['metadata.user_id', { metadata: { user_id: 'u1' } }, { safety_identifier: 'u1' }],
    ['service_tier auto', { service_tier: 'auto' }, { service_tier: 'auto' }],
    ['service_tier standard_only', { service_tier: 'standard_only' }, { service_tier: 'default' }],
    ['thinking disabled', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
    ['output_config.effort', { output_config: { effort: 'xhigh' } }, { reasoning_effort: 'xhigh' }],
    [
      'output_config.format',
      { output_config: { format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: { type: 'object', additionalProperties: false }, strict: true },
        },
      },
    ],
    [
      'output_format',
      { output_format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: { type: 'object', additionalProperties: false }, strict: true },
        },
      },
    ],
    ['tool_choice auto', { tools, tool_choice: { type: 'auto' } }, { tool_choice: 'auto' }],
    ['tool_choice any', { tools, tool_choice: { type: 'any' } }, { tool_choice: 'required' }],
    ['tool_choice none', { tools, tool_choice: { type: 'none' } }, { tool_choice: 'none' }],
    [
      'tool_choice tool',
      { tools, tool_choice: { type: 'tool', name: 'look' } },
      { tool_choice: { type: 'function', function: { name: 'look' } } },
    ],
    [
      'disable_parallel_tool_use',
      { tools, tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      { tool_choice: 'auto', parallel_tool_calls: false },
    ],
    [
      'tools',
      { tools: [tool({ type: 'custom', description: 'Looks', strict: false })] },
      {
        tools: [
          {
            type: 'function',
            function: {
              name: 'look',
              description: 'Looks',
              parameters: { type: 'object', properties: {} },
              strict: false,
            },
          },
        ],
      },
    ],
    ['system', { system: 'Be kind.' }, {}],
  ]

  it.each(same)('that has a counterpart says the same there: %s', (_name, fields, expected) => {
    const { sent, approximated, dropped } = translate(fields, {}, true)
    expect(sent).toMatchObject({ model: 'some-model', ...expected })
    expect([approximated, dropped]).toEqual([undefined, undefined])
  })

  const silent: readonly [string, Members][] = [
    ['adaptive thinking', { thinking: { type: 'adaptive' } }],
    [
      'null',
      Object.fromEntries(
        ['system', 'tools', 'tool_choice', 'stream', 'top_k', 'container', 'unknown'].map((name) => [name, null]),
      ),
    ],
    ['empty lists', { system: [], tools: [], stop_sequences: [] }],
    ['not streaming', { stream: false }],
    ['what is in beta, and empty', { mcp_servers: [], fallbacks: [], context_management: { edits: [] } }],
    ['that the caller pays', { billing_policy: { type: 'billing_policy', bill_to: 'self' } }],
    ['a mark for a cache that needs none', { cache_control: EPHEMERAL, tools: [tool({ cache_control: EPHEMERAL })] }],
    ['a choice without tools', { tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
  ]

  it.each(silent)('that means nothing there is left out without a word: %s', (_name, fields) => {
    const { sent, approximated, dropped } = translate(fields, {}, true)
    expect(Object.keys(sent).filter((name) => name !== 'tools')).toEqual(['model', 'messages', 'max_completion_tokens'])
    expect([approximated, dropped]).toEqual([undefined, undefined])
  })

  const approximations: readonly [string, Members, Members][] = [
    ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 1024 } }, { reasoning_effort: 'minimal' }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 2048 } }, { reasoning_effort: 'low' }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 8192 } }, { reasoning_effort: 'medium' }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 16_384 } }, { reasoning_effort: 'high' }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 32_000 } }, { reasoning_effort: 'xhigh' }],
    [
      'thinking.budget_tokens',
      { thinking: { type: 'enabled', budget_tokens: 1024 }, output_config: { effort: 'max' } },
      { reasoning_effort: 'max' },
    ],
    [
      'metadata.user_id',
      { metadata: { user_id: 'u'.repeat(65) } },
      { safety_identifier: '247c4dd97ac26b5f8e8ad8d6e3de5ff8a0a1ed0d10ad6c3d4ac1e5c5f7b2c3d4' },
    ],
    [
      'tools[0].strict',
      { tools: [tool({ strict: true, input_schema: { type: 'object', properties: { a: {} } } })] },
      {
        tools: [
          { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { a: {} } } } },
        ],
      },
    ],
  ]

  it.each(approximations)(
    '%s is shown to the caller as approximated, and refused to a strict one',
    (path, fields, expected) => {
      const { sent, approximated } = translate(fields)
      if (path === 'metadata.user_id') expect(sent['safety_identifier']).toMatch(/^[0-9a-f]{64}$/)
      else expect(sent).toMatchObject(expected)
      expect(approximated).toBe(path)
      expect(refusal(fields, {}, true).details).toEqual({ param: path, code: 'unsupported_value' })
    },
  )

  const drops: readonly [string, Members][] = [
    ['diagnostics', { diagnostics: { previous_message_id: null } }],
    ['speed', { speed: 'standard' }],
    ['betas', { betas: ['mcp-client-2025-11-20'] }],
    ['fallbacks', { fallbacks: 'default' }],
    ['fallback_credit_token', { fallback_credit_token: { token: 'fct_1', mode: 'best_effort' } }],
    [
      'context_management.edits[0]',
      { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } },
    ],
    ['something_new', { something_new: 1 }],
    ['thinking.display', { thinking: { type: 'adaptive', display: 'summarized' } }],
    ['cache_control.ttl', { cache_control: { type: 'ephemeral', ttl: '1h' } }],
    ['tools[0].cache_control.ttl', { tools: [tool({ cache_control: { type: 'ephemeral', ttl: '5m' } })] }],
    ['tools[0].input_examples', { tools: [tool({ input_examples: [{}] })] }],
    ['tools[0].eager_input_streaming', { tools: [tool({ eager_input_streaming: true })] }],
    ['tools[0].something_new', { tools: [tool({ something_new: 1 })] }],
    ['tool_choice.something_new', { tools: [tool()], tool_choice: { type: 'auto', something_new: 1 } }],
    ['metadata.team', { metadata: { team: 'a' } }],
    ['output_config.something_new', { output_config: { something_new: 1 } }],
    ['output_config.effort', { thinking: { type: 'disabled' }, output_config: { effort: 'low' } }],
    ['messages[0].id', { messages: [{ role: 'user', content: 'Hi', id: 'm' }] }],
    [
      'messages[0].content[0].transformations',
      { messages: [user(png({ transformations: { oversized_image: 'error' } }))] },
    ],
    ['messages[0].content[0].something_new', { messages: [user(text('Hi', { something_new: 1 }))] }],
    ['messages[0].content[0].citations', { messages: [user(text('Hi', { citations: [{ type: 'char_location' }] }))] }],
    [
      'messages[0].content[0].cache_control.ttl',
      { messages: [user(text('Hi', { cache_control: { type: 'ephemeral', ttl: '1h' } }))] },
    ],
    [
      'messages[0].content[0].source.note',
      { messages: [user(png({ source: { type: 'base64', media_type: 'image/png', data: DATA, note: 1 } }))] },
    ],
    ['system[0].something_new', { system: [text('Hi', { something_new: 1 })] }],
  ]

  it.each(drops)('%s is shown to the caller as dropped, and refused to a strict one', (path, fields) => {
    expect(translate(fields).dropped).toBe(path)
    expect(refusal(fields, {}, true).details).toEqual({ param: path, code: 'unsupported_value' })
  })

  it('that asks for a summary instead of an answer is nothing where tokens are counted', () => {
    const { run, sent, dropped } = translate({ max_tokens: undefined, compaction: { type: 'summarize' } }, {}, true)
    expect([Object.keys(sent), run.verdicts.approximated, dropped]).toEqual([
      ['model', 'messages'],
      undefined,
      undefined,
    ])
  })

  it.each([
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
    ['thinking', { thinking: { type: 'adaptive' } }],
    ['output_config.effort', { output_config: { effort: 'low' } }],
  ])('%s is dropped where the model does not think', (path, fields) => {
    const { sent, dropped } = translate(fields, { thinking: 'none' })
    expect([sent['reasoning_effort'], dropped]).toEqual([undefined, path])
  })

  const adaptive = { thinking: { type: 'adaptive' } }
  const mayRest = { efforts: ['none', 'low', 'medium', 'high'] } as const

  it('that asks for adaptive thinking makes a model think that would not do so by itself', () => {
    const { sent, approximated } = translate(adaptive, mayRest)
    expect([sent['reasoning_effort'], approximated]).toEqual(['medium', 'thinking'])
    const { details, message } = refusal(adaptive, mayRest, true)
    expect(details).toEqual({ param: 'thinking', code: 'unsupported_value' })
    expect(message).toContain('Send output_config.effort, or ')
  })

  it('that asks for adaptive thinking leaves it to the named effort how much', () => {
    const { sent, approximated } = translate({ ...adaptive, output_config: { effort: 'low' } }, mayRest, true)
    expect([sent['reasoning_effort'], approximated]).toEqual(['low', undefined])
  })

  it('that asks for adaptive thinking is approximated where tools keep the model from it', () => {
    const { sent, approximated } = translate({ ...adaptive, tools }, { ...mayRest, thinkingWithTools: false })
    expect([sent['reasoning_effort'], approximated]).toEqual(['none', 'thinking'])
    const { message } = refusal({ ...adaptive, tools }, { ...mayRest, thinkingWithTools: false }, true)
    expect(message).toContain('Leave it out, or ')
  })

  it('about parallel calls is nothing where no tool may be called', () => {
    const choice = { type: 'none', disable_parallel_tool_use: true }
    expect(translate({ tools: [tool()], tool_choice: choice }).sent).not.toHaveProperty('parallel_tool_calls')
  })

  const closed = (properties: Members, more: Members = {}): Members => ({
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
    ...more,
  })
  const open = closed({}, { additionalProperties: true })
  const strictness: readonly [string, Members, boolean][] = [
    ['closed', closed({ a: { type: 'string' }, b: closed({}), c: { type: 'array', items: closed({}) } }), true],
    ['closed, with properties named like keywords', closed({ oneOf: closed({ not: { default: 1 } }) }), true],
    ['open', open, false],
    ['with an optional property', closed({ a: {} }, { required: [] }), false],
    ['with an open property', closed({ a: open }), false],
    ['with an open property that may be null', closed({ a: { ...open, type: ['object', 'null'] } }), false],
    ['with an optional property within', closed({ a: closed({ b: {} }, { required: [] }) }), false],
    ['with open items', closed({ a: { type: 'array', items: open } }), false],
    ['with an open choice', closed({ a: { anyOf: [closed({}), open] } }), false],
    ['with an open definition', closed({}, { $defs: { a: open } }), false],
    ['with a keyword that chat lacks', closed({ a: { oneOf: [closed({})] } }), false],
    ['with a choice at its root', closed({}, { anyOf: [closed({})] }), false],
  ]

  it.each(strictness)(
    'that makes a tool strict does so where chat upstreams take its schema: %s',
    (_name, schema, expected) => {
      const { sent, approximated } = translate({ tools: [tool({ strict: true, input_schema: schema })] })
      expect((sent['tools'] as [{ function: Members }])[0].function['strict']).toBe(expected || undefined)
      expect(approximated).toBe(expected ? undefined : 'tools[0].strict')
    },
  )

  const ofAnswers: typeof strictness = [
    ['of a list', { type: 'array', items: closed({}) }, false],
    ['of no type', { additionalProperties: false }, false],
  ]

  it.each([...strictness, ...ofAnswers])(
    'that gives the answer a schema has it kept strictly where chat upstreams take it so: %s',
    (_name, schema, expected) => {
      const fields = { output_config: { format: { type: 'json_schema', schema } } }
      const { sent, approximated } = translate(fields)
      expect(sent['response_format']).toMatchObject({ json_schema: { schema, strict: expected } })
      expect(approximated).toBe(expected ? undefined : 'output_config.format')
    },
  )

  it('that makes a tool strict does so where the type of its schema is left out', () => {
    const { sent } = translate({ tools: [tool({ strict: true, input_schema: { additionalProperties: false } })] })
    expect(sent['tools']).toMatchObject([{ function: { parameters: { type: 'object' }, strict: true } }])
  })

  it.each<[string, Members]>([
    ['with optional properties', closed({ a: {} }, { required: [] })],
    ['with a format', closed({ a: { type: 'string', format: 'uri' } })],
    ['with a keyword that chat lacks', closed({ a: { allOf: [closed({})] } })],
  ])('that gives the answer a schema %s tells a strict caller what chat upstreams take', (_what, schema) => {
    const { details, message } = refusal({ output_config: { format: { type: 'json_schema', schema } } }, {}, true)
    expect(details).toEqual({ param: 'output_config.format', code: 'unsupported_value' })
    expect(message).toContain('Send a schema that chat takes as strict: ')
  })

  it('that switches thinking off is nothing to a model that does not think unasked', () => {
    expect(translate({ thinking: { type: 'disabled' } }, { thinking: 'budget' }, true).sent).not.toHaveProperty(
      'reasoning_effort',
    )
  })

  const refusals: readonly [string, Members][] = [
    ['max_tokens', { max_tokens: 0 }],
    ['stop_sequences', { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }],
    ['top_k', { top_k: 5 }],
    ['thinking.type', { thinking: { type: 'between_tools' } }],
    ['output_config.format.type', { output_config: { format: { type: 'grammar' } } }],
    ['output_config.task_budget', { output_config: { task_budget: { type: 'tokens', total: 9 } } }],
    ['output_format.type', { output_format: { type: 'grammar' } }],
    [
      'output_format',
      { output_format: { type: 'json_schema' }, output_config: { format: { type: 'json_schema', schema: {} } } },
    ],
    ['mcp_servers', { mcp_servers: [{ type: 'url', name: 'docs', url: 'https://mcp.test' }] }],
    ['fallbacks', { fallbacks: [{ model: 'claude-haiku-4-5' }] }],
    ['fallback_credit_token', { fallback_credit_token: 'fct_1' }],
    ['fallback_credit_token', { fallback_credit_token: { token: 'fct_1' } }],
    ['compaction', { compaction: { type: 'summarize' } }],
    [
      'context_management.edits[1].type',
      { context_management: { edits: [{ type: 'clear_thinking_20251015' }, { type: 'clear_tool_uses_20250919' }] } },
    ],
    ['context_management.edits[0].type', { context_management: { edits: [{ type: 'compact_20260112' }] } }],
    ['context_management.edits[0].type', { context_management: { edits: [{ type: 'something_new' }] } }],
    ['thread', { thread: { type: 'create' } }],
    ['billing_policy', { billing_policy: { type: 'billing_policy', bill_to: 'user_profile' } }],
    ['billing_policy', { billing_policy: 'self' }],
    ['speed', { speed: 'fast' }],
    ['service_tier', { service_tier: 'priority' }],
    ['container', { container: 'c1' }],
    ['inference_geo', { inference_geo: 'eu' }],
    ['user_profile_id', { user_profile_id: 'p' }],
    ['workspace_id', { workspace_id: 'w' }],
    ['tool_choice.type', { tools: [tool()], tool_choice: { type: 'some' } }],
    ['tools[1].defer_loading', { tools: [tool(), tool({ defer_loading: true })] }],
    ['tools[0].allowed_callers', { tools: [tool({ allowed_callers: ['direct', 'code_execution_20260120'] })] }],
    ...[
      'bash_20250124',
      'text_editor_20250728',
      'memory_20250818',
      'web_search_20260318',
      'web_fetch_20260318',
      'code_execution_20260521',
      'tool_search_tool_bm25_20251119',
      'browser_toolset_20260801',
      'computer_toolset_20260801',
    ].map((type): [string, Members] => ['tools[1].type', { tools: [tool(), { type, name: 'x' }] }]),
    ...[
      'server_tool_use',
      'web_search_tool_result',
      'web_fetch_tool_result',
      'code_execution_tool_result',
      'bash_code_execution_tool_result',
      'text_editor_code_execution_tool_result',
      'tool_search_tool_result',
      'container_upload',
      'something_new',
      'image',
    ].map((type): [string, Members] => [
      'messages[0].content[1].type',
      { messages: [assistant(text('Hi'), { type }), user(text('Hi'))] },
    ]),
    ['messages[0].content[0].type', { messages: [user({ type: 'container_upload', file_id: 'f' })] }],
    ['messages[0].content[0].type', { messages: [user(call('c'))] }],
    ['messages[0].content[0].source.type', { messages: [user(png({ source: { type: 'file', file_id: 'f' } }))] }],
    [
      'messages[0].content[0].source.media_type',
      { messages: [user(png({ source: { type: 'base64', media_type: 'image/tiff', data: DATA } }))] },
    ],
    [
      'messages[0].content[0].source.type',
      { messages: [user(pdf({ source: { type: 'url', url: 'https://a.test/b.pdf' } }))] },
    ],
    ['messages[0].content[0].source.type', { messages: [user(pdf({ source: { type: 'file', file_id: 'f' } }))] }],
    [
      'messages[0].content[0].source.media_type',
      { messages: [user(pdf({ source: { type: 'base64', media_type: 'text/html', data: DATA } }))] },
    ],
    ['messages[0].content[0].citations.enabled', { messages: [user(pdf({ citations: { enabled: true } }))] }],
    [
      'messages[2].content[0].content[0].type',
      {
        messages: [
          user(text('Hi')),
          assistant(call('c')),
          user(result('c', [{ type: 'tool_reference', tool_name: 'x' }])),
        ],
      },
    ],
    [
      'messages[2].content[0].content[0].type',
      { messages: [user(text('Hi')), assistant(call('c')), user(result('c', [{ type: 'browser_state' }]))] },
    ],
    [
      'messages[2].content[0].toolset_name',
      { messages: [user(text('Hi')), assistant(call('c')), user(result('c', '', { toolset_name: 'browser' }))] },
    ],
    [
      'messages[0].content[0].toolset_name',
      { messages: [assistant(call('c', { toolset_name: 'browser' })), user(result('c'))] },
    ],
    [
      'messages[0].content[0].caller',
      {
        messages: [
          assistant(call('c', { caller: { type: 'code_execution_20260120', tool_id: 't' } })),
          user(result('c')),
        ],
      },
    ],
    ['messages[0].content[0]', { messages: [assistant(call('c')), user(text('Hi'))] }],
    ['messages[0].content[1]', { messages: [assistant(call('a'), call('c')), user(result('a'))] }],
    ['messages[0].content[0]', { messages: [assistant(call('c'))] }],
    ['messages[0].content[1].id', { messages: [assistant(call('c'), call('c')), user(result('c'))] }],
    ['messages[0].content[0].tool_use_id', { messages: [user(result('c'))] }],
    ['messages[1].content[1].tool_use_id', { messages: [assistant(call('c')), user(result('c'), result('c'))] }],
    ['messages[1]', { messages: [user(text('Hi')), assistant(text('{'))] }],
    ['system[0].type', { system: [png()] }],
  ]

  it.each(refusals)('%s is refused by its path where it would change the answer', (path, fields) => {
    expect(refusal(fields)).toMatchObject({
      kind: 'invalid_request',
      details: { param: path, code: 'unsupported_value' },
      message: expect.stringMatching(/chat dialect.*\w\.$/),
    })
  })

  it.each([
    ['messages[0].content[0].type', { vision: false }, png()],
    ['messages[0].content[0].type', { files: false }, pdf()],
  ])('%s is refused where the model cannot read it', (path, facts, block) => {
    expect(refusal({ messages: [user(block)] }, facts).details.param).toBe(path)
  })

  const faults: readonly [string, Members][] = [
    ['stop_sequences', { stop_sequences: 'a' }],
    ['stop_sequences[0]', { stop_sequences: [1] }],
    ['tools', { tools: {} }],
    ['tools[0]', { tools: ['look'] }],
    ['tools[0].name', { tools: [tool({ name: 1 })] }],
    ['tools[0].description', { tools: [tool({ description: 1 })] }],
    ['tools[0].input_schema', { tools: [{ name: 'look' }] }],
    ['tools[0].strict', { tools: [tool({ strict: 'yes' })] }],
    ['tools[0].allowed_callers', { tools: [tool({ allowed_callers: 'direct' })] }],
    ['tool_choice', { tool_choice: 'auto' }],
    ['tool_choice.type', { tool_choice: {} }],
    ['tool_choice', { tool_choice: { type: 'any' } }],
    ['tool_choice.name', { tools: [tool()], tool_choice: { type: 'tool', name: 'other' } }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled' } }],
    ['output_config', { output_config: 1 }],
    ['output_config.effort', { output_config: { effort: 1 } }],
    ['output_config.format', { output_config: { format: 1 } }],
    ['output_config.format.schema', { output_config: { format: { type: 'json_schema' } } }],
    ['output_format.schema', { output_format: { type: 'json_schema' } }],
    ['context_management', { context_management: 'auto' }],
    ['context_management.edits', { context_management: { edits: {} } }],
    ['context_management.edits[0].type', { context_management: { edits: [{}] } }],
    ['metadata', { metadata: 'me' }],
    ['metadata.user_id', { metadata: { user_id: 1 } }],
    ['cache_control', { cache_control: true }],
    ['system', { system: {} }],
    ['system[0]', { system: ['a'] }],
    ['system[0].text', { system: [{ type: 'text' }] }],
    ['messages[0]', { messages: ['Hi'] }],
    ['messages[0].role', { messages: [{ role: 'tool', content: 'Hi' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: 1 }] }],
    ['messages[0].content[0]', { messages: [{ role: 'user', content: ['Hi'] }] }],
    ['messages[0].content[0].text', { messages: [user({ type: 'text' })] }],
    ['messages[0].content[0].citations', { messages: [user(text('Hi', { citations: 1 }))] }],
    ['messages[0].content[0].source', { messages: [user({ type: 'image' })] }],
    [
      'messages[0].content[0].source.data',
      { messages: [user(png({ source: { type: 'base64', media_type: 'image/png' } }))] },
    ],
    ['messages[0].content[0].source.url', { messages: [user(png({ source: { type: 'url', url: 'file:///etc' } }))] }],
    ['messages[0].content[0].title', { messages: [user(pdf({ title: 1 }))] }],
    ['messages[0].content[0].source.content', { messages: [user(pdf({ source: { type: 'content' } }))] }],
    ['messages[0].content[0].content', { messages: [user({ type: 'search_result', title: 't', source: 's' })] }],
    ['messages[0].content[0].thinking', { messages: [assistant({ type: 'thinking' }), user(text('Hi'))] }],
    [
      'messages[0].content[0].input',
      { messages: [assistant({ type: 'tool_use', id: 'c', name: 'look' }), user(result('c'))] },
    ],
    ['messages[0].content[0].name', { messages: [assistant(call('c', { name: 1 })), user(result('c'))] }],
    ['messages[1].content[0].tool_use_id', { messages: [assistant(call('c')), user({ type: 'tool_result' })] }],
    ['messages[1].content[0].content', { messages: [assistant(call('c')), user(result('c', 1))] }],
  ]

  it.each(faults)('%s is an invalid request where its shape cannot be translated', (path, fields) => {
    expect(refusal(fields)).toMatchObject({ kind: 'invalid_request', details: { param: path } })
  })
})

describe('Numbers and keys of a request', () => {
  it('are spelled upstream as they were in schemas, inputs of tools and formats', () => {
    const schema =
      '{"type":"object","properties":{"b":{"minimum":1.0},"2":{"maximum":1e400},"1":{"enum":[12345678901234567890]}},"additionalProperties":false}'
    const input = '{ "z": 1.0, "a": 1e400, "1": 12345678901234567890 }'
    const { text: sent } = translate(
      `{"model":"m","max_tokens":9,"tools":[{"name":"look","input_schema":${schema}}],"output_config":{"format":{"type":"json_schema","schema":${schema}}},` +
        `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"look","input":${input}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]}`,
    )
    expect(sent).toContain(`"parameters":${schema}`)
    expect(sent).toContain(`"schema":${schema},"strict":false`)
    expect(sent).toContain(`"arguments":${JSON.stringify(input)}`)
  })

  it.each([
    ['{}', '{"type":"object"}'],
    ['{ }', '{"type":"object" }'],
    ['{"properties":{"a":{"minimum":1.0}}}', '{"type":"object","properties":{"a":{"minimum":1.0}}}'],
  ])('of the schema %s get the type that chat upstreams want', (schema, expected) => {
    const { text: sent } = translate(
      `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"look","input_schema":${schema}}]}`,
    )
    expect(sent).toContain(`"parameters":${expected}}`)
  })
})

describe('The conversation', () => {
  const messagesOf = (fields: Members, facts: Partial<ModelFacts> = {}): readonly Members[] =>
    translate(fields, facts).sent.messages

  it.each([
    ['developer', 'developer'],
    ['system', 'system'],
    ['none', 'system'],
  ] as const)('begins with the instructions in the role that a model of %s takes', (systemRole, role) => {
    expect(messagesOf({ system: 'Be kind.' }, { systemRole })[0]).toEqual({ role, content: 'Be kind.' })
    expect(messagesOf({ system: [text('Be kind.'), text(''), text('Be short.')] }, { systemRole })[0]).toEqual({
      role,
      content: [text('Be kind.'), text('Be short.')],
    })
  })

  it('keeps later instructions where the model takes them, else moves them to the beginning and says so', () => {
    const messages = [user(text('Hi')), { role: 'system', content: 'Be short.' }, user(text('Well?'))]
    expect(messagesOf({ messages }, { systemRole: 'developer' })[1]).toEqual({
      role: 'developer',
      content: 'Be short.',
    })
    const { sent, approximated } = translate({ system: 'Be kind.', messages }, { systemRole: 'none' })
    expect(approximated).toBe('messages[1].role')
    expect(sent.messages).toEqual([
      { role: 'system', content: [text('Be kind.'), text('Be short.')] },
      userText('Hi'),
      userText('Well?'),
    ])
  })

  const parts: readonly [string, Members, Members[], boolean][] = [
    ['text', text('Hi'), [text('Hi')], false],
    ['a base64 image', png(), [PNG_PART], false],
    [
      'the link of an image',
      png({ source: { type: 'url', url: 'https://a.test/b.png' } }),
      [{ type: 'image_url', image_url: { url: 'https://a.test/b.png' } }],
      false,
    ],
    ['a PDF', pdf(), [pdfPart('document.pdf')], false],
    ['a PDF with a title', pdf({ title: 'T', citations: { enabled: false } }), [pdfPart('T')], false],
    ['a PDF with context', pdf({ title: 'T', context: 'C' }), [text('Document: T\nContext: C\n'), pdfPart('T')], true],
    [
      'a text document',
      { type: 'document', title: 'T', context: 'C', source: { type: 'text', media_type: 'text/plain', data: 'Words' } },
      [text('Document: T\nContext: C\n\nWords')],
      true,
    ],
    [
      'a document of blocks',
      { type: 'document', source: { type: 'content', content: [text('A'), png()] } },
      [text('A'), PNG_PART],
      false,
    ],
    [
      'a document of blocks with a title',
      { type: 'document', title: 'T', source: { type: 'content', content: 'A' } },
      [text('Document: T\n'), text('A')],
      true,
    ],
    [
      'a search result',
      { type: 'search_result', title: 'T', source: 'https://a.test', content: [text('A'), text('B')] },
      [text('Search result: T\nSource: https://a.test\n\nA\nB')],
      true,
    ],
  ]

  it.each(parts)('has a part for %s', (_name, block, expected, isApproximate) => {
    const { sent, approximated } = translate({ messages: [user(text('See:'), block)] })
    expect(sent.messages).toEqual([{ role: 'user', content: [text('See:'), ...expected] }])
    expect(approximated?.startsWith('messages[0].content[1]') ?? false).toBe(isApproximate)
  })

  it('marks the ends of cached prefixes where the upstream takes marks', () => {
    const messages = [
      user(text('Hi', { cache_control: EPHEMERAL }), png({ cache_control: EPHEMERAL })),
      assistant(text('Well', { cache_control: EPHEMERAL }), call('c')),
      user(result('c', 'seen', { cache_control: EPHEMERAL })),
    ]
    const fields = { system: [text('Be kind.', { cache_control: EPHEMERAL })], messages }
    expect(translate(fields, { promptCacheBreakpoints: true }).sent.messages).toEqual([
      { role: 'system', content: [text('Be kind.', MARK)] },
      user(text('Hi', MARK), { ...PNG_PART, ...MARK }),
      expect.objectContaining({ role: 'assistant', content: [text('Well', MARK)] }),
      { role: 'tool', tool_call_id: 'c', content: [text('seen', MARK)] },
    ])
    expect(translate(fields).text).not.toContain('prompt_cache_breakpoint')
  })

  it('keeps the mark of what an assistant said before it went on without one', () => {
    const cached = text('Well', { cache_control: EPHEMERAL })
    const messages = [user(text('Hi')), assistant(cached, text(', then')), user(text('Go on'))]
    const facts = { promptCacheBreakpoints: true }
    expect(messagesOf({ messages }, facts)[1]).toEqual(assistant(text('Well', MARK), text(', then')))
    const several = [user(text('Hi')), assistant(text('Oh'), cached, text('A'), text('B')), user(text('Go on'))]
    expect(messagesOf({ messages: several }, facts)[1]).toEqual(assistant(text('OhWell', MARK), text('AB')))
    const strict = translate({ messages }, facts, true)
    expect([strict.approximated, strict.dropped]).toEqual([undefined, undefined])
    expect(messagesOf({ messages })[1]).toEqual({ role: 'assistant', content: 'Well, then' })
  })

  const found = { type: 'search_result', title: 'T', source: 'https://a.test' }
  const lostMarks: readonly [string, Members][] = [
    ['messages[0].content[1].cache_control', user(text('Hi'), text('', { cache_control: EPHEMERAL }))],
    [
      'messages[0].content[0].content[0].cache_control',
      user({ ...found, content: [text('A', { cache_control: EPHEMERAL }), text('B')] }),
    ],
    [
      'messages[0].content[1].cache_control',
      user(text('Hi'), {
        type: 'document',
        source: { type: 'content', content: '' },
        cache_control: EPHEMERAL,
      }),
    ],
  ]

  it.each(lostMarks)('drops the mark %s where no part ends there, and says so', (path, message) => {
    const facts = { promptCacheBreakpoints: true }
    const { dropped, text: sentText } = translate({ messages: [message] }, facts)
    expect(dropped).toBe(path)
    expect(sentText).not.toContain('prompt_cache_breakpoint')
    expect(translate({ messages: [message] }).dropped).toBeUndefined()
  })

  it('drops the mark of a result without content, and says so', () => {
    const messages = [assistant(call('c')), user(result('c', '', { cache_control: EPHEMERAL }))]
    const { dropped, sent } = translate({ messages }, { promptCacheBreakpoints: true })
    expect(dropped).toBe('messages[1].content[0].cache_control')
    expect(sent.messages[1]).toEqual({ role: 'tool', tool_call_id: 'c', content: '' })
  })

  it('has no place for marks of tools and calls, and says so where other marks are taken', () => {
    const fields = {
      tools: [tool({ cache_control: EPHEMERAL })],
      messages: [assistant(call('c', { cache_control: EPHEMERAL })), user(result('c'))],
    }
    const { dropped } = translate(fields, { promptCacheBreakpoints: true })
    expect(dropped?.split(',').toSorted()).toEqual(['messages[0].content[0].cache_control', 'tools[0].cache_control'])
    expect(translate(fields, {}, true).text).not.toContain('cache')
  })

  it.each([
    [{ role: 'user', content: 'Hi' }, user(text('Hi', MARK))],
    [user(text('A'), text('B')), user(text('A'), text('B', MARK))],
  ])('is marked at its end where everything is to be cached', (message, expected) => {
    const fields = { cache_control: EPHEMERAL, messages: [message] }
    expect(messagesOf(fields, { promptCacheBreakpoints: true })).toEqual([expected])
  })

  it('joins what an assistant said, and leaves out what it thought', () => {
    const messages = [
      user(text('Hi')),
      assistant({ type: 'thinking', thinking: 'Hm', signature: madeSignature() }, text('A'), text('B')),
      assistant({ type: 'redacted_thinking', data: 'x' }, { type: 'thinking', thinking: 'Ha', signature: 'foreign' }),
      user(text('Well?')),
    ]
    const { sent, approximated, dropped } = translate({ messages }, {}, true)
    expect(sent.messages[1]).toEqual({ role: 'assistant', content: 'AB' })
    expect([approximated, dropped, sent.messages.length]).toEqual([undefined, undefined, 3])
  })

  it('leaves out messages of which nothing is left', () => {
    const messages = [
      user(text('')),
      { role: 'assistant', content: '' },
      assistant({ type: 'redacted_thinking', data: 'x' }),
      user(text('Hi')),
    ]
    expect(messagesOf({ messages })).toEqual([userText('Hi')])
  })

  it('gives a model that wants them back its thoughts of the current turn of tools, and no others', () => {
    const thinking = (words: string): Members => ({ type: 'thinking', thinking: words, signature: madeSignature() })
    const messages = [
      user(text('One')),
      assistant(thinking('T1'), call('a')),
      user(result('a')),
      assistant(thinking('T2'), text('Done')),
      user(text('Two')),
      assistant(thinking('T3'), thinking('T4'), call('b')),
      user(result('b'), text('(still there)')),
      assistant(thinking('T5'), call('c')),
      user(result('c')),
    ]
    const sent = messagesOf({ messages }, { reasoningField: 'reasoning_content' })
    expect(sent.map((message) => message['reasoning_content'])).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      'T3T4',
      undefined,
      undefined,
      'T5',
      undefined,
    ])
    expect(translate({ messages }).text).not.toContain('T5')
  })

  it('has the results of all calls in their order before anything that the user says', () => {
    const messages = [
      assistant(text('Let me see'), call('a', { input: { x: 1 }, caller: { type: 'direct' } }), call('b')),
      { role: 'user', content: 'Wait' },
      user(text('First'), result('b', [text('B1'), text('B2')]), text('Then')),
      user(result('a', [text('A')])),
    ]
    expect(messagesOf({ messages })).toEqual([
      {
        role: 'assistant',
        content: 'Let me see',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'look', arguments: '{"x":1}' } },
          { id: 'b', type: 'function', function: { name: 'look', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
      { role: 'tool', tool_call_id: 'b', content: [text('B1'), text('B2')] },
      { role: 'user', content: 'Wait' },
      user(text('First'), text('Then')),
    ])
  })

  it('has no text where an assistant only called tools', () => {
    expect(messagesOf({ messages: [assistant(call('a')), user(result('a'))] })[0]).toMatchObject({ content: null })
  })

  it('brings the calls of messages in a row together, which are one turn', () => {
    const messages = [
      assistant(call('a')),
      { role: 'assistant', content: 'and' },
      assistant(call('b')),
      user(result('a'), result('b')),
    ]
    expect(messagesOf({ messages })[0]).toMatchObject({ content: 'and', tool_calls: [{ id: 'a' }, { id: 'b' }] })
  })

  it('has pictures and files of results in one message of the user behind all results', () => {
    const messages = [
      assistant(call('a'), call('b')),
      user(result('a', [text('See'), png(), png()]), result('b', [pdf()]), text('Well?')),
    ]
    const { sent, approximated } = translate({ messages })
    expect(sent.messages.slice(1)).toEqual([
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [text('See'), text('picture 1 of this result follows'), text('picture 2 of this result follows')],
      },
      { role: 'tool', tool_call_id: 'b', content: 'file 1 of this result follows' },
      user(
        text('picture 1 of the result of a:'),
        PNG_PART,
        text('picture 2 of the result of a:'),
        PNG_PART,
        text('file 1 of the result of b:'),
        pdfPart('document.pdf'),
      ),
      userText('Well?'),
    ])
    expect(approximated).toBe(
      'messages[1].content[0].content[1],messages[1].content[0].content[2],messages[1].content[1].content[0]',
    )
  })

  it.each([
    ['gone', 'Error: gone'],
    ['Error: gone', 'Error: gone'],
    [[text('gone')], 'Error: gone'],
    ['', 'Error: '],
    [null, 'Error: '],
  ])('says of a failed result that it is one: %j', (content, expected) => {
    const { sent, approximated } = translate({
      messages: [assistant(call('a')), user(result('a', content, { is_error: true }))],
    })
    expect(sent.messages[1]?.['content']).toBe(expected)
    expect(approximated).toBe('messages[1].content[0].is_error')
  })

  it('may end with the assistant where only tokens are counted', () => {
    const messages = [user(text('Hi')), assistant(text('{'))]
    expect(messagesOf({ max_tokens: undefined, messages })).toEqual([
      userText('Hi'),
      { role: 'assistant', content: '{' },
    ])
  })

  it('has short names for tools with names that chat upstreams do not take', () => {
    const name = `mcp__${'server_'.repeat(12)}_look`
    const messages = [assistant(call('a', { name })), user(result('a'))]
    const fields = { messages, tools: [tool({ name })], tool_choice: { type: 'tool', name } }
    const { sent, approximated, run } = translate(fields)
    const { function: short } = sent['tool_choice'] as { function: { name: string } }
    expect(short.name).toMatch(/^mcp__server_[\w-]{52}$/)
    expect(sent).toMatchObject({
      tools: [{ function: short }],
      messages: [{ tool_calls: [{ function: short }] }, { role: 'tool' }],
    })
    expect(approximated).toBe('tools[0].name')
    const toolCalls = [{ id: 'b', type: 'function', function: { ...short, arguments: '{}' } }]
    const answer = {
      id: 'x',
      choices: [{ message: { content: null, tool_calls: toolCalls }, finish_reason: 'tool_calls' }],
    }
    expect(run.answerText(answer)).toContain(`"name":"${name}"`)
  })
})

describe("An upstream's error", () => {
  const messages = [
    user(text('Hi'), text('there')),
    assistant(text('Let me see'), call('a')),
    user(result('a', [png()]), png(), text('Well?')),
  ]
  const fields = {
    system: [text('A'), text('B')],
    messages,
    tools: [tool()],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    stop_sequences: ['a'],
    temperature: 1,
    metadata: { user_id: 'u' },
    stream: true,
    output_config: { effort: 'low', format: { type: 'json_schema', schema: { additionalProperties: false } } },
  }

  it.each([
    ['model', 'model'],
    ['messages', 'messages'],
    ['messages[0].role', 'system'],
    ['messages.0.content.1.text', 'system[1]'],
    ['messages[1].content[0]', 'messages[0].content[0]'],
    ['messages.[2].role', 'messages[1]'],
    ['messages[2].tool_calls[0].function.arguments', 'messages[1].content[1]'],
    ['messages.[3].content', 'messages[2].content[0]'],
    ['messages.4.content.1.image_url', 'messages[2].content[0].content[0]'],
    ['messages.5.content.0.image_url.url', 'messages[2].content[1]'],
    ['messages.5.content.1', 'messages[2].content[2]'],
    ['messages.5', 'messages[2]'],
    ['tools[0].function.parameters', 'tools[0].input_schema'],
    ['tools[0].function.name', 'tools[0]'],
    ['tool_choice', 'tool_choice'],
    ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
    ['stop', 'stop_sequences'],
    ['temperature', 'temperature'],
    ['safety_identifier', 'metadata.user_id'],
    ['stream_options.include_usage', 'stream'],
    ['max_completion_tokens', 'max_tokens'],
    ['reasoning_effort', 'output_config.effort'],
    ['response_format', 'output_config.format'],
    ['response_format.json_schema.schema', 'output_config.format.schema'],
    ['seed', undefined],
    ['', undefined],
  ])(
    'that names %s names %s to the caller, also in its message: errors of messages have no other place',
    (param, expected) => {
      const { translation } = translate(fields).run
      const error = translation.error(new GatewayError('invalid_request', 'No.', { param, code: 'c' }))
      const message = expected === undefined ? 'No.' : `${expected}: No.`
      expect(error).toMatchObject({ kind: 'invalid_request', message, details: { code: 'c' } })
      expect(error.details.param).toBe(expected)
    },
  )

  it.each([
    ['temperature', 'temperature: must be at most 2.', 'temperature: must be at most 2.'],
    ['temperature', "'temperature' must be at most 2.", "'temperature' must be at most 2."],
    ['stop', 'stop_sequences_of_all: too many', 'stop_sequences: stop_sequences_of_all: too many'],
    [undefined, 'stop: too many', 'stop_sequences: stop: too many'],
  ])('says the name once where its message begins with it: %s, %s', (param, message, expected) => {
    const { translation } = translate(fields).run
    const error = new GatewayError('invalid_request', message, param === undefined ? {} : { param })
    expect(translation.error(error).message).toBe(expected)
  })

  it('without a field stays as it is', () => {
    const error = new GatewayError('rate_limited', 'Later.')
    expect(translate(fields).run.translation.error(error)).toBe(error)
  })
})

it.each(['service_tier', 'speed'])('A request with an object as its %s is refused by its path', (name) => {
  expect(() => translate({ [name]: { toString: 1 } })).toThrow(
    expect.objectContaining({ kind: 'invalid_request', details: expect.objectContaining({ param: name }) }),
  )
})
