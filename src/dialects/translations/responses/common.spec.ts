import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../../../core/errors.js'
import {
  accumulated,
  comparable,
  lastResponse,
  ResponsesTranslation,
} from '../../../../test/support/responses-translation.js'
import { sealed, thrownBy, type TranslationSetting } from '../../../../test/support/translation.js'
import { responsesOverChat } from '../responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from '../responses-over-messages/responses-over-messages.js'

interface Upstream {
  readonly upstream: string
  readonly translate: (request: object, setting?: TranslationSetting) => ResponsesTranslation<object>
  /** A whole answer that says `Hello!`. */
  readonly answer: object
  /** It thinks `hm`, says `Hello` and calls a tool, each in two pieces. */
  readonly stream: readonly object[]
  /** What is sealed of the thoughts. */
  readonly thoughts: string
}

const REQUEST = { input: 'Hi', max_output_tokens: 100 }

const chunk = (delta: object, reason: string | null = null): object => ({
  id: 'chatcmpl-1',
  choices: [{ index: 0, delta, finish_reason: reason }],
})
const piece = (text: string, head: object = {}): object =>
  chunk({
    tool_calls: [{ index: 0, ...head, function: { ...('id' in head ? { name: 'weather' } : {}), arguments: text } }],
  })

const CHAT: Upstream = {
  upstream: 'chat',
  translate: (request, setting) =>
    new ResponsesTranslation('chat', responsesOverChat, { ...REQUEST, ...request }, setting),
  answer: {
    id: 'chatcmpl-1',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello!', refusal: null }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: 20,
      completion_tokens: 10,
      prompt_tokens_details: { cached_tokens: 5, cache_write_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 4 },
    },
  },
  stream: [
    chunk({ role: 'assistant', content: '' }),
    chunk({ reasoning_content: 'h' }),
    chunk({ reasoning_content: 'm' }),
    chunk({ content: 'Hel' }),
    chunk({ content: 'lo' }),
    piece('{"a":', { id: 'call_1', type: 'function' }),
    piece('1.0}'),
    chunk({}, 'tool_calls'),
    { id: 'chatcmpl-1', choices: [], usage: { prompt_tokens: 12, completion_tokens: 10 } },
  ],
  thoughts: '{"reasoning":"hm"}',
}

const block = (index: number, start: object, ...deltas: readonly object[]): readonly object[] => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]

const MESSAGES: Upstream = {
  upstream: 'messages',
  translate: (request, setting) =>
    new ResponsesTranslation('messages', responsesOverMessages, { ...REQUEST, ...request }, setting),
  answer: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'Hello!', citations: null }],
    stop_reason: 'end_turn',
    usage: {
      input_tokens: 13,
      cache_read_input_tokens: 5,
      cache_creation_input_tokens: 2,
      output_tokens: 10,
      output_tokens_details: { thinking_tokens: 4 },
    },
  },
  stream: [
    { type: 'message_start', message: { id: 'msg_1', content: [], usage: { input_tokens: 12, output_tokens: 1 } } },
    { type: 'ping' },
    ...block(
      0,
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'thinking_delta', thinking: 'h' },
      { type: 'thinking_delta', thinking: 'm' },
      { type: 'signature_delta', signature: 'sig' },
    ),
    ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hel' }, { type: 'text_delta', text: 'lo' }),
    ...block(
      2,
      { type: 'tool_use', id: 'call_1', name: 'weather', input: {} },
      { type: 'input_json_delta', partial_json: '{"a":' },
      { type: 'input_json_delta', partial_json: '1.0}' },
    ),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 10 } },
    { type: 'message_stop' },
  ],
  thoughts: '[{"type":"thinking","thinking":"hm","signature":"sig"}]',
}

const user = (content: unknown): object => ({ role: 'user', content })
const WEATHER = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } }
const CALL = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '{}' }
const OUTPUT = { type: 'function_call_output', call_id: 'call_1', output: 'warm' }
const PICTURE = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' }
const FILE = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' }

