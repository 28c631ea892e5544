import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { sealed, thrownBy, type TranslationSetting } from '../../../../test/support/translation.js'
import { GatewayError } from '../../../core/errors.js'
import type { MessagesFields } from '../../anthropic-messages.js'
import { responsesOverMessages } from './responses-over-messages.js'

const translate = (request: object = {}, setting?: TranslationSetting): ResponsesTranslation<MessagesFields> =>
  new ResponsesTranslation(
    'messages',
    responsesOverMessages,
    { input: 'Hi', max_output_tokens: 100, ...request },
    setting,
  )

const USAGE = {
  input_tokens: 13,
  cache_read_input_tokens: 5,
  cache_creation_input_tokens: 2,
  output_tokens: 10,
  output_tokens_details: { thinking_tokens: 4 },
}

const message = (content: readonly object[], reason: string | null = 'end_turn', more: object = {}): object => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'resolved-model',
  content,
  stop_reason: reason,
  stop_sequence: null,
  usage: USAGE,
  ...more,
})

const text = (words: string): object => ({ type: 'text', text: words, citations: null })
const thinking = (words: string, signature = 'sig'): object => ({ type: 'thinking', thinking: words, signature })
const use = (id: string, input: unknown = {}, name = 'weather'): object => ({
  type: 'tool_use',
  id,
  name,
  input,
  caller: { type: 'direct' },
})
const PATCH = { type: 'custom', name: 'patch' }

describe('The answer of a messages upstream as a response', () => {
  it.each<[string, string, string | undefined]>([
    ['end_turn', 'completed', undefined],
    ['stop_sequence', 'completed', undefined],
    ['tool_use', 'completed', undefined],
    ['max_tokens', 'incomplete', 'max_output_tokens'],
    ['model_context_window_exceeded', 'incomplete', 'max_output_tokens'],
    ['refusal', 'incomplete', 'content_filter'],
    ['other', 'completed', undefined],
  ])('ends with %s as %s', (reason, status, incompleteReason) => {
    const response = translate().answer(message([text('a')], reason))
    expect([response.status, response.incomplete_details?.reason]).toEqual([status, incompleteReason])
    expect(response.output).toMatchObject([{ status }])
  })

  it('holds thoughts, what was said, and calls, in the order of the blocks', () => {
    const blocks = [
      thinking('h'),
      { type: 'redacted_thinking', data: 'd' },
      thinking('m'),
      text('a'),
      text(''),
      text('b'),
      thinking('', 's'),
      use('call_1'),
      use('call_2'),
      text('c'),
    ]
    const { output } = translate({ reasoning: { summary: 'auto' } }).answer(message(blocks, 'tool_use'))
    expect(output).toEqual([
      {
        id: expect.stringMatching(/^rs_/),
        type: 'reasoning',
        summary: [
          { type: 'summary_text', text: 'h' },
          { type: 'summary_text', text: 'm' },
        ],
        encrypted_content: sealed(JSON.stringify(blocks.slice(0, 3))),
      },
      expect.objectContaining({
        content: [expect.objectContaining({ text: 'a' }), expect.objectContaining({ text: 'b' })],
      }),
      {
        id: expect.any(String),
        type: 'reasoning',
        summary: [],
        encrypted_content: sealed(JSON.stringify([blocks[6]])),
      },
      {
        id: expect.stringMatching(/^fc_/),
        type: 'function_call',
        status: 'completed',
        arguments: '{}',
        call_id: 'call_1',
        name: 'weather',
      },
      expect.objectContaining({ call_id: 'call_2' }),
      expect.objectContaining({ type: 'message' }),
    ])
    expect(new Set(output.map(({ id }) => id)).size).toBe(output.length)
  })

  it('seals thoughts whatever is asked for, and shows them only where a summary is', () => {
    const { output } = translate().answer(message([thinking('hm'), text('a')]))
    expect(output[0]).toEqual({
      id: expect.any(String),
      type: 'reasoning',
      summary: [],
      encrypted_content: sealed(JSON.stringify([thinking('hm')])),
    })
    // Cut before its signature: the upstream would not take it back.
    expect(translate().answer(message([thinking('hm', '')], 'max_tokens')).output).toEqual([
      { id: expect.any(String), type: 'reasoning', summary: [] },
    ])
  })

  it('seals thoughts that follow one another once, all together', () => {
    const texts: string[] = []
    const seals = { seal: (words: string) => `${texts.push(words)}`, open: () => undefined }
    const blocks = [
      thinking('a'),
      { type: 'other' },
      thinking('b'),
      text('x'),
      thinking('c'),
      use('call_1'),
      thinking('d'),
    ]
    const { output } = translate({}, { seals }).answer(message(blocks))
    expect(texts).toEqual([
      JSON.stringify([thinking('a'), thinking('b')]),
      JSON.stringify([thinking('c')]),
      JSON.stringify([thinking('d')]),
    ])
    expect(output).toMatchObject([
      { encrypted_content: '1' },
      { type: 'message' },
      { encrypted_content: '2' },
      { type: 'function_call' },
      { encrypted_content: '3' },
    ])
  })

  it('has arguments as they were spelled, and inputs of custom tools as text', () => {
    const answer = JSON.stringify(
      message(
        [
          use('call_1', 'INPUT'),
          use('call_2', { input: '*** Begin' }, 'patch'),
          use('call_3', { other: 1 }, 'patch'),
          use('call_4', { input: 'say "hi {' }, 'patch'),
        ],
        'tool_use',
      ),
    ).replace('"INPUT"', '{ "b":1.0,"a":[12345678901234567890,1e400]}')
    expect(translate({ tools: [PATCH] }).answer(answer).output).toMatchObject([
      { type: 'function_call', arguments: '{ "b":1.0,"a":[12345678901234567890,1e400]}' },
      {
        type: 'custom_tool_call',
        id: expect.stringMatching(/^ctc_/),
        status: 'completed',
        input: '*** Begin',
        call_id: 'call_2',
        name: 'patch',
      },
      { type: 'custom_tool_call', input: '{"other":1}' },
      { type: 'custom_tool_call', status: 'completed', input: 'say "hi {' },
    ])
  })

  it('does not hand on the calls of a refused turn, and says why', () => {
    const refused = (details: unknown): unknown =>
      translate().answer(message([text('I'), use('call_1')], 'refusal', { stop_details: details })).output
    expect(refused({ type: 'refusal', category: null, explanation: 'No.' })).toMatchObject([
      { status: 'completed', content: [{ type: 'output_text', text: 'I' }] },
      { status: 'incomplete', content: [{ type: 'refusal', refusal: 'No.' }] },
    ])
    expect(refused(null)).toMatchObject([{}, { content: [{ refusal: 'The model refused to answer.' }] }])
    expect(translate().answer(message([text('I')], 'refusal')).output).toMatchObject([
      { status: 'incomplete', content: [{ type: 'output_text' }, { type: 'refusal' }] },
    ])
  })

  it('remembers what was thought before each call', () => {
    const remembered = new Map<string, string>()
    const thoughts = {
      remember: (id: string, blocks: string): void => void remembered.set(id, blocks),
      recall: () => undefined,
    }
    const blocks = [thinking('a'), text('b'), use('call_1'), use('call_2'), thinking('c'), use('call_3')]
    translate({}, { thoughts }).answer(message(blocks, 'tool_use'))
    expect([...remembered]).toEqual([
      ['call_1', JSON.stringify([thinking('a')])],
      ['call_3', JSON.stringify([{ ...thinking('c'), textBefore: 1 }])],
    ])
  })

  it('may be empty, without figures, and with blocks that are not known', () => {
    const response = translate().answer(message([{ type: 'server_tool_use' }], 'end_turn', { usage: null }))
    expect([response.status, response.output, response.usage]).toEqual(['completed', [], null])
  })

  it.each([
    [{}],
    [message([text('a')], null)],
    [message([text('a')], 'pause_turn')],
    [message([1 as unknown as object])],
    [message([{ type: 'tool_use', id: 'a' }])],
  ])('is the upstream’s failure where it is %j', (answer) => {
    expect(thrownBy(() => translate().answer(answer)).kind).toBe('upstream_failed')
  })
})

