import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { sealed, thrownBy, type TranslationSetting } from '../../../../test/support/translation.js'
import type { ChatFields } from '../../openai-wire.js'
import { responsesOverChat } from './responses-over-chat.js'

const translate = (request: object | string, setting?: TranslationSetting): ResponsesTranslation<ChatFields> =>
  new ResponsesTranslation('chat', responsesOverChat, request, setting)

const HELLO = { model: 'asked', input: 'Hello' }
const messagesOf = (input: unknown, setting?: TranslationSetting): unknown =>
  translate({ input }, setting).sent['messages']
const user = (content: unknown): object => ({ role: 'user', content })
const text = (words: string): object => ({ type: 'text', text: words })

const WEATHER = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} }, strict: false }
const CALL = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '{"a":1.0}' }
const OUTPUT = { type: 'function_call_output', call_id: 'call_1', output: 'warm' }
const TOOL_CALL = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"a":1.0}' } }
const MARKED = { type: 'input_text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } }
const PICTURE = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' }
const FILE = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' }

describe('A request for a response at a chat upstream', () => {
  it('names the upstream’s model, and is a conversation', () => {
    expect(translate(HELLO).sent).toEqual({ model: 'upstream-model', messages: [user('Hello')] })
  })

  it('of a strict caller is refused with the effort that the model takes instead', () => {
    const facts = { thinking: 'adaptive', efforts: ['none', 'low'] } as const
    const { message } = thrownBy(() =>
      translate({ ...HELLO, reasoning: { effort: 'high' } }, { facts, isStrict: true }),
    )
    expect(message).toContain('only approximately. Send reasoning.effort: low, or send the request without')
  })

  it('asks for figures where it streams', () => {
    expect(translate({ ...HELLO, stream: true }).sent).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(translate({ ...HELLO, stream: false }).sent).not.toHaveProperty('stream_options')
  })

  it.each<[object, object]>([
    [{ max_output_tokens: 20 }, { max_completion_tokens: 20 }],
    [{ temperature: 0.5 }, { temperature: 0.5 }],
    [{ top_p: 0.5 }, { top_p: 0.5 }],
    [
      { safety_identifier: 'a', user: 'b' },
      { safety_identifier: 'a', user: 'b' },
    ],
    [{ service_tier: 'flex' }, { service_tier: 'flex' }],
    [
      { prompt_cache_key: 'a', prompt_cache_retention: '24h' },
      { prompt_cache_key: 'a', prompt_cache_retention: '24h' },
    ],
    [{ reasoning: { effort: null, summary: null, mode: 'standard', context: 'auto' } }, {}],
    [{ text: { format: { type: 'text' } } }, {}],
    [{ text: { verbosity: 'low' } }, { verbosity: 'low' }],
    [{ text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
    [
      {
        text: {
          format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true, description: 'd' },
        },
      },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'n', schema: { type: 'object' }, strict: true, description: 'd' },
        },
      },
    ],
    [{ metadata: { a: 'b' }, store: false, background: false, truncation: 'disabled' }, {}],
    [{ include: ['reasoning.encrypted_content'], top_logprobs: 0, context_management: [] }, {}],
    [{ stream_options: { include_obfuscation: false } }, {}],
    [{ conversation: null, previous_response_id: null, prompt: null, tools: null, unknown: null }, {}],
    [{ tool_choice: 'auto', parallel_tool_calls: true, tools: [] }, {}],
    [{ tool_choice: 'required' }, { tool_choice: 'required' }],
  ])('takes %j along as %j, and says nothing of it', (fields, expected) => {
    const { sent, verdicts } = translate({ ...HELLO, ...fields })
    expect(sent).toEqual({ model: 'upstream-model', messages: [user('Hello')], ...expected })
    expect([verdicts.approximated, verdicts.dropped]).toEqual([undefined, undefined])
  })

  it.each<[object, object, TranslationSetting['facts']]>([
    [{ max_output_tokens: 20 }, { max_tokens: 20 }, { maxTokensField: 'max_tokens' }],
    [{ reasoning: { effort: 'xhigh' } }, { reasoning_effort: 'xhigh' }, { thinking: 'adaptive' }],
    [
      { prompt_cache_options: { ttl: '30m' } },
      { prompt_cache_options: { ttl: '30m' } },
      { promptCacheBreakpoints: true },
    ],
  ])('takes %j along as %j where the model’s row says so', (fields, expected, facts) => {
    expect(translate({ ...HELLO, ...fields }, { facts: { ...facts } }).sent).toMatchObject(expected)
  })

  it('drops what would only help, and a strict caller is refused', () => {
    const cases: readonly [object, string][] = [
      [{ store: true }, 'store'],
      [{ reasoning: { summary: 'auto' } }, 'reasoning.summary'],
      [{ reasoning: { generate_summary: 'auto' } }, 'reasoning.generate_summary'],
      [{ reasoning: { context: 'all_turns' } }, 'reasoning.context'],
      [{ include: ['file_search_call.results'] }, 'include[0]'],
      [{ prompt_cache_options: { ttl: '30m' } }, 'prompt_cache_options'],
      [{ stream_options: { include_obfuscation: true } }, 'stream_options.include_obfuscation'],
      [{ unknown: 1 }, 'unknown'],
      [{ toString: 1 }, 'toString'],
      [{ text: { unknown: 1 } }, 'text.unknown'],
      [{ tools: [{ ...WEATHER, output_schema: {} }] }, 'tools[0].output_schema'],
      [{ input: [{ role: 'assistant', content: 'Hi', phase: 'commentary' }] }, 'input[0].phase'],
      [{ input: [{ role: 'user', content: 'Hi', unknown: 1 }] }, 'input[0].unknown'],
      [{ input: [user([{ type: 'input_text', text: 'Hi', unknown: 1 }])] }, 'input[0].content[0].unknown'],
      [{ input: [user([{ ...FILE, detail: 'high' }])] }, 'input[0].content[0].detail'],
      [
        { input: [{ role: 'assistant', content: [{ type: 'output_text', text: 'a', annotations: [{}] }] }] },
        'input[0].content[0].annotations',
      ],
    ]
    for (const [fields, path] of cases) {
      const { verdicts } = translate({ ...HELLO, ...fields })
      expect([path, verdicts.dropped, verdicts.approximated]).toEqual([path, path, undefined])
      const { kind, details } = thrownBy(() => translate({ ...HELLO, ...fields }, { isStrict: true }))
      expect([kind, details]).toEqual(['invalid_request', { code: 'unsupported_value', param: path }])
    }
  })

  it.each<[object, string, TranslationSetting]>([
    [{ input: [user([{ ...PICTURE, detail: 'original' }])] }, 'input[0].content[0].detail', {}],
    [{ input: [CALL, { ...OUTPUT, output: [PICTURE] }] }, 'input[1].output', {}],
    [{ reasoning: { summary: 'auto' } }, 'reasoning.summary', { facts: { reasoningField: 'reasoning' } }],
    [
      { input: [user('Hi'), { role: 'developer', content: 'Be short.' }] },
      'input[1]',
      { facts: { systemRole: 'none' } },
    ],
  ])('approximates %j, says %s, and a strict caller is refused', (fields, path, setting) => {
    const { verdicts } = translate({ ...HELLO, ...fields }, setting)
    expect([verdicts.approximated, verdicts.dropped]).toEqual([path, undefined])
    const { details } = thrownBy(() => translate({ ...HELLO, ...fields }, { ...setting, isStrict: true }))
    expect(details).toEqual({ code: 'unsupported_value', param: path })
  })

  it('tells a strict caller how to ask a model for tools that takes them only where it does not think', () => {
    const setting: TranslationSetting = { facts: { thinking: 'adaptive', thinkingWithTools: false }, isStrict: true }
    const { message, details } = thrownBy(() => translate({ ...HELLO, tools: [WEATHER] }, setting))
    expect([details.param, message]).toEqual([
      'reasoning',
      expect.stringContaining('Send reasoning: {effort: none}, or '),
    ])
    expect(() => translate({ ...HELLO, tools: [WEATHER], reasoning: { effort: 'none' } }, setting)).not.toThrow()
  })

  it('is refused for a file of the web, naming it and a way out', () => {
    const input = [user([{ type: 'input_file', file_url: 'https://a.test/a' }])]
    const { kind, message, details } = thrownBy(() => translate({ input }))
    expect([kind, details]).toEqual([
      'invalid_request',
      { code: 'unsupported_value', param: 'input[0].content[0].file_url' },
    ])
    expect(message).toMatch(/translates not at all\. \S.*\.$/)
  })
})

