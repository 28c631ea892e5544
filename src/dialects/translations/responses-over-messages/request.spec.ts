import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { sealed, thrownBy, type TranslationSetting } from '../../../../test/support/translation.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import { responsesOverMessages } from './responses-over-messages.js'

const HELLO = { model: 'asked', input: 'Hello', max_output_tokens: 20_000 }

const translate = (request: object | string, setting?: TranslationSetting): ResponsesTranslation<MessagesFields> =>
  new ResponsesTranslation(
    'messages',
    responsesOverMessages,
    typeof request === 'string' ? request : { ...HELLO, ...request },
    setting,
  )

const messagesOf = (input: unknown, setting?: TranslationSetting): unknown =>
  translate({ input }, setting).sent['messages']

const text = (words: string): object => ({ type: 'text', text: words })
const said = (role: string, ...blocks: object[]): object => ({ role, content: blocks })
const saidText = (role: string, content: string): object => ({ role, content })
const user = (content: unknown): object => ({ role: 'user', content })

const WEATHER = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} }, strict: false }
const PATCH = { type: 'custom', name: 'patch' }
const CALL = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '{}' }
const OUTPUT = { type: 'function_call_output', call_id: 'call_1', output: 'warm' }
const PICTURE = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' }
const FILE = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' }
const USE = { type: 'tool_use', id: 'call_1', name: 'weather', input: {} }
const RESULT = { type: 'tool_result', tool_use_id: 'call_1', content: 'warm' }
const BLOCKS = [
  { type: 'thinking', thinking: '', signature: 'sig' },
  { type: 'redacted_thinking', data: 'data' },
]
const THOUGHT = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: sealed(JSON.stringify(BLOCKS)) }

const allowed = (mode: string, ...names: readonly string[]): object => ({
  type: 'allowed_tools',
  mode,
  tools: names.map((name) => ({ type: 'function', name })),
})
const SCHEMA = { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }

