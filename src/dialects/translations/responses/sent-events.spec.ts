import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { OPENAI_TYPES } from '../../../../test/support/sdk-types.js'
import { GatewayError } from '../../../core/errors.js'
import { responsesOverChat } from '../responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from '../responses-over-messages/responses-over-messages.js'

type Upstream = 'chat' | 'messages'

const TRANSLATORS = {
  chat: (request: object) => new ResponsesTranslation('chat', responsesOverChat, request),
  messages: (request: object) => new ResponsesTranslation('messages', responsesOverMessages, request),
} as const

/** Events of tools that upstreams run, of audio, and of what only a native upstream does. */
const NEVER_SENT =
  /^response\.(audio|code_interpreter_call|file_search_call|web_search_call|image_generation_call|mcp_call|mcp_list_tools)|^response\.(queued|output_text\.annotation\.added)$/
/** The text of thoughts, which is in the summary here; and the event of an error, for which `response.failed` says more. */
const OTHERWISE_SENT = ['response.reasoning_text.delta', 'response.reasoning_text.done', 'error']

const chunk = (delta: object, finish_reason: string | null = null): object => ({
  id: 'c',
  choices: [{ index: 0, delta, finish_reason }],
})
const call = (index: number, name: string, text: string): object =>
  chunk({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: text } }] })
const block = (index: number, start: object, ...deltas: readonly object[]): readonly object[] => [
  { type: 'content_block_start', index, content_block: start },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const input = (partial_json: string): object => ({ type: 'input_json_delta', partial_json })

const ANSWERS: Readonly<Record<Upstream, { whole: readonly object[]; end: (reason: string) => readonly object[] }>> = {
  chat: {
    whole: [
      chunk({ role: 'assistant', reasoning_content: 'Hm' }),
      chunk({ content: 'Yes' }),
      call(0, 'f', '{}'),
      chunk({
        tool_calls: [{ index: 1, id: 'call_1', type: 'custom', custom: { name: 'patch', input: 'x' } }],
      }),
    ],
    end: (reason) => [chunk(reason === 'content_filter' ? { refusal: 'No' } : {}, reason)],
  },
  messages: {
    whole: [
      { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 0 } } },
      ...block(
        0,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: 'Hm' },
        { type: 'signature_delta', signature: 's' },
      ),
      ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Yes' }),
      ...block(2, { type: 'tool_use', id: 'a', name: 'f', input: {} }, input('{}')),
      ...block(3, { type: 'tool_use', id: 'b', name: 'patch', input: {} }, input('{"input":"x"}')),
    ],
    end: (reason) => [
      {
        type: 'message_delta',
        delta: {
          stop_reason: MESSAGES_REASONS[reason],
          ...(reason === 'content_filter' ? { stop_details: { type: 'refusal', explanation: 'No' } } : {}),
        },
        usage: { output_tokens: 1 },
      },
      { type: 'message_stop' },
    ],
  },
}
const MESSAGES_REASONS: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  content_filter: 'refusal',
}

/** Types of all events of answers with all that one may hold, for each of their ends. */
function sentTypes(upstream: Upstream): ReadonlySet<string> {
  const request = {
    input: 'Hi',
    stream: true,
    reasoning: { summary: 'auto' },
    tools: [
      { type: 'function', name: 'f' },
      { type: 'custom', name: 'patch' },
    ],
  }
  const { whole, end } = ANSWERS[upstream]
  const streams = ['stop', 'length', 'content_filter'].map((reason) =>
    TRANSLATORS[upstream](request).events([...whole, ...end(reason)]),
  )
  const failed = TRANSLATORS[upstream](request).failedEvents(whole, new GatewayError('upstream_failed', 'Gone.'))
  return new Set([...streams.flat(), ...failed].map(({ type }) => type))
}

describe.each(['chat', 'messages'] as const)('Over %s', (upstream) => {
  it('every type of event of the vendor’s client is sent, or is one of what a translated answer never holds', () => {
    const known = OPENAI_TYPES.alternativesOf('ResponseStreamEvent')
    const sent = sentTypes(upstream)
    expect([...sent].filter((type) => !known.includes(type))).toEqual([])
    const others = known.filter((type) => !sent.has(type) && !NEVER_SENT.test(type))
    expect(others.toSorted()).toEqual(OTHERWISE_SENT.toSorted())
  })

  it('answers have every member of the type that is always there', () => {
    const { translation } = TRANSLATORS[upstream]({ input: 'Hi' })
    const events = translation.events()
    const frames = events.event({ type: 'message_start', message: {}, choices: [] })
    // The client computes the text.
    const needed = OPENAI_TYPES.requiredMembersOf('Response').filter((name) => name !== 'output_text')
    expect(needed.length).toBeGreaterThan(8)
    for (const name of needed) expect(frames).toContain(`"${name}":`)
  })
})