describe.each([CHAT, MESSAGES])('A request for a response at a $upstream upstream', ({ translate }) => {
  it.each<[object, string, TranslationSetting['facts']]>([
    [{ background: true }, 'background', {}],
    [{ context_management: [{ type: 'compaction' }] }, 'context_management', {}],
    [{ conversation: 'conv_1' }, 'conversation', {}],
    [{ moderation: { model: 'm' } }, 'moderation', {}],
    [{ previous_response_id: 'resp_1' }, 'previous_response_id', {}],
    [{ prompt: { id: 'p' } }, 'prompt', {}],
    [{ truncation: 'auto' }, 'truncation', {}],
    [{ top_logprobs: 2 }, 'top_logprobs', {}],
    [{ include: ['message.output_text.logprobs'] }, 'include[0]', {}],
    [{ reasoning: { mode: 'pro' } }, 'reasoning.mode', {}],
    [{ text: { format: { type: 'grammar' } } }, 'text.format.type', {}],
    [{ tools: [{ type: 'web_search' }] }, 'tools[0].type', {}],
    [{ tools: [WEATHER, { type: 'namespace', name: 'n', tools: [] }] }, 'tools[1].type', {}],
    [{ tools: [{ ...WEATHER, defer_loading: true }] }, 'tools[0].defer_loading', {}],
    [{ tools: [{ ...WEATHER, allowed_callers: ['programmatic'] }] }, 'tools[0].allowed_callers', {}],
    [{ tools: [{ type: 'custom', name: 'c', format: { type: 'other' } }] }, 'tools[0].format.type', {}],
    [{ tool_choice: { type: 'web_search_preview' } }, 'tool_choice.type', {}],
    [{ tool_choice: { type: 'mcp', server_label: 'a' } }, 'tool_choice.type', {}],
    [{ tool_choice: 'any' }, 'tool_choice', {}],
    [{ tool_choice: { type: 'allowed_tools', mode: 'all', tools: [] } }, 'tool_choice.mode', {}],
    [
      { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'mcp' }] } },
      'tool_choice.tools[0].type',
      {},
    ],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0]', {}],
    [{ input: [{ id: 'msg_1' }] }, 'input[0]', {}],
    [{ input: [{ type: 'web_search_call', id: 'ws_1' }] }, 'input[0].type', {}],
    [{ input: [{ type: 'computer_call' }] }, 'input[0].type', {}],
    [{ input: [{ role: 'tool', content: 'a' }] }, 'input[0].role', {}],
    [{ input: [user([{ type: 'text', text: 'a' }])] }, 'input[0].content[0].type', {}],
    [{ input: [user([{ type: 'input_audio' }])] }, 'input[0].content[0].type', {}],
    [{ input: [{ role: 'system', content: [PICTURE] }] }, 'input[0].content[0].type', {}],
    [{ input: [{ role: 'assistant', content: [PICTURE] }] }, 'input[0].content[0].type', {}],
    [{ input: [user([{ type: 'input_image', file_id: 'file_1' }])] }, 'input[0].content[0].file_id', {}],
    [{ input: [user([{ type: 'input_file', file_id: 'file_1' }])] }, 'input[0].content[0].file_id', {}],
    [{ input: [user([PICTURE])] }, 'input[0].content[0].type', { vision: false }],
    [{ input: [user([FILE])] }, 'input[0].content[0].type', { files: false }],
    [{ input: [CALL] }, 'input[0].call_id', {}],
    [{ input: [OUTPUT] }, 'input[0].call_id', {}],
    [{ input: [OUTPUT, CALL] }, 'input[0].call_id', {}],
    [{ input: [CALL, OUTPUT, OUTPUT] }, 'input[2].call_id', {}],
    [{ input: [{ ...CALL, caller: { type: 'program', caller_id: 'a' } }, OUTPUT] }, 'input[0].caller', {}],
    [{ input: [{ ...CALL, caller: 'program' }, OUTPUT] }, 'input[0].caller', {}],
    [{ input: [{ ...CALL, namespace: 'a' }, OUTPUT] }, 'input[0].namespace', {}],
  ])('is refused for %j, naming %s and a way out', (fields, path, facts) => {
    const { kind, message, details } = thrownBy(() => translate(fields, { facts: { ...facts } }))
    expect([kind, details]).toEqual(['invalid_request', { code: 'unsupported_value', param: path }])
    expect(message).toMatch(/translates not at all\. \S.*\.$/)
  })

  it.each<[object, string, string]>([
    [{ input: null }, 'input', 'missing_required_parameter'],
    [{ input: [1] }, 'input[0]', 'invalid_type'],
    [{ input: [{}] }, 'input[0].type', 'missing_required_parameter'],
    [{ input: [{ role: 'user' }] }, 'input[0].content', 'missing_required_parameter'],
    [{ input: [user(1)] }, 'input[0].content', 'invalid_type'],
    [{ input: [user([1])] }, 'input[0].content[0]', 'invalid_type'],
    [{ input: [user([{ type: 'input_text' }])] }, 'input[0].content[0].text', 'missing_required_parameter'],
    [{ input: [user([{ type: 'input_image' }])] }, 'input[0].content[0].image_url', 'missing_required_parameter'],
    [{ input: [user([{ type: 'input_file' }])] }, 'input[0].content[0].file_data', 'missing_required_parameter'],
    [{ input: [{ ...CALL, arguments: {} }, OUTPUT] }, 'input[0].arguments', 'invalid_type'],
    [{ input: [CALL, { ...OUTPUT, output: null }] }, 'input[1].output', 'missing_required_parameter'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].name', 'missing_required_parameter'],
    [{ tools: [{ ...WEATHER, parameters: [] }] }, 'tools[0].parameters', 'invalid_type'],
    [{ tools: [{ ...WEATHER, strict: 'yes' }] }, 'tools[0].strict', 'invalid_type'],
    [{ text: { format: 1 } }, 'text.format', 'invalid_type'],
    [{ text: { format: { type: 'json_schema', name: 'a' } } }, 'text.format.schema', 'missing_required_parameter'],
    [{ tool_choice: { type: 'function' } }, 'tool_choice.name', 'missing_required_parameter'],
    [{ include: 1 }, 'include', 'invalid_type'],
    [{ reasoning: { effort: 1 } }, 'reasoning.effort', 'invalid_type'],
    [{ stream_options: 1 }, 'stream_options', 'invalid_type'],
  ])('is refused where it has %j, by the path %s', (fields, path, code) => {
    const { kind, details } = thrownBy(() => translate(fields))
    expect([kind, details]).toEqual(['invalid_request', { code, param: path }])
  })

  it('tells a strict caller to say whether a function is strict, as it is not so by default', () => {
    const { message, details } = thrownBy(() => translate({ tools: [WEATHER] }, { isStrict: true }))
    expect([details, message]).toEqual([
      { code: 'unsupported_value', param: 'tools[0].strict' },
      expect.stringContaining('only approximately. Send tools[0].strict: false, or true with a closed schema, or '),
    ])
    expect(translate({ tools: [{ ...WEATHER, strict: false }] }, { isStrict: true }).sent['tools']).toHaveLength(1)
  })

  it('marks nothing for the prompt cache where the caller hears that the mark is dropped', () => {
    const said = { type: 'output_text', text: 'Hello', prompt_cache_breakpoint: { mode: 'explicit' } }
    const input = [user('Hi'), { role: 'assistant', content: [said] }, user('Well?')]
    const { verdicts, sentText } = translate({ input }, { facts: { promptCacheBreakpoints: true } })
    expect(verdicts.dropped).toBe('input[1].content[0].prompt_cache_breakpoint')
    expect(sentText).not.toContain('cache')
  })
})

