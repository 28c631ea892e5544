import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { TranslationRun } from '../../../test/support/translation.js'
import { JsonText, jsonTextOf } from '../../core/json-text.js'
import { chatOverMessages } from './chat-over-messages/chat-over-messages.js'
import { messagesOverChat } from './messages-over-chat/messages-over-chat.js'
import { responsesOverChat } from './responses-over-chat/responses-over-chat.js'
import { responsesOverMessages } from './responses-over-messages/responses-over-messages.js'

type Members = Record<string, unknown>

const SETTING = { upstreamModel: 'model', facts: { thinking: 'adaptive', promptCacheBreakpoints: true } } as const
const STRICT = { ...SETTING, isStrict: true } as const

/** As a model may spell them, which no parser keeps. */
const INPUTS = ['{}', '{"a":1.0}', '{"z":1e400,"a":"\\u00e9"}', '{ "2": 12345678901234567890, "1": [null] }']
/** As strict tools need it in chat. */
const SCHEMA = new JsonText(
  '{"type":"object","properties":{"b":{"type":"number","maximum":1.0}},"required":["b"],"additionalProperties":false}',
)
const PNG = 'data:image/png;base64,iVBORw0KGgo='
const PDF = 'data:application/pdf;base64,JVBERi0='

const words = fc.string({ maxLength: 12 }).map((text) => `x${text}`)

/** What a user says, whatever the dialect. */
type Said =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'image'; readonly url: string }
  | { readonly kind: 'file'; readonly filename: string }

const said: fc.Arbitrary<readonly Said[]> = fc.array(
  fc.oneof(
    words.map((text): Said => ({ kind: 'text', text })),
    fc.constantFrom(PNG, 'https://a.test/b.png').map((url): Said => ({ kind: 'image', url })),
    words.map((filename): Said => ({ kind: 'file', filename })),
  ),
  { minLength: 1, maxLength: 3 },
)

const calls = fc.array(
  fc.record({
    name: fc.constantFrom('look', 'listen'),
    input: fc.constantFrom(...INPUTS),
    result: words,
    isList: fc.boolean(),
  }),
  { maxLength: 3 },
)

/** The assistant's text and calls, and what the user says behind their results. */
const turns = fc.array(fc.record({ text: words, isSilent: fc.boolean(), calls, after: said }), { maxLength: 4 })

const conversation = fc.record({ system: fc.option(words), first: said, turns })
const settings = fc.record(
  {
    temperature: fc.constantFrom(0, 0.5, 1),
    top_p: fc.constantFrom(0.5, 1),
    safety_identifier: words,
    service_tier: fc.constantFrom('auto', 'default'),
    stream: fc.constant(true),
  },
  { requiredKeys: [] },
)
const tools = fc.option(
  fc.record({
    choice: fc.constantFrom('auto', 'required', 'named', undefined),
    parallel_tool_calls: fc.constantFrom(false, undefined),
    strict: fc.constantFrom(true, undefined),
  }),
)
const request = fc.record({
  conversation,
  settings,
  tools,
  isJson: fc.boolean(),
  stop: fc.option(fc.array(words, { minLength: 1, maxLength: 4 })),
})
type Request = typeof request extends fc.Arbitrary<infer Value> ? Value : never

const idOf = (turn: number, call: number): string => `call_${turn}_${call}`

const chatPart = (part: Said): object => {
  if (part.kind === 'text') return { type: 'text', text: part.text }
  if (part.kind === 'image') return { type: 'image_url', image_url: { url: part.url } }
  return { type: 'file', file: { filename: part.filename, file_data: PDF } }
}

function chatMessages({ system, first, turns: all }: Request['conversation']): readonly object[] {
  const later = all.flatMap(({ text, isSilent, calls: made, after }, turn) => [
    {
      role: 'assistant',
      content: isSilent && made.length > 0 ? null : text,
      ...(made.length === 0
        ? {}
        : {
            tool_calls: made.map(({ name, input }, call) => ({
              id: idOf(turn, call),
              type: 'function',
              function: { name, arguments: input },
            })),
          }),
    },
    ...made.map(({ result, isList }, call) => ({
      role: 'tool',
      tool_call_id: idOf(turn, call),
      content: isList
        ? [
            { type: 'text', text: result },
            { type: 'text', text: 'more' },
          ]
        : result,
    })),
    { role: 'user', content: after.map(chatPart) },
  ])
  const instructions = system === null ? [] : [{ role: 'system', content: system }]
  return [...instructions, { role: 'user', content: first.map(chatPart) }, ...later]
}

function chatText({ conversation: talk, settings: fields, tools: asked, isJson, stop }: Request): string {
  const named = { type: 'function', function: { name: 'look' } }
  return jsonTextOf({
    model: 'model',
    max_completion_tokens: 100,
    messages: chatMessages(talk),
    ...fields,
    ...(fields.stream === true ? { stream_options: { include_usage: true } } : {}),
    ...(stop === null ? {} : { stop }),
    ...(isJson
      ? { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: SCHEMA, strict: true } } }
      : {}),
    ...(asked === null
      ? {}
      : {
          tools: [
            {
              type: 'function',
              function: { name: 'look', description: 'Looks', parameters: SCHEMA, strict: asked.strict },
            },
          ],
          tool_choice: asked.choice === 'named' ? named : asked.choice,
          parallel_tool_calls: asked.parallel_tool_calls,
        }),
  })
}