describe('An error of a messages upstream', () => {
  const request = {
    instructions: 'Be short.',
    input: [
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
      { role: 'user', content: 'b' },
    ],
    tools: [
      { type: 'function', name: 'f', parameters: {} },
      { type: 'function', name: 'g', parameters: {} },
    ],
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'g' }] },
    reasoning: { effort: 'low' },
    text: { format: { type: 'json_schema', name: 'n', schema: {} } },
    user: 'me',
  }

  it.each<[string, string | undefined]>([
    ['system.0', 'instructions'],
    ['messages.0.content.1.source', 'input[0].content[1]'],
    ['messages.1', 'input[1]'],
    ['messages[1].content[1].id', 'input[2]'],
    ['messages.2.content.0', 'input[4]'],
    ['messages.2.content.2.text', 'input[5].content'],
    ['messages', 'input'],
    ['tools.0.input_schema.properties', 'tools[1].parameters'],
    ['tools.0.custom', 'tools[1]'],
    ['tools.0.custom.input_schema.type', 'tools[1].parameters'],
    ['tool_choice', 'tool_choice'],
    ['max_tokens', 'max_output_tokens'],
    ['output_config.effort', 'reasoning.effort'],
    ['output_config.format.schema', 'text.format.schema'],
    ['thinking.adaptive', 'reasoning'],
    ['metadata.user_id', 'user'],
    ['cache_control', undefined],
  ])('names %s as %s', (param, expected) => {
    const { translation } = translate(request, { facts: { thinking: 'adaptive' } })
    const error = translation.error(new GatewayError('invalid_request', 'Wrong.', { param }))
    expect([error.kind, error.message, error.details.param]).toEqual(['invalid_request', 'Wrong.', expected])
  })

  it('names a field that the upstream names in its message alone', () => {
    const { translation } = translate(request, { facts: { thinking: 'adaptive' } })
    const error = translation.error(new GatewayError('invalid_request', 'messages.1: must not be empty'))
    expect([error.message, error.details.param]).toEqual(['messages.1: must not be empty', 'input[1]'])
    expect(translation.error(new GatewayError('overloaded', 'messages.1: gone')).details.param).toBeUndefined()
  })
})
