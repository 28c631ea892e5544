import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../../test/support/translation.js'
import type { ModelFields } from '../../core/json-body.js'
import type { Translator } from '../translator.js'
import type { DialectPair } from '../verdicts.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from './responses-over-messages/responses-over-messages.js'

const SEARCHES = ['some', 'every', 'find', 'findIndex', 'findLast', 'findLastIndex', 'includes', 'indexOf'] as const

/** How many elements the lists have together that are searched meanwhile: at most so many are compared. */
function searchedDuring(work: () => void): number {
  let searched = 0
  const originals = SEARCHES.map((name) => Object.getOwnPropertyDescriptor(Array.prototype, name) ?? {})
  SEARCHES.forEach((name, index) => {
    const search = originals[index]?.value as (...values: unknown[]) => unknown
    const counted = function (this: unknown[], ...values: unknown[]): unknown {
      searched += this.length
      return Reflect.apply(search, this, values)
    }
    Object.defineProperty(Array.prototype, name, { ...originals[index], value: counted })
  })
  try {
    work()
  } finally {
    SEARCHES.forEach((name, index) => {
      Object.defineProperty(Array.prototype, name, originals[index] ?? {})
    })
  }
  return searched
}

const COUNT = 2000
const listOf = <Item>(itemAt: (index: number) => Item): Item[] =>
  Array.from({ length: COUNT }, (_, index) => itemAt(index))

const HELLO = { role: 'user', content: 'Hi' }
const PROPERTIES = Object.fromEntries(listOf((index) => [`p${index}`, {}]))
const SCHEMA = {
  type: 'object',
  properties: PROPERTIES,
  required: Object.keys(PROPERTIES),
  additionalProperties: false,
}
const chatTool = (name: string): object => ({ type: 'function', function: { name } })
const callItem = (id: string): object => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
const outputItem = (id: string): object => ({ type: 'function_call_output', call_id: id, output: 'done' })

const workOf =
  <Fields extends ModelFields>(pair: DialectPair, translator: Translator<Fields, object>) =>
  (fields: object): number =>
    searchedDuring(() => {
      expect(new TranslationRun(pair, translator, fields).sentText.length).toBeGreaterThan(COUNT)
    })

const chat = workOf({ client: 'chat', upstream: 'messages' }, chatOverMessages)
const messages = workOf({ client: 'messages', upstream: 'chat' }, messagesOverChat)
const overChat = workOf({ client: 'responses', upstream: 'chat' }, responsesOverChat)
const overMessages = workOf({ client: 'responses', upstream: 'messages' }, responsesOverMessages)

const CHAT_CALLS = {
  messages: [
    HELLO,
    { role: 'assistant', tool_calls: listOf((index) => ({ id: `c${index}`, ...chatTool('f') })) },
    ...listOf((index) => ({ role: 'tool', tool_call_id: `c${index}`, content: 'done' })),
  ],
}
const MESSAGES_CALLS = {
  max_tokens: 9,
  messages: [
    HELLO,
    { role: 'assistant', content: listOf((index) => ({ type: 'tool_use', id: `c${index}`, name: 'f', input: {} })) },
    { role: 'user', content: listOf((index) => ({ type: 'tool_result', tool_use_id: `c${index}`, content: 'done' })) },
  ],
}
const ITEMS = [HELLO, ...listOf((index) => callItem(`c${index}`)), ...listOf((index) => outputItem(`c${index}`))]
const SAME_ID = [HELLO, ...listOf(() => [callItem('c'), outputItem('c')]).flat()]
const NAMES = listOf((index) => `f${index}`)

describe('The work for a request grows with its size, and not with the square of it', () => {
  it.each<[string, (fields: object) => number, object]>([
    ['calls and results of chat', chat, CHAT_CALLS],
    [
      'allowed tools of chat',
      chat,
      {
        messages: [HELLO],
        tools: NAMES.map(chatTool),
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: NAMES.map(chatTool) } },
      },
    ],
    ['calls and results of messages', messages, MESSAGES_CALLS],
    [
      'properties of a strict schema',
      messages,
      { max_tokens: 9, messages: [HELLO], tools: [{ name: 'f', input_schema: SCHEMA, strict: true }] },
    ],
    ['calls and outputs of responses at a chat upstream', overChat, { input: ITEMS }],
    ['calls and outputs of responses at a messages upstream', overMessages, { input: ITEMS }],
    ['calls and outputs with one id at a chat upstream', overChat, { input: SAME_ID }],
    ['calls and outputs with one id at a messages upstream', overMessages, { input: SAME_ID }],
    [
      'allowed tools of responses',
      overMessages,
      {
        input: 'Hi',
        tools: NAMES.map((name) => ({ type: 'function', name })),
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: NAMES.map((name) => ({ type: 'function', name })) },
      },
    ],
  ])('with %s', (_what, work, fields) => {
    expect(work(fields)).toBeLessThan(100 * COUNT)
  })
})