describe('A request for a response at a messages upstream', () => {
  it('names the upstream’s model and a maximum, and is a conversation', () => {
    expect(translate({}).sent).toEqual({
      model: 'upstream-model',
      max_tokens: 20_000,
      messages: [saidText('user', 'Hello')],
    })
  })

  it.each<[object, object]>([
    [{ instructions: 'Be short.' }, { system: 'Be short.' }],
    [{ stream: true }, { stream: true }],
    [{ stream: false }, {}],
    [{ temperature: 0.5 }, { temperature: 0.5 }],
    [{ top_p: 0.5 }, { top_p: 0.5 }],
    [{ safety_identifier: 'a', user: 'b' }, { metadata: { user_id: 'a' } }],
    [{ user: 'b', safety_identifier: 'a' }, { metadata: { user_id: 'a' } }],
    [{ user: 'b' }, { metadata: { user_id: 'b' } }],
    [{ service_tier: 'auto' }, { service_tier: 'auto' }],
    [{ service_tier: 'default' }, { service_tier: 'standard_only' }],
    [{ reasoning: { effort: 'none', summary: 'auto' } }, {}],
    [{ reasoning: {} }, {}],
    [{ text: { format: { type: 'text' } } }, {}],
    [{ text: { format: SCHEMA } }, { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } }],
    [{ metadata: { a: 'b' }, store: false, background: false, truncation: 'disabled' }, {}],
    [{ include: ['reasoning.encrypted_content'], top_logprobs: 0, context_management: [] }, {}],
    [{ stream_options: { include_obfuscation: false } }, {}],
    [{ conversation: null, previous_response_id: null, prompt: null, tools: null, unknown: null }, {}],
    [{ tool_choice: 'auto', parallel_tool_calls: false, tools: [] }, {}],
  ])('takes %j along as %j, and says nothing of it', (fields, expected) => {
    const { sent, verdicts } = translate(fields)
    expect(sent).toEqual({
      model: 'upstream-model',
      max_tokens: 20_000,
      messages: [saidText('user', 'Hello')],
      ...expected,
    })
    expect([verdicts.approximated, verdicts.dropped]).toEqual([undefined, undefined])
  })

  it('has the maximum of the model’s row where it names none', () => {
    const { sent, verdicts } = translate({ max_output_tokens: null }, { facts: { maxOutputTokens: 77 } })
    expect([sent['max_tokens'], verdicts.approximated]).toEqual([77, 'max_output_tokens'])
  })

  it.each<[object, string, TranslationSetting['facts']]>([
    [{ store: true }, 'store', {}],
    [{ text: { verbosity: 'low' } }, 'text.verbosity', {}],
    [{ text: { format: { ...SCHEMA, description: 'd' } } }, 'text.format.description', {}],
    [{ reasoning: { effort: 'low' } }, 'reasoning.effort', {}],
    [{ reasoning: { summary: 'auto' } }, 'reasoning.summary', {}],
    [{ reasoning: { summary: 'auto' } }, 'reasoning.summary', { thinking: 'budget' }],
    [{ reasoning: { context: 'all_turns' } }, 'reasoning.context', {}],
    [{ include: ['file_search_call.results'] }, 'include[0]', {}],
    [{ prompt_cache_key: 'a' }, 'prompt_cache_key', {}],
    [{ prompt_cache_options: { ttl: '30m' } }, 'prompt_cache_options', {}],
    [{ prompt_cache_retention: '24h' }, 'prompt_cache_retention', {}],
    [{ stream_options: { include_obfuscation: true } }, 'stream_options.include_obfuscation', {}],
    [{ unknown: 1 }, 'unknown', {}],
    [{ temperature: 0.5 }, 'temperature', { sampling: false }],
    [{ top_p: 0.5 }, 'top_p', { sampling: false }],
    [{ tools: [{ ...WEATHER, output_schema: {} }] }, 'tools[0].output_schema', {}],
    [{ input: [user([{ ...PICTURE, detail: 'low' }])] }, 'input[0].content[0].detail', {}],
    [
      { input: [{ ...THOUGHT, encrypted_content: 'gAAAA' }, CALL, OUTPUT, user('a')] },
      'input[0].encrypted_content',
      {},
    ],
    [
      { input: [user('a'), { ...THOUGHT, encrypted_content: sealed('{"reasoning":"a"}') }, CALL, OUTPUT] },
      'input[1].encrypted_content',
      {},
    ],
    [{ input: [user('a'), { type: 'reasoning', summary: [] }, CALL, OUTPUT] }, 'input[1]', {}],
  ])('drops of %j only %s, and a strict caller is refused', (fields, path, facts) => {
    const first =
      'input' in fields && JSON.stringify(fields.input).startsWith('[{"type":"reasoning"') ? 'input[0]' : undefined
    const { verdicts } = translate(fields, { facts: { ...facts } })
    expect([verdicts.dropped, verdicts.approximated]).toEqual([path, first])
    const { kind, details } = thrownBy(() => translate(fields, { facts: { ...facts }, isStrict: true }))
    expect([kind, details]).toEqual(['invalid_request', { code: 'unsupported_value', param: path }])
  })

  it.each<[object, string, TranslationSetting['facts']]>([
    [{ max_output_tokens: null }, 'max_output_tokens', {}],
    [{ reasoning: { effort: 'low' } }, 'reasoning.effort', { thinking: 'budget' }],
    [{ reasoning: { effort: 'minimal' } }, 'reasoning.effort', { thinking: 'adaptive' }],
    [{ reasoning: { effort: 'none' } }, 'reasoning.effort', { thinking: 'adaptive', thinkingOff: 'never' }],
    [
      { reasoning: { effort: 'low' }, tools: [WEATHER], tool_choice: 'required' },
      'reasoning',
      { thinking: 'adaptive' },
    ],
    [{ reasoning: { effort: 'low' }, input: [user('a'), CALL, OUTPUT] }, 'reasoning', { thinking: 'budget' }],
    [
      {
        tools: [WEATHER],
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'weather' }] },
      },
      'tool_choice',
      {},
    ],
    [{ input: [user('a'), { ...CALL, arguments: 'not JSON' }, OUTPUT] }, 'input[1].arguments', {}],
    [{ input: [user('a'), { role: 'system', content: 'b' }, user('c')] }, 'input[1]', {}],
    [{ input: [user('a'), { role: 'system', content: 'b' }] }, 'input[1]', {}],
    [{ input: [{ role: 'assistant', content: 'a' }, user('b')] }, 'input[0]', {}],
    [{ input: [user('a'), { role: 'assistant', content: 'b' }] }, 'input[1]', {}],
    [{ input: [] }, 'input', {}],
  ])('approximates %j, says %s, and a strict caller is refused', (fields, path, facts) => {
    const { verdicts } = translate(fields, { facts: { ...facts } })
    expect([verdicts.approximated, verdicts.dropped]).toEqual([path, undefined])
    const { details } = thrownBy(() => translate(fields, { facts: { ...facts }, isStrict: true }))
    expect(details).toEqual({ code: 'unsupported_value', param: path })
  })

  it.each<[object, string]>([
    [{ max_output_tokens: null }, 'Send max_output_tokens, or '],
    [{ input: [], instructions: 'Greet me.' }, 'Begin the input with a message of the user, or '],
    [{ input: [user('a'), { role: 'assistant', content: 'b' }] }, 'End the input with a message of the user, or '],
  ])('tells a strict caller what %j lacks', (fields, hint) => {
    expect(thrownBy(() => translate(fields, { isStrict: true })).message).toContain(hint)
  })

  it.each<[object, string, TranslationSetting['facts']]>([
    [{ temperature: 1.5 }, 'temperature', {}],
    [{ service_tier: 'flex' }, 'service_tier', {}],
    [{ reasoning: { effort: 'huge' } }, 'reasoning.effort', {}],
    [{ text: { format: { type: 'json_object' } } }, 'text.format.type', {}],
    [{ tools: [{ ...PATCH, format: { type: 'grammar', syntax: 'lark', definition: 'a' } }] }, 'tools[0].format', {}],
    [{ tools: [WEATHER], tool_choice: 'required' }, 'tool_choice', { forcedToolChoice: false }],
    [{ input: [user([{ ...PICTURE, image_url: 'data:image/bmp;base64,AAAA' }])] }, 'input[0].content[0].image_url', {}],
    [{ input: [user([{ ...PICTURE, image_url: 'ftp://a.test/a' }])] }, 'input[0].content[0].image_url', {}],
    [{ input: [user([{ ...FILE, file_data: 'AAAA' }])] }, 'input[0].content[0].file_data', {}],
    [
      { input: [user([{ ...FILE, file_data: 'data:application/zip;base64,AAAA' }])] },
      'input[0].content[0].file_data',
      {},
    ],
    [{ input: [user([{ ...FILE, file_data: 'data:text/plain;base64,/w==' }])] }, 'input[0].content[0].file_data', {}],
  ])('refuses %j, naming %s and a way out', (fields, path, facts) => {
    const { kind, message, details } = thrownBy(() => translate(fields, { facts: { ...facts } }))
    expect([kind, details]).toEqual(['invalid_request', { code: 'unsupported_value', param: path }])
    expect(message).toMatch(/translates not at all\. \S.*\.$/)
  })

  it.each<[object, string, string]>([
    [{ input: null }, 'input', 'missing_required_parameter'],
    [{ text: { format: { type: 'json_schema', name: 'a' } } }, 'text.format.schema', 'missing_required_parameter'],
    [{ user: 1 }, 'user', 'invalid_type'],
    [{ stream_options: 1 }, 'stream_options', 'invalid_type'],
    [{ tool_choice: 'required' }, 'tool_choice', 'invalid_type'],
    [{ tools: [WEATHER], tool_choice: { type: 'function', name: 'typo' } }, 'tool_choice', 'invalid_type'],
    [{ tools: [WEATHER], tool_choice: allowed('required', 'typo') }, 'tool_choice.tools[0]', 'invalid_type'],
    [{ tools: [WEATHER], tool_choice: allowed('auto', 'weather', 'typo') }, 'tool_choice.tools[1]', 'invalid_type'],
    [{ tools: [WEATHER], tool_choice: allowed('required') }, 'tool_choice', 'invalid_type'],
  ])('says of %j what is wrong with %s', (fields, path, code) => {
    const { kind, details } = thrownBy(() => translate(fields))
    expect([kind, details]).toEqual(['invalid_request', { code, param: path }])
  })
})

