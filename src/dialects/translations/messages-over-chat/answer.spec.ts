import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../../../core/errors.js'
import { JsonBody } from '../../../core/json-body.js'
import { JsonTexts } from '../../../core/json-text.js'
import type { MessagesFields } from '../../messages-wire.js'
import { factsOf } from '../../model-facts.js'
import { Verdicts } from '../../verdicts.js'
import { hasMark, OwnerSeals } from '../seals.js'
import { estimateInputTokens } from './estimate.js'
import { messagesOverChat } from './messages-over-chat.js'

type Members = Record<string, unknown>

const SEALS = new OwnerSeals(Buffer.from('secret'), 'owner')
const FIELDS = { model: 'claude-here', max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] }

function textFor(answer: Members, spelled = JSON.stringify(answer)): string {
  const body = JsonBody.written<MessagesFields>(JSON.stringify(FIELDS), FIELDS)
  const target = { upstreamModel: 'some-model', facts: factsOf(undefined), requestId: 'req1', seals: SEALS }
  const translation = messagesOverChat(body, target, new Verdicts({ client: 'messages', upstream: 'chat' }, true))
  return translation.response(answer, new JsonTexts(Buffer.from(spelled)))
}

const messageFor = (answer: Members): Members => JSON.parse(textFor(answer)) as Members

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
const toolUse = (id: string, input: unknown): Members => ({
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
    ['{"x":', { arguments: '{"x":' }],
    ['"text"', { arguments: '"text"' }],
    [' ', {}],
  ])('has an object as the input of a tool, whatever the model wrote: %j', (input, expected) => {
    expect(messageFor(answer({ tool_calls: [call('a', input)] }, 'tool_calls'))['content']).toEqual([
      toolUse('a', expected),
    ])
  })

  it('has the one call of the older form of answers', () => {
    const message = { function_call: { name: 'look', arguments: '{"x":1}' } }
    expect(messageFor(answer(message, 'function_call'))).toMatchObject({
      content: [toolUse('call_0', { x: 1 })],
      stop_reason: 'tool_use',
    })
  })

  it.each([
    ['stop', {}, 'end_turn'],
    ['length', {}, 'max_tokens'],
    ['tool_calls', { tool_calls: [call('a', '{}')] }, 'tool_use'],
    ['stop', { tool_calls: [call('a', '{}')] }, 'tool_use'],
    ['length', { tool_calls: [call('a', '{}')] }, 'max_tokens'],
    ['function_call', {}, 'tool_use'],
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
      input_tokens: estimateInputTokens(FIELDS),
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
    const translated = textFor(whole, spelled)
    expect(JSON.parse(translated)).toHaveProperty('content', [
      { type: 'text', text: 'Let me see.', citations: null },
      toolUse('call_req1_0', {}),
      toolUse('call_req1_1', { x: 1 }),
      toolUse('call_req1_2', {}),
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
    ['a call that is no object', answer({ tool_calls: ['look'] })],
    ['a call of no function', answer({ tool_calls: [{ id: 'a', type: 'custom', custom: {} }] })],
    ['a call without a name', answer({ tool_calls: [call('a', '{}', '')] })],
    ['arguments that are no text', answer({ tool_calls: [{ id: 'a', function: { name: 'look', arguments: [] } }] })],
  ])("with %s is the upstream's failure", (_name, broken) => {
    const failure = expect.objectContaining({ kind: 'upstream_failed' })
    expect(() => textFor(broken)).toThrow(GatewayError)
    expect(() => textFor(broken)).toThrow(failure)
  })
})

describe('The estimate of the tokens of a prompt', () => {
  const words = (tokens: number): string => 'word'.repeat(tokens)
  const prompt = (...content: Members[]): Members => ({ messages: [{ role: 'user', content }] })
  const more = (fields: Members): number =>
    estimateInputTokens({ messages: [{ role: 'user', content: [] }], ...fields }) - estimateInputTokens(prompt())

  it('counts system, messages, tools and media', () => {
    const tool = { name: 'look', input_schema: { type: 'object' } }
    expect(more({ system: words(10) })).toBe(10)
    expect(more({ system: [{ type: 'text', text: words(10) }] })).toBe(10)
    expect(more({ tools: [tool] })).toBe(Math.ceil(JSON.stringify([tool]).length / 4))
    expect(more(prompt({ type: 'text', text: words(7), cache_control: { type: 'ephemeral' } }))).toBe(7)
    expect(more({ messages: [{ role: 'user', content: words(7) }] })).toBe(7)
    expect(
      more(prompt({ type: 'tool_result', tool_use_id: 'abcdefgh', content: [{ type: 'text', text: words(7) }] })),
    ).toBe(7)
    expect(more(prompt({ type: 'tool_use', id: 'abcdefgh', name: 'look', input: { x: 1 } }))).toBe(3)
    expect(more(prompt({ type: 'document', title: words(2), source: { type: 'text', data: words(9) } }))).toBe(11)
  })

  it('counts an image and a file as media, not by their characters', () => {
    const data = 'A'.repeat(8000)
    expect(more(prompt({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }))).toBe(1000)
    expect(more(prompt({ type: 'image', source: { type: 'url', url: 'https://a.test/b.png' } }))).toBe(1000)
    expect(more(prompt({ type: 'tool_result', content: [{ type: 'image', source: { type: 'base64', data } }] }))).toBe(
      1000,
    )
  })

  it('counts nothing of what is left out of the conversation', () => {
    expect(more(prompt({ type: 'thinking', thinking: words(50), signature: words(50) }))).toBe(0)
    expect(more(prompt({ type: 'redacted_thinking', data: words(50) }))).toBe(0)
  })

  it.each([[{}], [{ messages: 1, system: 2, tools: 'x' }], [{ messages: [null, 1, { content: null }] }]])(
    'takes any shape: %j',
    (fields) => {
      expect(estimateInputTokens(fields)).toBeGreaterThan(0)
    },
  )
})