const responsePart = (part: Said): object => {
  if (part.kind === 'text') return { type: 'input_text', text: part.text }
  if (part.kind === 'image') return { type: 'input_image', image_url: part.url }
  return { type: 'input_file', filename: part.filename, file_data: PDF }
}

function responseItems({ first, turns: all }: Request['conversation']): readonly object[] {
  const later = all.flatMap(({ text, isSilent, calls: made, after }, turn) => [
    ...(isSilent && made.length > 0 ? [] : [{ role: 'assistant', content: text }]),
    ...made.map(({ name, input }, call) => ({
      type: 'function_call',
      call_id: idOf(turn, call),
      name,
      arguments: input,
    })),
    ...made.map(({ result, isList }, call) => ({
      type: 'function_call_output',
      call_id: idOf(turn, call),
      output: isList
        ? [
            { type: 'input_text', text: result },
            { type: 'input_text', text: 'more' },
          ]
        : result,
    })),
    { role: 'user', content: after.map(responsePart) },
  ])
  return [{ role: 'user', content: first.map(responsePart) }, ...later]
}

function responseText({ conversation: talk, settings: fields, tools: asked, isJson }: Request): string {
  return jsonTextOf({
    model: 'model',
    max_output_tokens: 100,
    input: responseItems(talk),
    ...(talk.system === null ? {} : { instructions: talk.system }),
    ...fields,
    ...(isJson ? { text: { format: { type: 'json_schema', name: 'answer', schema: SCHEMA, strict: true } } } : {}),
    ...(asked === null
      ? {}
      : {
          // What says nothing is strict here, and not in chat.
          tools: [
            { type: 'function', name: 'look', description: 'Looks', parameters: SCHEMA, strict: asked.strict ?? false },
          ],
          tool_choice: asked.choice === 'named' ? { type: 'function', name: 'look' } : asked.choice,
          parallel_tool_calls: asked.parallel_tool_calls,
        }),
  })
}

const overMessages = (text: string): string =>
  new TranslationRun({ client: 'chat', upstream: 'messages' }, chatOverMessages, text, STRICT).sentText
const overChat = (text: string): string =>
  new TranslationRun({ client: 'messages', upstream: 'chat' }, messagesOverChat, text, STRICT).sentText

const listOf = (content: unknown): unknown => {
  if (content === null || content === undefined) return []
  return typeof content === 'string' ? [{ type: 'text', text: content }] : (content as Members[]).map(plain)
}

/** The written list of what differs, with `comparable`: a text alone is a string or a list of one, and no content is null or left out, as a dialect likes. */
const plain = (value: Members): Members =>
  'role' in value || value['type'] === 'tool_result' ? { ...value, content: listOf(value['content']) } : value

/** `auto` is what no choice means; messages have no place for one call at a time but in a choice. */
function comparable(text: string): Members {
  const fields = JSON.parse(text) as Members & { messages: Members[] }
  const choice = fields['tool_choice']
  return {
    ...fields,
    messages: fields.messages.map(plain),
    system: listOf(fields['system']),
    tool_choice: choice === 'auto' ? undefined : choice,
  }
}

const expectSpelledAs = (sent: string, text: string): void => {
  // What stands in a text of JSON is quoted there.
  const unquoted = (json: string): string => json.replaceAll('\\"', '"').replaceAll('\\\\', '\\')
  for (const spelled of [...INPUTS, SCHEMA.text]) {
    expect(unquoted(sent).split(spelled).length).toBe(unquoted(text).split(spelled).length)
  }
}

describe('A chat request', () => {
  it('comes back from messages as it was, without a loss, each number as it was spelled', () => {
    fc.assert(
      fc.property(request, (fields) => {
        const text = chatText(fields)
        const back = overChat(overMessages(text))
        expect(comparable(back)).toEqual(comparable(text))
        expectSpelledAs(back, text)
      }),
      { numRuns: 200 },
    )
  })
})

describe('A request for a response', () => {
  it('is the same for a messages upstream whether it goes there directly or by way of chat, without a loss', () => {
    fc.assert(
      fc.property(request, (fields) => {
        const text = responseText(fields)
        const direct = new TranslationRun(
          { client: 'responses', upstream: 'messages' },
          responsesOverMessages,
          text,
          STRICT,
        ).sentText
        const chat = new TranslationRun({ client: 'responses', upstream: 'chat' }, responsesOverChat, text, STRICT)
          .sentText
        expect(comparable(overMessages(chat))).toEqual(comparable(direct))
        expectSpelledAs(direct, text)
      }),
      { numRuns: 200 },
    )
  })

  it('is the same for a chat upstream as what its client would have asked in chat', () => {
    fc.assert(
      fc.property(request, (fields) => {
        const { sentText } = new TranslationRun(
          { client: 'responses', upstream: 'chat' },
          responsesOverChat,
          responseText(fields),
          STRICT,
        )
        expect(comparable(sentText)).toEqual(comparable(chatText({ ...fields, stop: null })))
      }),
      { numRuns: 200 },
    )
  })
})
