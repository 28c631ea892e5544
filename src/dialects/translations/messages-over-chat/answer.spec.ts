import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../../../test/support/translation.js'
import { GatewayError } from '../../../core/errors.js'
import { estimateInputTokens } from '../../anthropic-messages.js'
import { hasMark } from '../seals.js'
import { messagesOverChat } from './messages-over-chat.js'

type Members = Record<string, unknown>

const FIELDS = { model: 'claude-here', max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] }

/** An answer may be given as it is spelled. */
const textFor = (answer: object | string): string =>
  new TranslationRun({ client: 'messages', upstream: 'chat' }, messagesOverChat, FIELDS, {
    isStrict: true,
    requestId: 'req1',
  }).answerText(answer)

const messageFor = (answer: object | string): Members => JSON.parse(textFor(answer)) as Members

const answer = (message: Members, finishReason: unknown = 'stop', more: Members = {}): Members => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'some-model-2026',
  choices: [
    { index: 0, message: { role: 'assistant', content: null, refusal: null, ...message }, finish_reason: finishReason },
  ],
  usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
  ...more,
})

const call = (id: string, input: string, name = 'look'): Members => ({
  id,
  type: 'function',
  function: { name, arguments: input },
})
const toolUse = (id: unknown, input: unknown): Members => ({
  type: 'tool_use',
  id,
  name: 'look',
  input,
  caller: { type: 'direct' },
})