describe('Its conversation', () => {
  it('has instructions apart, and those within it where the model takes them', () => {
    const input = [{ role: 'developer', content: 'b' }, user('c'), { role: 'system', content: 'd' }, user('e')]
    const request = { instructions: 'a', input }
    expect(translate(request).sent).toMatchObject({
      system: [text('a'), text('b'), text('d')],
      messages: [said('user', text('c'), text('e'))],
    })
    expect(translate(request, { facts: { systemRole: 'system' } }).sent).toMatchObject({
      system: [text('a'), text('b')],
      messages: [saidText('user', 'c'), saidText('system', 'd'), saidText('user', 'e')],
    })
    expect(messagesOf([user('a'), { role: 'system', content: 'b' }])).toEqual([said('user', text('a'), text('b'))])
  })

  it('begins and ends with a user, who says something', () => {
    expect(messagesOf([{ role: 'assistant', content: 'a' }])).toEqual([
      saidText('user', '...'),
      saidText('assistant', 'a'),
      saidText('user', '...'),
    ])
    expect(messagesOf([])).toEqual([saidText('user', '...')])
    expect(messagesOf([user(' '), user('a'), user([{ type: 'input_text', text: '' }])])).toEqual([
      saidText('user', 'a'),
    ])
  })

  it('keeps parts in their order', () => {
    const web = { type: 'input_image', image_url: 'https://a.test/a.png' }
    const jpg = { type: 'input_image', image_url: 'data:image/JPG;base64,AAA' }
    const note = {
      type: 'input_file',
      file_data: `data:text/csv;charset=utf-8;base64,${Buffer.from('ä,b').toString('base64')}`,
    }
    const link = { type: 'input_file', file_url: 'https://a.test/a.pdf' }
    expect(messagesOf([user([PICTURE, { type: 'input_text', text: 'a' }, web, jpg, FILE, note, link])])).toEqual([
      said(
        'user',
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
        text('a'),
        { type: 'image', source: { type: 'url', url: 'https://a.test/a.png' } },
        { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAA=' } },
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }, title: 'a.pdf' },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'ä,b' } },
        { type: 'document', source: { type: 'url', url: 'https://a.test/a.pdf' } },
      ),
    ])
  })

  it('has the last four marks for the prompt cache', () => {
    const marked = (words: string): object => ({
      type: 'input_text',
      text: words,
      prompt_cache_breakpoint: { mode: 'explicit' },
    })
    const input = [
      user([marked('a'), marked('b')]),
      CALL,
      { ...OUTPUT, output: [marked('c')] },
      user([marked('d'), marked('e')]),
    ]
    const { sent, verdicts } = translate({ input })
    const cache_control = { type: 'ephemeral' }
    expect(sent['messages']).toEqual([
      said('user', text('a'), { ...text('b'), cache_control }),
      said('assistant', USE),
      said(
        'user',
        { ...RESULT, content: 'c', cache_control },
        { ...text('d'), cache_control },
        { ...text('e'), cache_control },
      ),
    ])
    expect(verdicts.dropped).toBe('input[0].content[0].prompt_cache_breakpoint')
  })

  it('says so of a mark of an empty text, which has no block, and of one of a form that is not known', () => {
    for (const part of [
      { text: ' ', prompt_cache_breakpoint: { mode: 'explicit' } },
      { text: 'a', prompt_cache_breakpoint: {} },
    ]) {
      const content = [
        { type: 'input_text', ...part },
        { type: 'input_text', text: 'b' },
      ]
      const { sentText, verdicts } = translate({ input: [{ role: 'user', content }] })
      expect(sentText).not.toContain('cache_control')
      expect(verdicts.dropped).toBe('input[0].content[0].prompt_cache_breakpoint')
    }
  })

  it('has all results of a turn in one message of the user, in the order of the calls, before what the user says', () => {
    const input = [
      user('Weather?'),
      { role: 'assistant', content: [{ type: 'output_text', text: 'Let me see.' }] },
      CALL,
      { ...CALL, call_id: 'call 2' },
      user('Hurry!'),
      { ...OUTPUT, call_id: 'call 2', output: [{ type: 'input_text', text: 'cold' }, PICTURE] },
      OUTPUT,
    ]
    const id = expect.stringMatching(/^t_[a-z2-7]{52}$/) as unknown
    expect(messagesOf(input)).toEqual([
      saidText('user', 'Weather?'),
      said('assistant', text('Let me see.'), USE, { ...USE, id }),
      said(
        'user',
        RESULT,
        {
          type: 'tool_result',
          tool_use_id: id,
          content: [text('cold'), { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }],
        },
        text('Hurry!'),
      ),
    ])
    expect(translate({ input }).verdicts.approximated).toBeUndefined()
    const [call, result] = ['messages.1.content.2.id', 'messages.2.content.1.tool_use_id'].map((path) =>
      path
        .split('.')
        .reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], translate({ input }).sent),
    )
    expect(call).toBe(result)
  })

  it('has inputs of tools as they were spelled', () => {
    const inputOf = (call: object): string =>
      /"name":"[a-z]+","input":(.*)\}\]\},\{"role":"user"/.exec(
        translate({ input: [user('a'), call, OUTPUT] }).sentText,
      )?.[1] ?? ''
    const args = '{ "b":1.0,"a":[12345678901234567890, 1e400] }'
    expect(inputOf({ ...CALL, arguments: args })).toBe(args)
    expect(inputOf({ ...CALL, arguments: '' })).toBe('{}')
    expect(inputOf({ ...CALL, arguments: '[1.0]' })).toBe('{"arguments":"[1.0]"}')
    expect(inputOf({ type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input: '*' })).toBe('{"input":"*"}')
  })

  it('leaves out empty results, and refusals are what was said', () => {
    expect(messagesOf([user('a'), CALL, { ...OUTPUT, output: '' }])).toMatchObject([
      {},
      {},
      { content: [{ tool_use_id: 'call_1' }] },
    ])
    expect(
      messagesOf([user('a'), { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }, user('b')]),
    ).toEqual([saidText('user', 'a'), saidText('assistant', 'No.'), saidText('user', 'b')])
  })
})

