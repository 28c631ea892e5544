import { describe, expect, it } from '@jest/globals'
import { thrownBy, TranslationRun } from '../../../test/support/translation.js'
import type { ModelFields } from '../../core/json-body.js'
import type { Translator } from '../translator.js'
import type { DialectPair } from '../verdicts.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from './responses-over-messages/responses-over-messages.js'

const call = (input: string): object => ({ id: 'c', type: 'function', function: { name: 'f', arguments: input } })
const custom = (input: string): object => ({ id: 'c', type: 'custom', custom: { name: 'p', input } })

const chatAnswer = (called: object, reason: string): object => ({
  id: 'a',
  choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: [called] }, finish_reason: reason }],
})

const chatEvents = (called: object, reason: string): readonly object[] => [
  { id: 'a', choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...called }] }, finish_reason: null }] },
  { id: 'a', choices: [{ index: 0, delta: {}, finish_reason: reason }] },
]

const messageEvents = (input: string, reason: string, name = 'f'): readonly object[] => [
  { type: 'message_start', message: { id: 'a', usage: { input_tokens: 1, output_tokens: 0 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c', name, input: {} } },
  { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: input } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 1 } },
  { type: 'message_stop' },
]

type Answering = Pick<TranslationRun<ModelFields, object>, 'translation' | 'answerText' | 'frames'>

interface Form {
  readonly name: string
  readonly begin: () => Answering
  /** What the client gets for a call with this input, with which the answer ends for a reason. */
  readonly answered: (input: string, reason: string) => string
  /** Those that do not say that anything is missing; the last one is not known. */
  readonly plainReasons: readonly string[]
  /** Those that do. */
  readonly cutReason: string
  readonly refusal: string
}

const PLAIN_CHAT = ['tool_calls', 'stop', 'tired']
const PLAIN_MESSAGES = ['tool_use', 'end_turn', 'stop_sequence', 'tired']

function formsOf<Fields extends ModelFields>(
  pair: DialectPair,
  translator: Translator<Fields, object>,
  request: object,
): readonly Form[] {
  const run = (): Answering => new TranslationRun(pair, translator, request)
  const name = `${pair.client} over ${pair.upstream}`
  const chat = { begin: run, plainReasons: PLAIN_CHAT, cutReason: 'length', refusal: 'content_filter' }
  const messages = { begin: run, plainReasons: PLAIN_MESSAGES, cutReason: 'max_tokens', refusal: 'refusal' }
  if (pair.upstream === 'messages')
    return [
      { ...messages, name: `${name}, streamed`, answered: (input, why) => run().frames(messageEvents(input, why)) },
    ]
  return [
    { ...chat, name: `${name}, whole`, answered: (input, why) => run().answerText(chatAnswer(call(input), why)) },
    { ...chat, name: `${name}, streamed`, answered: (input, why) => run().frames(chatEvents(call(input), why)) },
  ]
}

const SAID = [{ role: 'user', content: 'Hi' }]
const TOOLS = {
  responses: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }],
  chat: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
}

/** The input of a whole answer of a messages upstream is JSON of that answer: there it cannot be cut. */
const FORMS: readonly Form[] = [
  ...formsOf({ client: 'chat', upstream: 'messages' }, chatOverMessages, { messages: SAID, tools: TOOLS.chat }),
  ...formsOf({ client: 'messages', upstream: 'chat' }, messagesOverChat, { messages: SAID, max_tokens: 9 }),
  ...formsOf({ client: 'responses', upstream: 'chat' }, responsesOverChat, { input: 'Hi', tools: TOOLS.responses }),
  ...formsOf({ client: 'responses', upstream: 'messages' }, responsesOverMessages, {
    input: 'Hi',
    tools: TOOLS.responses,
  }),
]

const CUT_INPUTS = ['{', '{"a":', '{"a":1', '{"a":"}', '{"a":"\\"}', '{"a":[1]', '[1', ' {"a":{}', '"abc', '"a\\"']

describe.each(FORMS)('A call in an answer of $name', ({ answered, plainReasons, cutReason, refusal }) => {
  it.each(CUT_INPUTS)('fails where its arguments are cut, and the answer says that it is whole: %s', (input) => {
    for (const reason of plainReasons) {
      expect(thrownBy(() => answered(input, reason))).toMatchObject({
        kind: 'upstream_failed',
        message: 'The upstream did not end a call of a tool.',
      })
    }
  })

  it('is cut where the answer says so itself', () => {
    for (const input of CUT_INPUTS) {
      expect(answered(input, cutReason)).toMatch(
        /"(?:finish_reason":"length|stop_reason":"max_tokens|status":"incompl)/,
      )
    }
  })

  it('is not handed on where the answer was refused', () => {
    expect(answered('{"a":', refusal)).toMatch(/"(?:content_filter|refusal)"/)
  })

  it.each([
    '{}',
    '',
    ' ',
    '{"a":"{["}',
    '{"a":"\\\\"} ',
    '{"a":[{"b":[]}]}',
    '"{"',
    'null',
    '[],',
    '```json\n{"a":1}\n```',
  ])('passes with arguments that are over: %p', (input) => {
    for (const reason of plainReasons) expect(() => answered(input, reason)).not.toThrow()
  })
})

