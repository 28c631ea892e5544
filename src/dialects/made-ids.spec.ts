import { describe, expect, it } from '@jest/globals'
import { TranslationRun } from '../../test/support/translation.js'
import { messagesOverChat } from './translations/messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './translations/responses-over-chat/responses-over-chat.js'

type Answering = Pick<TranslationRun<never, object>, 'answerText' | 'frames'>

const forMessages = (): Answering =>
  new TranslationRun({ client: 'messages', upstream: 'chat' }, messagesOverChat, {
    messages: [{ role: 'user', content: 'Hi' }],
    max_tokens: 9,
  })
const forResponses = (): Answering =>
  new TranslationRun({ client: 'responses', upstream: 'chat' }, responsesOverChat, { input: 'Hi' })

const CALLS = ['search', 'search', 'read'].map((id, index) => ({
  index,
  id,
  type: 'function',
  function: { name: id, arguments: `{"a":${index}}` },
}))

/** In the order of the calls, each once. */
const idsIn = (text: string, member: string): readonly string[] => [
  ...new Set([...text.matchAll(new RegExp(`"${member}":"([^"]+)"`, 'g'))].map(([, id = '']) => id)),
]

describe.each([
  ['messages', forMessages],
  ['responses', forResponses],
])('Calls of a chat upstream that gives several the same id, for a client of %s', (client, run) => {
  const idOf = (text: string): readonly string[] =>
    client === 'responses'
      ? idsIn(text, 'call_id')
      : [...text.matchAll(/"type":"tool_use","id":"([^"]+)"/g)].map(([, id = '']) => id)

  it.each([
    ['of today', { tool_calls: [{ index: 0, function: { name: 'f', arguments: '{}' } }] }],
    ['of before', { function_call: { name: 'f', arguments: '{}' } }],
  ])(
    'get another in each answer where they have none, whatever the id of the request, in the form %s',
    (_form, said) => {
      const whole = (): readonly string[] =>
        idOf(run().answerText({ choices: [{ index: 0, message: said, finish_reason: 'tool_calls' }] }))
      const streamed = (): readonly string[] =>
        idOf(run().frames([{ choices: [{ index: 0, delta: said, finish_reason: 'tool_calls' }] }]))
      const ids = [whole(), whole(), streamed(), streamed()].flat()
      expect(new Set(ids).size).toBe(4)
      for (const id of ids) expect(id).toMatch(/^call_[0-9a-f]{52}$/)
    },
  )

  it('have one of their own each, by which the client brings results, and the first keeps it', () => {
    const whole = idOf(
      run().answerText({ choices: [{ index: 0, message: { tool_calls: CALLS }, finish_reason: 'tool_calls' }] }),
    )
    const streamed = idOf(
      run().frames([
        ...CALLS.map((call) => ({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })),
        { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
      ]),
    )
    for (const ids of [whole, streamed]) {
      expect(new Set(ids).size).toBe(3)
      expect([ids[0], ids[2]]).toEqual(['search', 'read'])
    }
  })
})