describe.each([CHAT, MESSAGES])('The answer of a $upstream upstream as a response', ({ translate, answer }) => {
  it('has every member of the type, says back what was asked, and counts inclusively', () => {
    const before = Math.floor(Date.now() / 1000)
    const response = translate({
      instructions: 'Be short.',
      metadata: { a: 'b' },
      tools: [{ type: 'function', name: 'f' }],
      reasoning: { effort: 'low', summary: 'auto' },
      store: true,
    }).answer(answer)
    expect(response.created_at).toBeGreaterThanOrEqual(before)
    expect(response).toEqual({
      id: expect.stringMatching(/^resp_[\da-f]{52}$/),
      object: 'response',
      created_at: response.created_at,
      status: 'completed',
      background: false,
      completed_at: expect.any(Number),
      error: null,
      incomplete_details: null,
      instructions: 'Be short.',
      max_output_tokens: 100,
      metadata: { a: 'b' },
      model: 'asked',
      output: [
        {
          id: expect.stringMatching(/^msg_[\da-f]{52}$/),
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', annotations: [], logprobs: [], text: 'Hello!' }],
        },
      ],
      parallel_tool_calls: true,
      previous_response_id: null,
      prompt_cache_key: null,
      prompt_cache_retention: null,
      reasoning: { effort: 'low', summary: 'auto' },
      safety_identifier: null,
      service_tier: 'default',
      store: false,
      temperature: 1,
      text: { format: { type: 'text' }, verbosity: 'medium' },
      tool_choice: 'auto',
      tools: [{ type: 'function', name: 'f', description: null, parameters: null, strict: false }],
      top_logprobs: 0,
      top_p: 1,
      truncation: 'disabled',
      usage: {
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 5, cache_write_tokens: 2 },
        output_tokens: 10,
        output_tokens_details: { reasoning_tokens: 4 },
        total_tokens: 30,
      },
      user: null,
    })
    expect(translate({}).answer(answer)).toMatchObject({ reasoning: { effort: null, summary: null }, tools: [] })
  })

  const closed = { type: 'object', properties: {}, additionalProperties: false }

  it.each<[object, boolean]>([
    [{ parameters: closed }, false],
    [{ parameters: closed, strict: null }, false],
    [{ parameters: closed, strict: true }, true],
    [{ parameters: closed, strict: false }, false],
    [{ parameters: { type: 'object' } }, false],
    [{ parameters: null }, false],
    [{}, false],
  ])('says of a function with %j what the upstream was sent as strict: %s', (of, strict) => {
    const tools = [
      { type: 'custom', name: 'c' },
      { ...WEATHER, parameters: undefined, ...of },
    ]
    expect(translate({ tools }).answer(answer).tools).toMatchObject([{ name: 'c' }, { name: 'weather', strict }])
  })

  it('may be kept once it is there, with its items apart', () => {
    const run = translate({})
    expect(run.translation.made?.()).toBeUndefined()
    const { output, ...response } = run.answer(answer)
    expect(parsedMade(run)).toEqual({ response: { ...response, output: [] }, output, responseId: response.id })
  })
})