describe('Its conversation', () => {
  it('begins with the instructions, in the role that the model takes', () => {
    const request = { instructions: 'Be short.', input: [{ role: 'system', content: 'Or not.' }, user('Hi')] }
    expect(translate(request, { facts: { systemRole: 'system' } }).sent['messages']).toEqual([
      { role: 'system', content: 'Be short.' },
      { role: 'system', content: 'Or not.' },
      user('Hi'),
    ])
    expect(translate(request, { facts: { systemRole: 'developer' } }).sent['messages']).toMatchObject([
      { role: 'developer' },
      { role: 'developer' },
      { role: 'user' },
    ])
    expect(translate(request, { facts: { systemRole: 'none' } }).sent['messages']).toEqual([
      {
        role: 'system',
        content: [
          { type: 'text', text: 'Be short.' },
          { type: 'text', text: 'Or not.' },
        ],
      },
      user('Hi'),
    ])
  })

  it('keeps parts in their order, and one text as a string', () => {
    const picture = { type: 'image_url', image_url: { url: PICTURE.image_url, detail: 'auto' } }
    expect(messagesOf([user([{ type: 'input_text', text: 'a' }])])).toEqual([user('a')])
    expect(messagesOf([user([PICTURE, { type: 'input_text', text: 'a' }, FILE])])).toEqual([
      user([
        picture,
        { type: 'text', text: 'a' },
        { type: 'file', file: { filename: 'a.pdf', file_data: FILE.file_data } },
      ]),
    ])
  })

  it('has marks for the prompt cache where the model’s row has them', () => {
    const text = { type: 'input_text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } }
    expect(messagesOf([user([text])])).toEqual([user('a')])
    expect(messagesOf([user([text])], { facts: { promptCacheBreakpoints: true } })).toEqual([
      user([{ type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } }]),
    ])
  })

  it.each<[string, object, boolean]>([
    ['of a model without them', user([MARKED]), false],
    ['of an instruction for a model without them', { role: 'system', content: [MARKED] }, false],
    ['in what the model said, which is one text', { role: 'assistant', content: [MARKED] }, true],
  ])('says which marks for the prompt cache are lost: %s', (_where, item, promptCacheBreakpoints) => {
    const { sentText, verdicts } = translate({ input: [item, user('b')] }, { facts: { promptCacheBreakpoints } })
    expect(sentText).not.toContain('prompt_cache_breakpoint')
    expect(verdicts.dropped).toBe('input[0].content[0].prompt_cache_breakpoint')
  })

  it('says so of a mark of a form that is not known', () => {
    const other = { ...MARKED, prompt_cache_breakpoint: { mode: 'other' } }
    const { sentText, verdicts } = translate({ input: [user([other])] }, { facts: { promptCacheBreakpoints: true } })
    expect(sentText).not.toContain('prompt_cache_breakpoint')
    expect(verdicts.dropped).toBe('input[0].content[0].prompt_cache_breakpoint')
  })

  it('joins calls of one turn to what was said before them, and puts the results at once behind them', () => {
    const second = { ...CALL, call_id: 'call_2' }
    expect(
      messagesOf([
        user('Weather?'),
        { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Let me see.' }] },
        CALL,
        second,
        user('Hurry!'),
        { ...OUTPUT, call_id: 'call_2', output: 'cold' },
        OUTPUT,
      ]),
    ).toEqual([
      user('Weather?'),
      { role: 'assistant', content: 'Let me see.', tool_calls: [TOOL_CALL, { ...TOOL_CALL, id: 'call_2' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'warm' },
      { role: 'tool', tool_call_id: 'call_2', content: 'cold' },
      user('Hurry!'),
    ])
  })

  it('has a call that some clients give an output of its own, which says nothing', () => {
    const input = [{ ...CALL, output: null }, OUTPUT]
    expect(messagesOf(input)).toEqual(messagesOf([CALL, OUTPUT]))
    const { sent, verdicts } = translate({ input: [{ ...CALL, output: 'hot' }, OUTPUT] })
    expect([sent['messages'], verdicts.dropped]).toEqual([messagesOf([CALL, OUTPUT]), 'input[0].output'])
  })

  it('keeps turns with equal ids of calls apart', () => {
    expect(messagesOf([CALL, OUTPUT, CALL, { ...OUTPUT, output: 'cold' }])).toEqual([
      { role: 'assistant', content: null, tool_calls: [TOOL_CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: 'warm' },
      { role: 'assistant', content: null, tool_calls: [TOOL_CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: 'cold' },
    ])
  })

  it('keeps what a model said in several messages apart, and its refusals as parts', () => {
    const refusal = { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }
    expect(messagesOf([{ role: 'assistant', content: 'a' }, refusal])).toEqual([
      { role: 'assistant', content: 'a' },
      refusal,
    ])
  })

  it('has calls of custom tools', () => {
    expect(
      messagesOf([
        { type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: '*** Begin' },
        { type: 'custom_tool_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'done' }] },
      ]),
    ).toEqual([
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: '*** Begin' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ])
  })

  it('shows pictures of results behind all results', () => {
    const output = [{ type: 'input_text', text: 'seen' }, PICTURE, FILE]
    expect(
      messagesOf([CALL, { ...CALL, call_id: 'call_2' }, { ...OUTPUT, output }, { ...OUTPUT, call_id: 'call_2' }]),
    ).toEqual([
      { role: 'assistant', content: null, tool_calls: [TOOL_CALL, { ...TOOL_CALL, id: 'call_2' }] },
      {
        role: 'tool',
        tool_call_id: 'call_1',
        content: [text('seen'), text('picture 1 of this result follows'), text('file 1 of this result follows')],
      },
      { role: 'tool', tool_call_id: 'call_2', content: 'warm' },
      user([
        text('picture 1 of the result of call_1:'),
        { type: 'image_url', image_url: { url: PICTURE.image_url, detail: 'auto' } },
        text('file 1 of the result of call_1:'),
        { type: 'file', file: { filename: 'a.pdf', file_data: FILE.file_data } },
      ]),
    ])
  })

  it('has several texts of a result as they are, with their marks where the model’s row has them', () => {
    const marked = { type: 'input_text', text: 'b', prompt_cache_breakpoint: { mode: 'explicit' } }
    const input = [CALL, { ...OUTPUT, output: [{ type: 'input_text', text: 'a' }, marked] }]
    const { sent, verdicts } = translate({ input })
    const result = { role: 'tool', tool_call_id: 'call_1', content: [text('a'), text('b')] }
    expect([sent['messages'], verdicts.approximated, verdicts.dropped]).toEqual([
      [{ role: 'assistant', content: null, tool_calls: [TOOL_CALL] }, result],
      undefined,
      'input[1].output[1].prompt_cache_breakpoint',
    ])
    expect(messagesOf(input, { facts: { promptCacheBreakpoints: true } })).toMatchObject([
      { role: 'assistant' },
      { content: [text('a'), { ...text('b'), prompt_cache_breakpoint: { mode: 'explicit' } }] },
    ])
  })

  it('leaves thoughts out, but for those of the turn that calls tools where the model wants them back', () => {
    const thought = {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 'summed up' }],
      encrypted_content: sealed('{"reasoning":"thought"}'),
    }
    const input = [thought, { role: 'assistant', content: 'a' }, user('Weather?'), thought, CALL, OUTPUT]
    const { verdicts, sent } = translate({ input })
    expect([verdicts.dropped, JSON.stringify(sent)]).toEqual([undefined, expect.not.stringContaining('thought')])
    const facts = { reasoningField: 'reasoning_content' } as const
    const expected = (text: string): object[] => [
      { role: 'assistant', content: 'a' },
      user('Weather?'),
      { role: 'assistant', content: null, reasoning_content: text, tool_calls: [TOOL_CALL] },
      { role: 'tool', tool_call_id: 'call_1', content: 'warm' },
    ]
    expect(messagesOf(input, { facts })).toEqual(expected('thought'))
    // Of turns before the user spoke they are not wanted, even if those called tools.
    const earlier = [thought, CALL, OUTPUT, user('Weather?')]
    expect(JSON.stringify(messagesOf(earlier, { facts }))).not.toContain('thought')
    const foreign = [{ ...thought, encrypted_content: 'gAAAA' }, ...input.slice(4)]
    expect(messagesOf(foreign, { facts })).toEqual(expected('summed up').slice(2))
    const blocks = [{ ...thought, encrypted_content: sealed('[{"type":"thinking"}]') }, ...input.slice(4)]
    expect(messagesOf(blocks, { facts })).toEqual(expected('summed up').slice(2))
  })

  it.each<[string, object, string]>([
    ['a seal that does not open', { encrypted_content: 'gAAAA' }, '[1].encrypted_content'],
    ['a seal of another kind', { encrypted_content: sealed('[{"type":"thinking"}]') }, '[1].encrypted_content'],
    ['no seal', {}, '[1]'],
  ])('drops thoughts with %s and no text where the model wants them back, and says so', (_what, more, path) => {
    const lost = { type: 'reasoning', id: 'rs_1', summary: [], ...more }
    const facts = { reasoningField: 'reasoning_content' } as const
    const { sent, verdicts } = translate({ input: [user('Weather?'), lost, CALL, OUTPUT] }, { facts })
    expect([verdicts.dropped, JSON.stringify(sent)]).toEqual([`input${path}`, expect.not.stringContaining('reasoning')])
    // Where they would not be sent, nothing is lost.
    for (const input of [
      [lost, { role: 'assistant', content: 'a' }, user('Weather?')],
      [lost, CALL, OUTPUT, user('Weather?')],
    ]) {
      expect(translate({ input }, { facts }).verdicts.dropped).toBeUndefined()
    }
    expect(translate({ input: [lost, CALL, OUTPUT] }).verdicts.dropped).toBeUndefined()
  })
})

describe('Its tools', () => {
  it('are nested, with schemas as they were spelled', () => {
    const text = `{"model":"asked","input":"Hi","tools":[{"type":"function","name":"f","strict":true,"description":"d",
      "parameters":{"z":1.0, "type":"object","a":12345678901234567890,"b":1e400}},{"type":"function","name":"g","parameters":null}],
      "text":{"format":{"type":"json_schema","name":"n","schema":{"b":1.0,"a":0}}}}`
    const { sentText } = translate(text)
    expect(sentText).toContain(
      '{"type":"function","function":{"name":"f","description":"d","parameters":{"z":1.0, "type":"object",' +
        '"a":12345678901234567890,"b":1e400},"strict":true}},{"type":"function","function":{"name":"g"}}',
    )
    expect(sentText).toContain('"schema":{"b":1.0,"a":0}')
  })

  it('may be custom, with a grammar', () => {
    const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' }
    const tools = [
      { type: 'custom', name: 'a', description: 'd', format: grammar },
      { type: 'custom', name: 'b', format: { type: 'text' } },
    ]
    expect(translate({ ...HELLO, tools }).sent['tools']).toEqual([
      {
        type: 'custom',
        custom: {
          name: 'a',
          description: 'd',
          format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "a"' } },
        },
      },
      { type: 'custom', custom: { name: 'b' } },
    ])
  })

  it.each<[unknown, unknown]>([
    ['auto', 'auto'],
    ['none', 'none'],
    ['required', 'required'],
    [
      { type: 'function', name: 'weather' },
      { type: 'function', function: { name: 'weather' } },
    ],
    [
      { type: 'custom', name: 'patch' },
      { type: 'custom', custom: { name: 'patch' } },
    ],
    [
      { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'weather' }] },
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'weather' } }] },
      },
    ],
  ])('are chosen by %j as by %j', (choice, expected) => {
    const request = { ...HELLO, tools: [WEATHER], tool_choice: choice, parallel_tool_calls: false }
    expect(translate(request).sent).toMatchObject({ tool_choice: expected, parallel_tool_calls: false })
  })
})