describe.each(FORMS)('A call in an answer of $name', ({ answered }) => {
  it.each(['{"a":1}{"b"', '{"a":1}{"b":2}', ' {} x', '{}}'])(
    'fails where something follows its arguments, which are over: %s',
    (input) => {
      expect(thrownBy(() => answered(input, 'tool_calls'))).toMatchObject({
        kind: 'upstream_failed',
        message: 'The upstream went on with a call that was complete.',
      })
    },
  )
})

describe('A call of a custom tool', () => {
  const overChat = (): Answering =>
    new TranslationRun({ client: 'responses', upstream: 'chat' }, responsesOverChat, { input: 'Hi' })

  it('has an input of any form where the upstream has such tools: it is no JSON', () => {
    expect(overChat().answerText(chatAnswer(custom('{"a":'), 'tool_calls'))).toContain('"status":"completed"')
    expect(overChat().frames(chatEvents(custom('{"a":'), 'tool_calls'))).toContain('response.completed')
  })

  it.each<[string, () => Answering]>([
    [
      'chat',
      () =>
        new TranslationRun({ client: 'chat', upstream: 'messages' }, chatOverMessages, {
          messages: SAID,
          tools: [{ type: 'custom', custom: { name: 'p' } }],
        }),
    ],
    [
      'responses',
      () =>
        new TranslationRun({ client: 'responses', upstream: 'messages' }, responsesOverMessages, {
          input: 'Hi',
          tools: [{ type: 'custom', name: 'p' }],
        }),
    ],
  ])('fails where its input is cut within the JSON that messages have for it: %s', (_client, run) => {
    const events = messageEvents('{"input":"so', 'tool_use', 'p')
    expect(thrownBy(() => run().frames(events)).kind).toBe('upstream_failed')
    expect(run().frames(messageEvents('{"input":"so', 'max_tokens', 'p'))).toContain('so')
  })
})

describe.each(FORMS.filter(({ name }) => name.endsWith('chat, streamed')))(
  'A call in an answer of $name',
  ({ begin }) => {
    it('fails where a further piece follows its arguments, which are over, and begins no other call', () => {
      const events = begin().translation.events()
      const chunk = (piece: object): Record<string, unknown> => ({
        choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...piece }] }, finish_reason: null }],
      })
      events.event(chunk(call('{"a":1}')))
      expect(() => events.event(chunk({ function: { arguments: ' ' } }))).not.toThrow()
      expect(thrownBy(() => events.event(chunk({ function: { arguments: '{"a":2}' } })))).toMatchObject({
        kind: 'upstream_failed',
        message: 'The upstream went on with a call that was complete.',
      })
    })
  },
)

describe('One of several calls in an answer', () => {
  it('fails where its arguments are cut, also where others follow', () => {
    const [first, second] = [call('{"a":'), { ...call('{}'), id: 'd' }]
    const message = { tool_calls: [first, second] }
    const answer = { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }
    const delta = { tool_calls: [first, second].map((each, index) => ({ index, ...each })) }
    const events = [{ choices: [{ index: 0, delta, finish_reason: 'tool_calls' }] }]
    const run = (): Answering =>
      new TranslationRun({ client: 'responses', upstream: 'chat' }, responsesOverChat, { input: 'Hi' })
    expect(thrownBy(() => run().answerText(answer)).kind).toBe('upstream_failed')
    expect(thrownBy(() => run().frames(events)).kind).toBe('upstream_failed')
  })

  it('fails at once where a messages upstream goes on behind it', () => {
    const events = new TranslationRun({ client: 'chat', upstream: 'messages' }, chatOverMessages, {
      messages: SAID,
    }).translation.events()
    const [start = {}, begun = {}, piece = {}, stop = {}] = messageEvents('{"a":', '') as Record<string, unknown>[]
    for (const event of [start, begun, piece, stop]) events.event(event)
    expect(thrownBy(() => events.event({ ...begun, index: 1 })).kind).toBe('upstream_failed')
  })

  it.each([
    ['whole', true],
    ['streamed', false],
  ])('is incomplete in a response that was cut, wherever it stands: %s', (_form, isWhole) => {
    const all = ['{"a":', '{}', '{"b":'].map((input, index) => ({ index, ...call(input), id: `c${index}` }))
    const run = new TranslationRun({ client: 'responses', upstream: 'chat' }, responsesOverChat, { input: 'Hi' })
    const content = { tool_calls: all }
    const text = isWhole
      ? run.answerText({ choices: [{ index: 0, message: content, finish_reason: 'length' }] })
      : (run
          .frames([{ choices: [{ index: 0, delta: content, finish_reason: 'length' }] }])
          .split('data: ')
          .at(-1) ?? '')
    const parsed = JSON.parse(text) as Record<string, unknown>
    const { output } = (isWhole ? parsed : parsed['response']) as { output: { status: string }[] }
    expect(output.map(({ status }) => status)).toEqual(['incomplete', 'completed', 'incomplete'])
  })
})