describe('Its thinking', () => {
  const ADAPTIVE = { facts: { thinking: 'adaptive' } } as const
  const BUDGET = { facts: { thinking: 'budget' } } as const

  it.each<[string, unknown, string | undefined]>([
    ['minimal', 'low', 'reasoning.effort'],
    ['low', 'low', undefined],
    ['medium', 'medium', undefined],
    ['high', 'high', undefined],
    ['xhigh', 'xhigh', undefined],
    ['max', 'max', undefined],
  ])('is adaptive with %s as %s', (effort, expected, approximated) => {
    const { sent, verdicts } = translate({ reasoning: { effort } }, ADAPTIVE)
    expect(sent).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: expected } })
    expect([verdicts.approximated, verdicts.dropped]).toEqual([approximated, undefined])
  })

  it.each([
    ['minimal', 1024, 20_000],
    ['low', 2048, 20_000],
    ['medium', 8192, 20_000],
    ['high', 16_000, 20_000],
    ['high', 16_384, 64_000],
    ['xhigh', 32_000, 64_000],
    ['max', 32_000, 64_000],
    ['low', 1024, 1025],
  ])('has for %s a budget of %d within %d', (effort, budget_tokens, max_output_tokens) => {
    const { sent } = translate({ reasoning: { effort }, max_output_tokens }, BUDGET)
    expect(sent['thinking']).toEqual({ type: 'enabled', budget_tokens })
    expect(sent).not.toHaveProperty('output_config')
  })

  it('is left out where there is no room for it', () => {
    expect(translate({ reasoning: { effort: 'low' }, max_output_tokens: 1024 }, BUDGET).sent).not.toHaveProperty(
      'thinking',
    )
  })

  it('is switched off by none, as the model can be', () => {
    const none = { reasoning: { effort: 'none' } }
    expect(translate(none, ADAPTIVE).sent['thinking']).toEqual({ type: 'disabled' })
    expect(translate(none, BUDGET).sent).not.toHaveProperty('thinking')
    const betweenTools = { facts: { thinking: 'adaptive', thinkingOff: 'between_tools' } } as const
    expect(translate(none, betweenTools).sent['thinking']).toEqual({ type: 'between_tools' })
    const never = { facts: { thinking: 'adaptive', thinkingOff: 'never' } } as const
    expect(translate(none, never).sent).toMatchObject({ output_config: { effort: 'low' } })
  })

  it('is shown where a summary is asked for', () => {
    const summarized = { display: 'summarized' }
    expect(translate({ reasoning: { summary: 'auto' } }, ADAPTIVE).sent['thinking']).toEqual({
      type: 'adaptive',
      ...summarized,
    })
    expect(translate({ reasoning: { effort: 'low', generate_summary: 'auto' } }, BUDGET).sent['thinking']).toEqual({
      type: 'enabled',
      budget_tokens: 2048,
      ...summarized,
    })
  })

  it('goes together with neutral sampling alone', () => {
    const sampled = { reasoning: { effort: 'low' }, temperature: 0.5, top_p: 0.97 }
    const { sent, verdicts } = translate(sampled, ADAPTIVE)
    expect([sent['temperature'], sent['top_p'], verdicts.dropped]).toEqual([undefined, 0.97, 'temperature'])
    const neutral = translate({ temperature: 1, top_p: 1 }, { facts: { sampling: false } })
    expect([neutral.sent['temperature'], neutral.verdicts.dropped]).toEqual([undefined, undefined])
  })

  it('comes back as it was, in the order in which it was thought', () => {
    const input = [
      user('a'),
      THOUGHT,
      { role: 'assistant', content: 'b' },
      THOUGHT,
      CALL,
      OUTPUT,
      THOUGHT,
      { role: 'assistant', content: 'c' },
      user('d'),
      THOUGHT,
      user('e'),
    ]
    const { sent, verdicts } = translate({ input, reasoning: { effort: 'low' } }, ADAPTIVE)
    expect(sent['messages']).toEqual([
      saidText('user', 'a'),
      said('assistant', ...BLOCKS, text('b'), ...BLOCKS, USE),
      said('user', RESULT),
      said('assistant', ...BLOCKS, text('c')),
      // Thoughts alone are no turn.
      said('user', text('d'), text('e')),
    ])
    expect([sent['thinking'], verdicts.approximated, verdicts.dropped]).toEqual([
      { type: 'adaptive' },
      undefined,
      undefined,
    ])
  })

  it('comes back from memory where it stood between the texts', () => {
    const [first, second] = BLOCKS
    const remembered = new Map([
      ['call_1', JSON.stringify([first, { ...second, textBefore: 1 }])],
      ['call_2', JSON.stringify([{ ...second, textBefore: 2 }])],
    ])
    const thoughts = { remember: (): void => undefined, recall: (id: string) => remembered.get(id) }
    const input = [
      user('a'),
      { role: 'assistant', content: [{ type: 'output_text', text: 'b' }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'c' }] },
      CALL,
      { ...CALL, call_id: 'call_2' },
      OUTPUT,
      { ...OUTPUT, call_id: 'call_2' },
    ]
    const { sent } = translate({ input, reasoning: { effort: 'low' } }, { ...ADAPTIVE, thoughts })
    expect(sent['messages']).toMatchObject([
      {},
      said('assistant', first ?? {}, text('b'), second ?? {}, text('c'), USE, second ?? {}, { ...USE, id: 'call_2' }),
      {},
    ])
    expect(sent['thinking']).toEqual({ type: 'adaptive' })
  })

  it('that comes back with less text than stood before it takes none of that text with it', () => {
    const [first, second] = BLOCKS
    const blocks = JSON.stringify([
      { ...first, textBefore: 4 },
      { ...second, textBefore: 104 },
    ])
    const thoughts = { remember: (): void => undefined, recall: () => blocks }
    const input = [user('a'), { role: 'assistant', content: 'AAAABB' }, CALL, OUTPUT]
    const { sent, verdicts } = translate({ input, reasoning: { effort: 'low' } }, { ...BUDGET, thoughts })
    expect(sent['messages']).toMatchObject([{}, said('assistant', text('AAAABB'), USE), {}])
    expect([sent['thinking'], verdicts.approximated]).toEqual([undefined, 'reasoning'])
  })

  it('comes back from memory for clients that do not send it, and is switched off where a model with a budget lost it', () => {
    const remembered = new Map([
      ['call_1', JSON.stringify(BLOCKS)],
      ['call_2', JSON.stringify(BLOCKS.slice(1))],
    ])
    const thoughts = { remember: (): void => undefined, recall: (id: string) => remembered.get(id) }
    const input = [
      user('a'),
      { role: 'assistant', content: 'b' },
      CALL,
      { ...CALL, call_id: 'call_2' },
      OUTPUT,
      { ...OUTPUT, call_id: 'call_2' },
    ]
    const request = { input, reasoning: { effort: 'low' } }
    const { sent, verdicts } = translate(request, { ...ADAPTIVE, thoughts })
    expect(sent['messages']).toMatchObject([
      {},
      said('assistant', ...BLOCKS, text('b'), USE, ...BLOCKS.slice(1), { ...USE, id: 'call_2' }),
      {},
    ])
    expect([sent['thinking'], verdicts.approximated]).toEqual([{ type: 'adaptive' }, undefined])
    remembered.clear()
    const lost = translate(request, { ...BUDGET, thoughts })
    expect([lost.sent['thinking'], lost.verdicts.approximated]).toEqual([undefined, 'reasoning'])
    const strict = translate(request, { ...ADAPTIVE, thoughts, isStrict: true })
    expect(strict.sent['thinking']).toEqual({ type: 'adaptive' })
  })

  it('is switched off where a turn of a model with a budget does not begin with it, and not for turns before', () => {
    const later = [
      { ...CALL, call_id: 'call_2' },
      { ...OUTPUT, call_id: 'call_2' },
    ]
    const thinkingOf = (remembered: string, ...between: object[]): unknown => {
      const recall = (id: string): string | undefined => (id === remembered ? JSON.stringify(BLOCKS) : undefined)
      const thoughts = { remember: (): void => undefined, recall }
      const input = [user('a'), CALL, OUTPUT, ...between, ...later]
      return translate({ input, reasoning: { effort: 'low' } }, { ...BUDGET, thoughts }).sent['thinking']
    }
    const budget = { type: 'enabled', budget_tokens: 2048 }
    expect(thinkingOf('call_2')).toBeUndefined()
    expect(thinkingOf('call_1')).toEqual(budget)
    const next = [{ role: 'assistant', content: 'b' }, user('c')]
    expect(thinkingOf('call_2', ...next)).toEqual(budget)
    expect(thinkingOf('call_1', ...next)).toBeUndefined()
  })
})