describe('A whole answer of a chat upstream', () => {
  it('becomes a message with every member of its type', () => {
    expect(messageFor(answer({ content: 'Hello!' }))).toEqual({
      id: 'chatcmpl-1',
      type: 'message',
      role: 'assistant',
      model: 'claude-here',
      content: [{ type: 'text', text: 'Hello!', citations: null }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: {
        input_tokens: 5,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: null,
        output_tokens: 7,
        output_tokens_details: null,
        inference_geo: null,
        server_tool_use: null,
        service_tier: null,
        speed: null,
      },
    })
  })

  it('has blocks for what was thought, said and called, in this order', () => {
    const message = {
      content: 'Let me see.',
      reasoning_content: 'Hm.',
      tool_calls: [call('a', '{"x":1}'), call('b', '')],
    }
    const { content, stop_reason: reason } = messageFor(answer(message, 'tool_calls'))
    expect(content).toEqual([
      { type: 'thinking', thinking: 'Hm.', signature: expect.stringMatching(/^gw1\./) },
      { type: 'text', text: 'Let me see.', citations: null },
      toolUse('a', { x: 1 }),
      toolUse('b', {}),
    ])
    expect(reason).toBe('tool_use')
    const [thinking] = content as { signature: string }[]
    expect(hasMark(thinking?.signature)).toBe(true)
  })

  it.each([
    [{ reasoning: 'Hm.' }],
    [{ reasoning_content: 'Hm.', reasoning: 'Hm.' }],
    [{ reasoning_content: null, reasoning: 'Hm.' }],
  ])('shows thoughts once, whatever the upstream calls them: %j', (message) => {
    expect(messageFor(answer(message))['content']).toMatchObject([{ type: 'thinking', thinking: 'Hm.' }])
  })

  it.each([[{ content: '' }], [{ content: null }], [{ content: '', tool_calls: [] }]])(
    'without anything has no blocks: %j',
    (message) => {
      expect(messageFor(answer(message))).toMatchObject({ content: [], stop_reason: 'end_turn' })
    },
  )

  it('spells numbers and keys in the input of tools as the model did', () => {
    const input = '{ "z": 1.0, "2": 1e400, "1": 12345678901234567890 }'
    expect(textFor(answer({ tool_calls: [call('a', input)] }, 'tool_calls'))).toContain(`"input":${input}`)
  })

  it.each([
    ['[1]', { arguments: '[1]' }],
    ['x: 1', { arguments: 'x: 1' }],
    ['{"x":1]', { arguments: '{"x":1]' }],
    ['"text"', { arguments: '"text"' }],
    [' ', {}],
  ])('has an object as the input of a tool, whatever the model wrote: %j', (input, expected) => {
    expect(messageFor(answer({ tool_calls: [call('a', input)] }, 'tool_calls'))['content']).toEqual([
      toolUse('a', expected),
    ])
  })

  it('has an object as the input of a call that was cut, as the answer says itself', () => {
    expect(messageFor(answer({ tool_calls: [call('a', '{"x":')] }, 'length'))).toMatchObject({
      content: [toolUse('a', { arguments: '{"x":' })],
      stop_reason: 'max_tokens',
    })
  })

  it('has the one call of the older form of answers', () => {
    const message = { function_call: { name: 'look', arguments: '{"x":1}' } }
    expect(messageFor(answer(message, 'function_call'))).toMatchObject({
      content: [toolUse(expect.stringMatching(/^call_[0-9a-f]{52}$/), { x: 1 })],
      stop_reason: 'tool_use',
    })
  })

  it.each([
    ['stop', {}, 'end_turn'],
    ['length', {}, 'max_tokens'],
    ['tool_calls', { tool_calls: [call('a', '{}')] }, 'tool_use'],
    ['stop', { tool_calls: [call('a', '{}')] }, 'tool_use'],
    ['length', { tool_calls: [call('a', '{}')] }, 'max_tokens'],
    ['function_call', { function_call: { name: 'look' } }, 'tool_use'],
    ['function_call', {}, 'end_turn'],
    ['tool_calls', { content: 'Hm.', tool_calls: null, function_call: '' }, 'end_turn'],
    ['tool_calls', { content: 'Hm.', tool_calls: {}, function_call: [] }, 'end_turn'],
    ['content_filter', {}, 'refusal'],
    ['stop', { refusal: 'No.' }, 'refusal'],
    ['a_new_word', {}, 'end_turn'],
  ])('that ended with %s and %j stopped for %s', (finishReason, message, expected) => {
    expect(messageFor(answer(message, finishReason))['stop_reason']).toBe(expected)
  })

  it('that is a refusal explains it and hands no calls on', () => {
    const message = { content: 'Well', refusal: 'I will not.', tool_calls: [call('a', '{}')] }
    expect(messageFor(answer(message, 'tool_calls'))).toMatchObject({
      content: [{ type: 'text', text: 'Well' }],
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: null, explanation: 'I will not.' },
    })
    expect(messageFor(answer({ content: 'W' }, 'content_filter'))['stop_details']).toEqual({
      type: 'refusal',
      category: null,
      explanation: null,
    })
  })

  it('counts what was read from and written to the cache beside the input', () => {
    const usage = {
      prompt_tokens: 100,
      completion_tokens: 30,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 15 },
      completion_tokens_details: { reasoning_tokens: 20 },
    }
    expect(messageFor(answer({}, 'stop', { usage }))['usage']).toMatchObject({
      input_tokens: 25,
      cache_read_input_tokens: 60,
      cache_creation_input_tokens: 15,
      output_tokens: 30,
      output_tokens_details: { thinking_tokens: 20 },
    })
  })

  it('without usage has estimates', () => {
    const message = { content: 'x'.repeat(40), reasoning: 'y'.repeat(8), tool_calls: [call('a', '{"x":1} ')] }
    expect(messageFor(answer(message, 'stop', { usage: null }))['usage']).toMatchObject({
      input_tokens: estimateInputTokens(FIELDS, false),
      output_tokens: 14,
    })
  })

  it('has ids for calls without, the spelling of arguments that were objects, and texts in parts', () => {
    const calls = [
      call('', '{}'),
      { function: { name: 'look', arguments: { x: 1 } } },
      { function: { name: 'look', arguments: null } },
    ]
    const content = [{ type: 'text', text: 'Let me ' }, { type: 'other' }, { type: 'text', text: 'see.' }]
    const whole = answer({ content, tool_calls: calls }, 'tool_calls')
    const spelled = JSON.stringify(whole).replace('{"x":1}', '{"x":1.0}')
    const translated = textFor(spelled)
    expect(JSON.parse(translated)).toHaveProperty('content', [
      { type: 'text', text: 'Let me see.', citations: null },
      toolUse(expect.stringMatching(/^call_[0-9a-f]{48}0001$/), {}),
      toolUse(expect.stringMatching(/^call_[0-9a-f]{48}0002$/), { x: 1 }),
      toolUse(expect.stringMatching(/^call_[0-9a-f]{48}0003$/), {}),
    ])
    expect(translated).toContain('{"x":1.0}')
  })

  it('without an id gets that of the request', () => {
    expect(messageFor(answer({}, 'stop', { id: '' }))['id']).toBe('msg_req1')
  })

  it.each([
    ['no choices', { choices: undefined }],
    ['an empty list of choices', { choices: [] }],
    ['no message', { choices: [{ finish_reason: 'stop' }] }],
    ['no finish reason', answer({ content: 'Hi' }, null)],
    ['an empty finish reason', answer({ content: 'Hi' }, '')],
    ['content that is no text', answer({ content: 1 })],
    ['a refusal that is no text', answer({ refusal: ['No.'] })],
    ['calls that are no list', answer({ tool_calls: { 0: call('a', '{}') } }, 'tool_calls')],
    ['calls that are a text', answer({ tool_calls: 'look()' }, 'tool_calls')],
    ['an older call that is no object', answer({ function_call: 'look' }, 'function_call')],
    ['a call that is no object', answer({ tool_calls: ['look'] })],
    ['a call of no function', answer({ tool_calls: [{ id: 'a', type: 'custom', custom: {} }] })],
    ['a call without a name', answer({ tool_calls: [call('a', '{}', '')] })],
    ['arguments that are no text', answer({ tool_calls: [{ id: 'a', function: { name: 'look', arguments: [] } }] })],
    ['older arguments that are no text', answer({ function_call: { name: 'look', arguments: 42 } })],
  ])("with %s is the upstream's failure", (_name, broken) => {
    const failure = expect.objectContaining({ kind: 'upstream_failed' })
    expect(() => textFor(broken)).toThrow(GatewayError)
    expect(() => textFor(broken)).toThrow(failure)
  })
})
