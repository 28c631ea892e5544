import { describe, expect, it } from '@jest/globals'
import { judgeChatRequest } from '@multi-model-gateway/sandbox/p1/chat-request.js'
import fc from 'fast-check'
import { TranslationRun } from '../../../../test/support/translation.js'
import { JsonText, jsonTextOf } from '../../../core/json-text.js'
import { chatOverMessages } from '../chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat.js'

type Members = Record<string, unknown>

const SETTING = { upstreamModel: 'model', facts: { thinking: 'adaptive', promptCacheBreakpoints: true } } as const

/** As a model may spell them, which no parser keeps. */
const INPUTS = [
  '{}',
  '{"a":1.0}',
  '{"z":1e400,"a":"\\u00e9"}',
  '{ "2": 12345678901234567890, "1": [null, {"b":[]}] }',
  '{"t":"Grüße 👋"}',
]

/** Messages upstreams take no blank texts. */
const words = fc.string({ maxLength: 12 }).map((text) => `x${text}`)
const mark = fc.option(fc.constant({ cache_control: { type: 'ephemeral' } }), { nil: {}, freq: 4 })
const textBlock = words.map((text) => ({ type: 'text', text }))
/** Messages upstreams take four marks at most. */
const markedBlock = fc.tuple(textBlock, mark).map(([block, more]) => ({ ...block, ...more }))
const image = fc.constantFrom(
  { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
  { type: 'image', source: { type: 'url', url: 'https://a.test/b.png' } },
)
const pdf = words.map((title) => ({
  type: 'document',
  title,
  source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
}))
const said = fc.array(fc.oneof(textBlock, image, pdf), { minLength: 1, maxLength: 3 })

interface Turn {
  readonly assistant: readonly Members[]
  readonly user: readonly Members[]
}

const call = fc.record({
  name: fc.constantFrom('look', 'listen'),
  input: fc.constantFrom(...INPUTS),
  result: words,
  isList: fc.boolean(),
})

/** What the assistant says and calls, and what the user answers; `index` makes ids that no other turn has. */
const turn = fc
  .record({ text: fc.option(words), calls: fc.array(call, { maxLength: 3 }), after: said, isSilent: fc.boolean() })
  .map(({ text, calls, after, isSilent }) => (index: number): Turn => {
    const idOf = (position: number): string => `call_${index}_${position}`
    const texts = text === null && calls.length > 0 ? [] : [{ type: 'text', text: text ?? 'Well' }]
    const uses = calls.map(({ name, input }, position) => ({
      type: 'tool_use',
      id: idOf(position),
      name,
      input: new JsonText(input),
    }))
    const results = calls.map(({ result, isList }, position) => ({
      type: 'tool_result',
      tool_use_id: idOf(position),
      content: isList
        ? [
            { type: 'text', text: result },
            { type: 'text', text: 'more' },
          ]
        : result,
    }))
    return { assistant: [...texts, ...uses], user: [...results, ...(isSilent && results.length > 0 ? [] : after)] }
  })

const tool = {
  name: 'look',
  description: 'Looks',
  input_schema: new JsonText('{"type":"object","properties":{"b":{"maximum":1.0},"1":{}}}'),
}
const settings = fc.record(
  {
    system: fc.array(markedBlock, { minLength: 1, maxLength: 2 }),
    stop_sequences: fc.array(words, { minLength: 1, maxLength: 4 }),
    temperature: fc.constantFrom(0, 0.5, 1),
    top_p: fc.constantFrom(0.5, 1),
    metadata: words.map((user_id) => ({ user_id })),
    service_tier: fc.constantFrom('auto', 'standard_only'),
    output_config: fc.constant({
      format: {
        type: 'json_schema',
        schema: new JsonText('{"type":"object","additionalProperties":false,"minProperties":1.0}'),
      },
    }),
    stream: fc.constant(true),
    tools: fc.constant([tool]),
  },
  { requiredKeys: [] },
)
const choice = fc.constantFrom<Members>(
  {},
  { tool_choice: { type: 'any' } },
  { tool_choice: { type: 'tool', name: 'look' } },
)

const request = fc
  .record({ settings, choice, first: fc.tuple(markedBlock, said), turns: fc.array(turn, { maxLength: 4 }) })
  .map(({ settings: fields, choice: chosen, first, turns }) => ({
    model: 'model',
    max_tokens: 100,
    messages: [
      { role: 'user', content: first.flat() },
      ...turns.flatMap((make, index) => {
        const { assistant, user } = make(index)
        return [
          { role: 'assistant', content: assistant },
          { role: 'user', content: user },
        ]
      }),
    ],
    ...fields,
    ...('tools' in fields ? chosen : {}),
  }))

/** Strict: nothing of it may be lost. */
const overChat = (text: string): string =>
  new TranslationRun({ client: 'messages', upstream: 'chat' }, messagesOverChat, text, { ...SETTING, isStrict: true })
    .sentText

const overMessages = (text: string): string =>
  new TranslationRun({ client: 'chat', upstream: 'messages' }, chatOverMessages, text, SETTING).sentText

const listOf = (content: unknown): readonly Members[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Members[])

/** Texts are strings or lists of one, as a dialect likes. */
const plainBlock = (block: Members): Members =>
  block['type'] === 'tool_result' ? { ...block, content: listOf(block['content']) } : block

function plain(text: string): Members {
  const fields = JSON.parse(text) as Members & { messages: { role: string; content: unknown }[]; system?: unknown }
  const messages = fields.messages.map(({ role, content }) => ({ role, content: listOf(content).map(plainBlock) }))
  return { ...fields, messages, ...(fields.system === undefined ? {} : { system: listOf(fields.system) }) }
}

describe('A conversation of messages', () => {
  it('is taken by chat upstreams, and comes back from chat as it was, each number as it was spelled', () => {
    fc.assert(
      fc.property(request, (fields) => {
        const text = jsonTextOf(fields)
        const chat = overChat(text)
        judgeChatRequest(JSON.parse(chat) as Members, { acceptUnknownFields: false, knowsAudio: () => false })
        const back = overMessages(chat)
        expect(plain(back)).toEqual(plain(text))
        for (const spelled of [...INPUTS, tool.input_schema.text]) {
          expect(back.split(spelled).length).toBe(text.split(spelled).length)
        }
      }),
      { numRuns: 300 },
    )
  })
})
