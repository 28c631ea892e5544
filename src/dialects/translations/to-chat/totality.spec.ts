import { describe, it } from '@jest/globals'
import { OPENAI_TYPES } from '../../../../test/support/sdk-types.js'
import { TranslationRun } from '../../../../test/support/translation.js'
import { expectVerdicts, memberProbes, type Place, type Row } from '../../../../test/support/verdict-table.js'
import type { ModelFields } from '../../../core/json-body.js'
import type { Translator } from '../../translator.js'
import type { DialectPair } from '../../verdicts.js'
import { messagesOverChat } from '../messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from '../responses-over-chat/responses-over-chat.js'

type Rows = Readonly<Record<string, Row>>

const TOOLS = {
  messages: [{ name: 'f', input_schema: { type: 'object' } }],
  responses: [{ type: 'function', name: 'f' }],
}

/** Ids, and figures of time, which are other ones each time. */
const FRESH = /_[0-9a-f]{52}|"(?:created_at|completed_at)":\d+/g

/** What a client gets for a stream, or for a whole answer. */
const answered = <Fields extends ModelFields>(pair: DialectPair, translator: Translator<Fields, object>) => {
  const begin = (): Pick<TranslationRun<Fields, object>, 'answerText' | 'frames'> =>
    new TranslationRun(pair, translator, {
      max_tokens: 9,
      tools: pair.client === 'responses' ? TOOLS.responses : TOOLS.messages,
      ...(pair.client === 'responses' ? { input: 'Hi' } : { messages: [{ role: 'user', content: 'Hi' }] }),
    })
  return (answer: object) => ({
    sentText: (Array.isArray(answer) ? begin().frames(answer) : begin().answerText(answer)).replace(FRESH, ''),
    verdicts: { approximated: undefined, dropped: undefined },
  })
}

const choiceOf = (more: object): object => ({ id: 'c', choices: [{ index: 0, finish_reason: null, ...more }] })
const DELTA: Place = {
  path: 'choices[0]',
  request: (delta) => [choiceOf({ delta }), choiceOf({ delta: { content: 'x' }, finish_reason: 'stop' })],
}
const MESSAGE: Place = { path: 'choices[0]', request: (message) => choiceOf({ message, finish_reason: 'stop' }) }
const FUNCTION = { name: 'f', arguments: '{"a":1}' }

const inside = (place: Place, wrap: (value: unknown) => object): Place => ({
  path: 'choices[0]',
  request: (value) => place.request(wrap(value)),
})

/** Of the assistant alone. */
const ROLE: Rows = { role: ['assistant', 'meaningless'] }
const SAID: Rows = { ...ROLE, refusal: ['No', 'translated'], function_call: [FUNCTION, 'translated'] }

const INTERFACES: readonly (readonly [string, Place, object, Rows])[] = [
  [
    'ChatCompletionChunk.Choice.Delta',
    DELTA,
    { content: 'Hello' },
    { ...SAID, tool_calls: [[{ index: 0, id: 'a', function: FUNCTION }], 'translated'] },
  ],
  [
    'ChatCompletionChunk.Choice.Delta.ToolCall',
    inside(DELTA, (call) => ({ tool_calls: [{ index: 0, id: 'a', function: FUNCTION }, call] })),
    { id: 'b', function: FUNCTION },
    // A new id begins a call by itself; `index` says of which call the pieces behind it are (events.spec.ts).
    { index: [1, 'meaningless'], type: ['function', 'meaningless'] },
  ],
  [
    'ChatCompletionChunk.Choice.Delta.ToolCall.Function',
    inside(DELTA, (called) => ({ tool_calls: [{ index: 0, id: 'a', function: called }] })),
    FUNCTION,
    {},
  ],
  [
    'ChatCompletionChunk.Choice.Delta.FunctionCall',
    inside(DELTA, (called) => ({ function_call: called })),
    FUNCTION,
    {},
  ],
  [
    'ChatCompletionMessage',
    MESSAGE,
    { content: 'Hello' },
    {
      ...SAID,
      tool_calls: [[{ id: 'a', type: 'function', function: FUNCTION }], 'translated'],
      // Of what translated requests cannot ask for: searches of the web, and speech.
      annotations: [[{ type: 'url_citation' }], 'meaningless'],
      audio: [{ id: 'audio_1' }, 'meaningless'],
    },
  ],
]

describe.each([
  ['messages', answered({ client: 'messages', upstream: 'chat' }, messagesOverChat)],
  ['responses', answered({ client: 'responses', upstream: 'chat' }, responsesOverChat)],
] as const)('Every member of what chat upstreams answer, in %s,', (_client, answer) => {
  it.each(INTERFACES)('is translated or means nothing: %s', (name, place, base, rows) => {
    expectVerdicts(OPENAI_TYPES.membersOf(name), memberProbes(base, rows, place), answer)
  })
})
