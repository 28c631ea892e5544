import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { sealed, thrownBy, type TranslationSetting } from '../../../../test/support/translation.js'
import { GatewayError } from '../../../core/errors.js'
import type { ChatFields } from '../../openai-wire.js'
import { responsesOverChat } from './responses-over-chat.js'

const translate = (request: object | string = {}, setting?: TranslationSetting): ResponsesTranslation<ChatFields> =>
  new ResponsesTranslation(
    'chat',
    responsesOverChat,
    typeof request === 'string' ? request : { input: 'Hi', ...request },
    setting,
  )

const STORED: TranslationSetting = { kept: { isStored: true, previousResponseId: undefined, pathOf: undefined } }

const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 10,
  total_tokens: 30,
  prompt_tokens_details: { cached_tokens: 5, cache_write_tokens: 2 },
  completion_tokens_details: { reasoning_tokens: 4 },
}

const completion = (message: object, reason: string | null = 'stop', more: object = {}): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'resolved-model',
  choices: [
    { index: 0, message: { role: 'assistant', content: null, refusal: null, ...message }, finish_reason: reason },
  ],
  usage: USAGE,
  ...more,
})

const call = (id: string, args: unknown = '{}'): object => ({
  id,
  type: 'function',
  function: { name: 'weather', arguments: args },
})

describe('The answer of a chat upstream as a response', () => {
  it('says in which class it was served, where its upstream does', () => {
    const answer = completion({ content: 'Hello!' }, 'stop', { service_tier: 'flex' })
    expect(translate().answer(answer).service_tier).toBe('flex')
    expect(translate().answer(completion({ content: 'Hello!' })).service_tier).toBe('default')
  })

  it('says schemas back as they were spelled', () => {
    const text = translate(
      '{"model":"asked","input":"Hi","tools":[{"type":"function","name":"f","parameters":{"b":1.0,"a":12345678901234567890}}],' +
        '"text":{"format":{"type":"json_schema","name":"n","schema":{"c":1e400}}}}',
    ).answerText(completion({ content: 'a' }))
    expect(text).toContain('"parameters":{"b":1.0,"a":12345678901234567890}')
    expect(text).toContain('"schema":{"c":1e400}')
  })

  it.each<[string, object, string, string | undefined]>([
    ['stop', { content: 'a' }, 'completed', undefined],
    ['length', { content: 'a' }, 'incomplete', 'max_output_tokens'],
    ['tool_calls', { tool_calls: [call('call_1')] }, 'completed', undefined],
    ['function_call', { tool_calls: [call('call_1')] }, 'completed', undefined],
    ['stop', { tool_calls: [call('call_1')] }, 'completed', undefined],
    ['content_filter', { content: 'a' }, 'incomplete', 'content_filter'],
    ['stop', { refusal: 'No.' }, 'incomplete', 'content_filter'],
    ['eos', { content: 'a' }, 'completed', undefined],
  ])('ends with %s of %j as %s', (reason, message, status, incompleteReason) => {
    const response = translate().answer(completion(message, reason))
    expect([response.status, response.incomplete_details?.reason]).toEqual([status, incompleteReason])
    expect(response.completed_at === null).toBe(status !== 'completed')
  })

  it('holds thoughts, what was said, and calls, in this order', () => {
    const message = {
      content: 'a',
      reasoning_content: 'hm',
      tool_calls: [call('call_1', '{"a":1.0}'), call('call_2', '')],
    }
    const { output } = translate({}, STORED).answer(completion(message, 'tool_calls'))
    expect(output).toEqual([
      { id: expect.stringMatching(/^rs_/), type: 'reasoning', summary: [] },
      expect.objectContaining({ type: 'message', status: 'completed' }),
      {
        id: expect.stringMatching(/^fc_/),
        type: 'function_call',
        status: 'completed',
        arguments: '{"a":1.0}',
        call_id: 'call_1',
        name: 'weather',
      },
      expect.objectContaining({ arguments: '{}', call_id: 'call_2' }),
    ])
    expect(new Set(output.map(({ id }) => id)).size).toBe(4)
  })

  it('shows thoughts where a summary is asked for, under either name, and seals them where they are wanted back or kept nowhere', () => {
    const answered = (name: string, request: object, setting?: TranslationSetting): unknown =>
      translate(request, setting).answer(completion({ [name]: 'hm', content: 'a' })).output[0]
    const summary = [{ type: 'summary_text', text: 'hm' }]
    expect(answered('reasoning', { reasoning: { summary: 'auto' } })).toMatchObject({ summary })
    expect(answered('reasoning', { include: ['reasoning.encrypted_content'] })).toMatchObject({
      summary: [],
      encrypted_content: sealed('{"reasoning":"hm"}'),
    })
    expect(answered('reasoning_content', {}, { facts: { reasoningField: 'reasoning_content' } })).toMatchObject({
      encrypted_content: sealed('{"reasoning":"hm"}'),
    })
    expect(answered('reasoning', { store: false })).toMatchObject({ encrypted_content: sealed('{"reasoning":"hm"}') })
    expect(answered('reasoning', {}, STORED)).toEqual({ id: expect.any(String), type: 'reasoning', summary: [] })
    expect(answered('other', {})).toMatchObject({ type: 'message' })
  })

  it('does not hand on the calls of a refused turn', () => {
    const message = { content: 'I', refusal: 'No.', tool_calls: [call('call_1')] }
    expect(translate().answer(completion(message, 'tool_calls')).output).toEqual([
      {
        id: expect.any(String),
        type: 'message',
        role: 'assistant',
        status: 'incomplete',
        content: [
          { type: 'output_text', annotations: [], logprobs: [], text: 'I' },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
    ])
  })

  it('marks what was cut, and nothing before it', () => {
    const message = { content: 'a', tool_calls: [call('call_1'), call('call_2', '{"a":')] }
    const { output } = translate().answer(completion(message, 'length'))
    expect(output.map((item) => ('status' in item ? item.status : ''))).toEqual([
      'completed',
      'completed',
      'incomplete',
    ])
    expect(translate().answer(completion({ content: 'a' }, 'length')).output).toMatchObject([{ status: 'incomplete' }])
  })

  it('has calls of custom tools, ids for calls without, and texts of arguments that were objects', () => {
    const text = JSON.stringify(
      completion({
        tool_calls: [
          { id: 'call_1', type: 'custom', custom: { name: 'patch', input: '' } },
          { type: 'function', function: { name: 'f', arguments: 'ARGUMENTS' } },
        ],
      }),
    ).replace('"ARGUMENTS"', '{"b":1.0,"a":12345678901234567890}')
    expect(translate().answer(text).output).toEqual([
      {
        id: expect.stringMatching(/^ctc_/),
        type: 'custom_tool_call',
        status: 'completed',
        input: '',
        call_id: 'call_1',
        name: 'patch',
      },
      expect.objectContaining({
        call_id: expect.stringMatching(/^call_/),
        arguments: '{"b":1.0,"a":12345678901234567890}',
      }),
    ])
  })

  it('has the input of a custom tool as it is, though it would be cut if it were JSON', () => {
    const input = 'say "hi {'
    const message = { tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input } }, call('call_2')] }
    const { status, output } = translate().answer(completion(message, 'tool_calls'))
    expect([status, output]).toMatchObject([
      'completed',
      [{ type: 'custom_tool_call', status: 'completed', input }, { status: 'completed' }],
    ])
  })

  it('has the one call of the older form of answers, once', () => {
    const older = { function_call: { name: 'f', arguments: { a: 1 } } }
    const item = {
      type: 'function_call',
      status: 'completed',
      call_id: expect.stringMatching(/^call_[0-9a-f]{52}$/),
      name: 'f',
      arguments: '{"a":1}',
    }
    const { status, output } = translate().answer(completion(older, 'function_call'))
    expect([status, output]).toEqual(['completed', [{ ...item, id: expect.stringMatching(/^fc_/) }]])
    expect(translate().answer(completion({ ...older, tool_calls: [] }, 'function_call')).output).toHaveLength(1)
    expect(translate().answer(completion({ ...older, tool_calls: [call('a')] })).output).toMatchObject([
      { call_id: 'a' },
    ])
    const text = JSON.stringify(completion(older, 'function_call')).replace('{"a":1}', '{"a":1.0}')
    expect(translate().answer(text).output).toMatchObject([{ arguments: '{"a":1.0}' }])
  })

  it('may be empty, and without figures', () => {
    const response = translate().answer(completion({ content: '' }, 'stop', { usage: null }))
    expect([response.status, response.output, response.usage]).toEqual(['completed', [], null])
  })

  it.each([
    [{}],
    [{ choices: [] }],
    [{ choices: [{ finish_reason: 'stop' }] }],
    [completion({ content: 'a' }, null)],
    [completion({ tool_calls: [{ id: 'call_1', function: { arguments: '{}' } }] })],
    [completion({ tool_calls: [null] })],
    [completion({ tool_calls: { 0: call('call_1') } }, 'tool_calls')],
    [completion({ tool_calls: 'weather()' }, 'tool_calls')],
    [completion({ function_call: 'weather' }, 'function_call')],
    [completion({ content: 'a', refusal: ['No.'] })],
    [completion({ tool_calls: [call('call_1', 42)] })],
    [completion({ tool_calls: [call('call_1', ['{}'])] })],
    [completion({ function_call: { name: 'f', arguments: 42 } })],
  ])('is the upstream’s failure where it is %j', (answer) => {
    expect(thrownBy(() => translate().answer(answer)).kind).toBe('upstream_failed')
  })
})