describe('Its tools', () => {
  it('have schemas as they were spelled', () => {
    const { sentText } = translate(
      `{"model":"asked","max_output_tokens":20,"input":"Hi","tools":[{"type":"function","name":"f","strict":true,"description":"d",
      "parameters":{"z":1.0, "type":"object","a":12345678901234567890}},{"type":"function","name":"g","parameters":null,"strict":false},
      {"type":"function","name":"h","parameters":{ "b":1e400}},{"type":"function","name":"i","parameters":{ }},{"type":"custom","name":"j"}],
      "text":{"format":{"type":"json_schema","name":"n","schema":{"b":1.0,"a":0}}}}`,
    )
    expect(sentText).toContain(
      '{"name":"f","description":"d","input_schema":{"z":1.0, "type":"object","a":12345678901234567890},"strict":true},' +
        '{"name":"g","input_schema":{"type":"object","properties":{}}},' +
        '{"name":"h","input_schema":{"type":"object", "b":1e400}},{"name":"i","input_schema":{"type":"object" }},' +
        '{"name":"j","input_schema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}',
    )
    expect(sentText).toContain('"schema":{"b":1.0,"a":0}')
  })

  it('that take nothing are sent with a closed schema where they are strict', () => {
    const { sent } = translate({ tools: [{ type: 'function', name: 'f', strict: true }] })
    const input_schema = { type: 'object', properties: {}, additionalProperties: false }
    expect(sent['tools']).toEqual([{ name: 'f', input_schema, strict: true }])
  })

  const serial = { disable_parallel_tool_use: true }

  it.each<[unknown, boolean | undefined, unknown, readonly string[]]>([
    [undefined, undefined, undefined, ['weather', 'patch']],
    [undefined, false, { type: 'auto', ...serial }, ['weather', 'patch']],
    ['auto', true, { type: 'auto' }, ['weather', 'patch']],
    ['none', false, { type: 'none' }, ['weather', 'patch']],
    ['required', false, { type: 'any', ...serial }, ['weather', 'patch']],
    [{ type: 'function', name: 'weather' }, undefined, { type: 'tool', name: 'weather' }, ['weather', 'patch']],
    [{ type: 'custom', name: 'patch' }, false, { type: 'tool', name: 'patch', ...serial }, ['weather', 'patch']],
    [{ type: 'allowed_tools', mode: 'auto', tools: [PATCH] }, undefined, { type: 'auto' }, ['patch']],
    [
      { type: 'allowed_tools', mode: 'required', tools: [PATCH, WEATHER] },
      undefined,
      { type: 'any' },
      ['weather', 'patch'],
    ],
    [{ type: 'allowed_tools', mode: 'auto', tools: [] }, undefined, { type: 'none' }, ['weather', 'patch']],
  ])('are chosen by %j, in parallel %s, as by %j', (tool_choice, parallel_tool_calls, expected, names) => {
    const { sent } = translate({ tools: [WEATHER, PATCH], tool_choice, parallel_tool_calls })
    expect(sent['tool_choice']).toEqual(expected)
    expect((sent['tools'] as readonly { name: string }[]).map(({ name }) => name)).toEqual(names)
  })
})

describe('Calls with one id', () => {
  const second = { ...OUTPUT, output: 'cold' }

  it.each([
    ['in one turn', [user('a'), CALL, CALL, OUTPUT, second]],
    ['in two turns', [user('a'), CALL, OUTPUT, user('b'), CALL, second]],
  ])('get ids of their own %s, as do their results', (_where, input) => {
    const messages = messagesOf(input) as {
      content: { type: string; id?: string; tool_use_id?: string; content?: string }[]
    }[]
    const blocks = messages.flatMap(({ content }) => content)
    const ids = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id)
    expect(ids[0]).toBe('call_1')
    expect(new Set(ids).size).toBe(2)
    expect(blocks.filter(({ type }) => type === 'tool_result')).toMatchObject([
      { tool_use_id: ids[0], content: 'warm' },
      { tool_use_id: ids[1], content: 'cold' },
    ])
  })
})
