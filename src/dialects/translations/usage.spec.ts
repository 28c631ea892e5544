import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../../test/support/translation.js'
import { estimateInputTokens } from '../anthropic-messages.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from './responses-over-messages/responses-over-messages.js'

type Members = Readonly<Record<string, unknown>>

const SAID = { messages: [{ role: 'user', content: 'Hello, what can you do for me?' }], max_tokens: 9 }
const STREAMED = { ...SAID, stream: true, stream_options: { include_usage: true } }

const chatOver = (): TranslationRun<never, object> =>
  new TranslationRun({ client: 'chat', upstream: 'messages' }, chatOverMessages, STREAMED)
const messagesOver = (): TranslationRun<never, object> =>
  new TranslationRun({ client: 'messages', upstream: 'chat' }, messagesOverChat, SAID)
const responsesOver = (upstream: 'chat' | 'messages'): TranslationRun<never, object> =>
  upstream === 'chat'
    ? new TranslationRun({ client: 'responses', upstream }, responsesOverChat, { input: 'Hi' })
    : new TranslationRun({ client: 'responses', upstream }, responsesOverMessages, { input: 'Hi' })

const chatAnswer = (usage: object): Members => ({
  id: 'c',
  choices: [{ index: 0, message: { content: 'Hello' }, finish_reason: 'stop' }],
  usage,
})
const chatEvents = (usage: object): readonly Members[] => [
  { id: 'c', choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: 'stop' }] },
  { id: 'c', choices: [], usage },
]
const message = (usage: object): Members => ({
  id: 'm',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  usage,
})
const messageEvents = (usage: object): readonly Members[] => [
  { type: 'message_start', message: { id: 'm', usage: {} } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
  { type: 'message_stop' },
]

/** Of the last event that has one; undefined where none does. */
function usageIn(frames: string): unknown {
  const events = [...frames.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as Members)
  const holders = events.map((event) => (event['response'] ?? event) as Members)
  return holders.findLast(({ usage }) => usage !== undefined && usage !== null)?.['usage']
}

const usageOf = (text: string): unknown => (JSON.parse(text) as Members)['usage']

describe('Figures of a messages upstream in which one is missing', () => {
  it.each([
    [{ output_tokens: 5 }],
    [{ input_tokens: 7 }],
    [{ input_tokens: null, output_tokens: 5, cache_read_input_tokens: 3 }],
    [{ input_tokens: '7', output_tokens: 5 }],
    [{ input_tokens: -1, output_tokens: 5 }],
    [{}],
  ])('are not told as zero, but left out as if there were none: %j', (usage) => {
    expect(JSON.parse(chatOver().answerText(message(usage)))).not.toHaveProperty('usage')
    expect(usageIn(chatOver().frames(messageEvents(usage)))).toBeUndefined()
    expect(usageOf(responsesOver('messages').answerText(message(usage)))).toBeNull()
    expect(usageIn(responsesOver('messages').frames(messageEvents(usage)))).toBeUndefined()
  })

  it('may be zero, where the upstream says so', () => {
    const usage = { input_tokens: 0, output_tokens: 0 }
    expect(usageOf(chatOver().answerText(message(usage)))).toMatchObject({ prompt_tokens: 0, total_tokens: 0 })
    expect(usageIn(chatOver().frames(messageEvents(usage)))).toMatchObject({ prompt_tokens: 0, total_tokens: 0 })
  })
})

describe('Figures of a chat upstream in which one is missing', () => {
  const estimate = estimateInputTokens(SAID, false)

  it('are left out of a response', () => {
    for (const usage of [{ prompt_tokens: 7 }, { completion_tokens: 5 }, { total_tokens: 12 }, {}]) {
      expect(usageOf(responsesOver('chat').answerText(chatAnswer(usage)))).toBeNull()
      expect(usageIn(responsesOver('chat').frames(chatEvents(usage)))).toBeUndefined()
    }
  })

  it('are estimated in a message, whose type demands them', () => {
    const answered = (usage: object): unknown => usageOf(messagesOver().answerText(chatAnswer(usage)))
    expect(estimate).toBeGreaterThan(0)
    expect(answered({ completion_tokens: 5 })).toMatchObject({ input_tokens: estimate, output_tokens: 5 })
    expect(answered({ prompt_tokens: 7 })).toMatchObject({ input_tokens: 7, output_tokens: 2 })
    expect(answered({})).toMatchObject({ input_tokens: estimate, output_tokens: 2 })
  })

  it('are estimated in the events of a message, where the estimate of its first event stands', () => {
    const streamed = (usage: object): unknown => usageIn(messagesOver().frames(chatEvents(usage)))
    expect(streamed({ completion_tokens: 5 })).toMatchObject({ input_tokens: null, output_tokens: 5 })
    expect(streamed({ prompt_tokens: 7 })).toMatchObject({ input_tokens: 7, output_tokens: 2 })
    expect(streamed({})).toMatchObject({ input_tokens: null, output_tokens: 2 })
  })
})

describe('Figures of a chat upstream that come in several chunks', () => {
  const streamed = (run: Pick<TranslationRun<never, object>, 'frames'>, ...usages: readonly object[]): unknown =>
    usageIn(run.frames([...usages.map((usage) => ({ id: 'c', choices: [], usage })), ...chatEvents({})]))
  const whole = {
    prompt_tokens: 10,
    completion_tokens: 5,
    prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 2 },
  }
  const IN_MESSAGE = {
    input_tokens: 3,
    cache_read_input_tokens: 4,
    cache_creation_input_tokens: 3,
    output_tokens: 5,
    output_tokens_details: { thinking_tokens: 2 },
  }
  const IN_RESPONSE = {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 2 },
  }

  it.each<[string, readonly object[]]>([
    ['none', [whole]],
    ['the input alone', [whole, { prompt_tokens: 10 }]],
    ['the totals alone', [whole, { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: null }]],
    ['a newer output', [{ ...whole, completion_tokens: 1 }, { completion_tokens: 5 }]],
    ['the other half', [{ ...whole, completion_tokens: null }, { completion_tokens: 5 }]],
  ])('stand until they are said again, where later chunks have %s', (_later, usages) => {
    expect(streamed(messagesOver(), ...usages)).toMatchObject(IN_MESSAGE)
    expect(streamed(responsesOver('chat'), ...usages)).toMatchObject(IN_RESPONSE)
  })

  it('may become zero', () => {
    const none = { prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 } }
    expect(streamed(messagesOver(), whole, none)).toMatchObject({ input_tokens: 10, cache_read_input_tokens: 0 })
  })
})

describe('Figures of a chat upstream that read more from its cache than the prompt has', () => {
  it('are no negative number in a message', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 12 } }
    const expected = { input_tokens: 0, cache_read_input_tokens: 12, output_tokens: 5 }
    expect(usageOf(messagesOver().answerText(chatAnswer(usage)))).toMatchObject(expected)
    expect(usageIn(messagesOver().frames(chatEvents(usage)))).toMatchObject(expected)
  })
})