/** What may be kept of a response. */
function parsedMade({ translation }: ResponsesTranslation<object>): object | undefined {
  const made = translation.made?.()
  if (made === undefined) return undefined
  const response: unknown = JSON.parse(made.response)
  return { ...made, response, output: made.output.map((item): unknown => JSON.parse(item)) }
}

describe.each([CHAT, MESSAGES])('The events of a $upstream upstream as those of a response', (of) => {
  const events = of
    .translate({ stream: true, reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] })
    .events(of.stream)

  it('tell of thoughts, a text and a call, as the vendor’s client expects them', async () => {
    expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ])
    for (const event of events.slice(0, 2)) {
      expect(event).toMatchObject({ response: { status: 'in_progress', output: [], usage: null, completed_at: null } })
    }
    expect(lastResponse(events)).toMatchObject({
      status: 'completed',
      output: [
        {
          id: expect.stringMatching(/^rs_/),
          type: 'reasoning',
          summary: [{ type: 'summary_text', text: 'hm' }],
          encrypted_content: sealed(of.thoughts),
        },
        { type: 'message', status: 'completed', content: [{ text: 'Hello' }] },
        { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{"a":1.0}' },
      ],
      usage: { input_tokens: 12, output_tokens: 10, total_tokens: 22 },
    })
    expect(events[8]).toMatchObject({ output_index: 0, item: { encrypted_content: sealed(of.thoughts) } })
    expect(comparable(await accumulated(events))).toEqual(comparable(lastResponse(events)))
  })

  it('make a response that may be kept with the last of them, and none where they fail', () => {
    const run = of.translate({ stream: true })
    const { output, ...response } = lastResponse(run.events(of.stream))
    expect(parsedMade(run)).toEqual({ response: { ...response, output: [] }, output, responseId: response.id })
    const failed = of.translate({ stream: true })
    failed.failedEvents(of.stream.slice(0, -2), new GatewayError('upstream_failed', 'Gone.'))
    expect(parsedMade(failed)).toBeUndefined()
  })

  it('say where each piece of a text stands', () => {
    const id: unknown = expect.stringMatching(/^msg_/)
    const at = { item_id: id, output_index: 1, content_index: 0 }
    const item = { id, type: 'message', role: 'assistant', status: 'in_progress', content: [] }
    const part = { type: 'output_text', annotations: [], logprobs: [], text: '' }
    const whole = { ...part, text: 'Hello' }
    expect(events.slice(9, 16)).toEqual(
      [
        { type: 'response.output_item.added', output_index: 1, item },
        { type: 'response.content_part.added', ...at, part },
        { type: 'response.output_text.delta', ...at, delta: 'Hel', logprobs: [] },
        { type: 'response.output_text.delta', ...at, delta: 'lo', logprobs: [] },
        { type: 'response.output_text.done', ...at, text: 'Hello', logprobs: [] },
        { type: 'response.content_part.done', ...at, part: whole },
        {
          type: 'response.output_item.done',
          output_index: 1,
          item: { ...item, status: 'completed', content: [whole] },
        },
      ].map((event, index) => ({ ...event, sequence_number: index + 9 })),
    )
  })
})