describe('An error of a chat upstream', () => {
  const input = [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'a' },
        { type: 'input_image', image_url: 'https://a.test/a.png' },
      ],
    },
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call', call_id: 'b', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'b', output: '' },
    { type: 'function_call_output', call_id: 'a', output: '' },
  ]
  const request = {
    instructions: 'Be short.',
    input,
    tools: [{ type: 'function', name: 'f', parameters: {} }],
    reasoning: { effort: 'low' },
    max_output_tokens: 20,
    text: { format: { type: 'json_schema', name: 'n', schema: {} } },
  }

  it.each<[string, string | undefined]>([
    ['messages[0].content', 'instructions'],
    ['messages.[1].role', 'input[0]'],
    ['messages[1].content[1].image_url.url', 'input[0].content[1]'],
    ['messages.2.tool_calls.1.id', 'input[2]'],
    ['messages.[4].role', 'input[3]'],
    ['messages', 'input'],
    ['tools[0].function.parameters', 'tools[0].parameters'],
    ['tools[0].function', 'tools[0]'],
    ['max_completion_tokens', 'max_output_tokens'],
    ['reasoning_effort', 'reasoning.effort'],
    ['response_format.json_schema.schema.a', 'text.format.schema'],
    ['response_format', 'text.format'],
    ['model', 'model'],
    ['stream_options', undefined],
    ['toString', undefined],
  ])('names %s as %s', (param, expected) => {
    const { translation } = translate(request, { facts: { thinking: 'adaptive' } })
    const error = translation.error(new GatewayError('invalid_request', 'Wrong.', { param, code: 'invalid_value' }))
    expect([error.kind, error.message, error.details.code]).toEqual(['invalid_request', 'Wrong.', 'invalid_value'])
    expect(error.details.param).toBe(expected)
  })
})
