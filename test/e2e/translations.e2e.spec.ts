import type Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, it } from '@jest/globals'
import type OpenAI from 'openai'
import { shareLab } from '../support/lab-lifetime.js'
import { ANTHROPIC_CLIENTS } from '../support/m1-gateway.js'
import { chatHelpers, OPENAI_CLIENTS } from '../support/sdk-clients.js'
import {
  CHAT_MODEL,
  CHAT_ONLY_MODEL,
  MESSAGES_MODEL,
  startTranslationLab,
  type TranslationLab,
} from '../support/translation-gateway.js'

type Chat = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'model' | 'stream'>
type Messages = Omit<Anthropic.MessageCreateParamsNonStreaming, 'model' | 'stream' | 'max_tokens'>
type Responses = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'model' | 'stream'>

/** The same request in each dialect. */
interface Scenario {
  readonly chat: Chat
  readonly messages: Messages & { readonly max_tokens?: number }
  readonly responses: Responses
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PICTURE = `data:image/png;base64,${PIXEL}`
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 2 } },
  required: ['city', 'days'],
  additionalProperties: false,
}

const chatTool = (name: string): OpenAI.ChatCompletionTool => ({
  type: 'function',
  function: { name, description: `The ${name}`, parameters: SCHEMA },
})
const messagesTool = (name: string): Anthropic.Tool => ({
  name,
  description: `The ${name}`,
  input_schema: SCHEMA as Anthropic.Tool.InputSchema,
})
const responsesTool = (name: string): OpenAI.Responses.FunctionTool => ({
  type: 'function',
  name,
  description: `The ${name}`,
  parameters: SCHEMA,
  strict: false,
})
const NAMES = ['get_weather', 'get_time']
const TOOLS = {
  chat: NAMES.map(chatTool),
  messages: NAMES.map(messagesTool),
  responses: NAMES.map(responsesTool),
}

/** One user text, with what each dialect adds to it. */
const asked = (text: string, more: { chat?: object; messages?: object; responses?: object } = {}): Scenario => ({
  chat: { messages: [{ role: 'user', content: text }], ...more.chat },
  messages: { messages: [{ role: 'user', content: text }], ...more.messages },
  responses: { input: text, ...more.responses },
})

const ARGUMENTS = '{"city":"Köln","days":2}'

/** The call and its result, after which the model speaks. */
const ANSWERED: Scenario = {
  chat: {
    tools: TOOLS.chat,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'I will look.',
        tool_calls: NAMES.map((name, index) => ({
          id: `call_${index}`,
          type: 'function',
          function: { name, arguments: ARGUMENTS },
        })),
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'sunny' },
      { role: 'tool', tool_call_id: 'call_1', content: 'noon' },
    ],
  },
  messages: {
    system: 'Be brief.',
    tools: TOOLS.messages,
    messages: [
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'I will look.' },
          ...NAMES.map((name, index) => ({
            type: 'tool_use' as const,
            id: `call_${index}`,
            name,
            input: JSON.parse(ARGUMENTS) as object,
          })),
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_0', content: 'sunny' },
          { type: 'tool_result', tool_use_id: 'call_1', content: 'noon' },
        ],
      },
    ],
  },
  responses: {
    instructions: 'Be brief.',
    tools: TOOLS.responses,
    input: [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: 'I will look.' },
      ...NAMES.map((name, index) => ({
        type: 'function_call' as const,
        call_id: `call_${index}`,
        name,
        arguments: ARGUMENTS,
      })),
      { type: 'function_call_output', call_id: 'call_0', output: 'sunny' },
      { type: 'function_call_output', call_id: 'call_1', output: 'noon' },
    ],
  },
}

const PICTURED: Scenario = {
  chat: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: PICTURE } },
        ],
      },
    ],
  },
  messages: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
        ],
      },
    ],
  },
  responses: {
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image_url: PICTURE, detail: 'auto' },
        ],
      },
    ],
  },
}

const tooled = (text: string, choice: { chat?: object; messages?: object; responses?: object } = {}): Scenario =>
  asked(text, {
    chat: { tools: TOOLS.chat, ...choice.chat },
    messages: { tools: TOOLS.messages, ...choice.messages },
    responses: { tools: TOOLS.responses, ...choice.responses },
  })

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'a text': asked('Hello, wörld ☃'),
  'a long answer': asked('#words=300'),
  'an answer that is cut by its maximum': asked('#words=50', {
    chat: { max_completion_tokens: 20 },
    messages: { max_tokens: 20 },
    responses: { max_output_tokens: 20 },
  }),
  'one call of a tool': tooled('Call get_time'),
  'parallel calls of tools': tooled('Call get_weather and get_time'),
  'only one call': tooled('Call get_weather and get_time', {
    chat: { parallel_tool_calls: false },
    messages: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    responses: { parallel_tool_calls: false },
  }),
  'no call, as tools are ruled out': tooled('Call get_time', {
    chat: { tool_choice: 'none' },
    messages: { tool_choice: { type: 'none' } },
    responses: { tool_choice: 'none' },
  }),
  'arguments as the model spelled them': tooled(`Call get_time #args={"days": 7, "city": "\\u00e9 \\"x\\""}`),
  'the words after the results of tools': ANSWERED,
  'a picture': PICTURED,
  'JSON by a schema': asked('Plan', {
    chat: { response_format: { type: 'json_schema', json_schema: { name: 'plan', schema: SCHEMA, strict: true } } },
    messages: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
    responses: { text: { format: { type: 'json_schema', name: 'plan', schema: SCHEMA, strict: true } } },
  }),
}
const ROWS = Object.entries(SCENARIOS)

/** What may differ between a native answer and a translated one; `*` is any element. All else is the same, member by member. */
const DIFFERENCES = {
  chat: [
    // Each upstream makes its own.
    'id',
    'created',
    'choices.*.message.tool_calls.*.id',
    // A native answer names the dated model, a translated one what the caller asked for.
    'model',
    // Of the chat upstream alone.
    'system_fingerprint',
    'service_tier',
    'choices.*.message.annotations',
    // Padding of its chunks.
    'obfuscation',
    // Told by newer models alone.
    'usage.prompt_tokens_details.cache_write_tokens',
  ],
  messages: [
    'id',
    'content.*.id',
    'model',
    // Members of the type that upstreams leave out where they have nothing to say: a translated answer has all of them, as null.
    ...[
      'container',
      'diagnostics',
      'stop_details',
      'content.*.citations',
      'content.*.caller',
      'usage.server_tool_use',
      'usage.speed',
    ],
    // Where and how the tokens were made, which a chat upstream does not tell, or tells otherwise.
    ...['usage.cache_creation', 'usage.inference_geo', 'usage.service_tier', 'usage.output_tokens_details'],
  ],
  responses: ['id', 'created_at', 'completed_at', 'output.*.id', 'output.*.call_id', 'model'],
}

/** An answer without these; of tokens only whether there are any, as each upstream counts its own. */
const shape = (value: unknown, differences: readonly string[], path = ''): unknown => {
  if (Array.isArray(value)) return value.map((item) => shape(item, differences, `${path}.*`))
  // In a whole answer messages upstreams have an object, which has no spelling.
  if (typeof value === 'string' && path.endsWith('.arguments')) return JSON.parse(value) as unknown
  if (typeof value === 'number' && /(?:^|\.)usage\./.test(path)) return value > 0 ? 'some' : 'none'
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(
    ([name, member]) => [name, `${path}.${name}`.slice(path === '' ? 1 : 0), member] as const,
  )
  return Object.fromEntries(
    members
      .filter(([, memberPath]) => !differences.includes(memberPath))
      .map(([name, memberPath, member]) => [name, shape(member, differences, memberPath)]),
  )
}

let lab: TranslationLab

shareLab(async () => (lab = await startTranslationLab()))

describe('The same request, natively and translated, is answered the same', () => {
  /** No judge of an upstream has refused anything. */
  afterEach(() => {
    expect([...lab.p1.violations, ...lab.m1.violations]).toEqual([])
  })

  describe.each(OPENAI_CLIENTS)('with %s', (_name, makeClient) => {
    const chat = async (model: string, request: Chat): Promise<unknown> =>
      shape(await makeClient(lab.gateway).chat.completions.create({ model, ...request }), DIFFERENCES.chat)

    const chatStream = async (model: string, request: Chat): Promise<unknown> => {
      const asked = { model, ...request, stream_options: { include_usage: true } }
      const stream = chatHelpers(makeClient(lab.gateway)).stream(asked)
      return shape(await stream.finalChatCompletion(), DIFFERENCES.chat)
    }

    it.each(ROWS)('chat over messages: %s', async (_scenario, { chat: request }) => {
      expect(await chat(MESSAGES_MODEL, request)).toEqual(await chat(CHAT_MODEL, request))
      expect(await chatStream(MESSAGES_MODEL, request)).toEqual(await chatStream(CHAT_MODEL, request))
    })

    const respond = async (model: string, request: Responses): Promise<unknown> =>
      shape(await makeClient(lab.gateway).responses.create({ model, ...request }), DIFFERENCES.responses)

    const respondStream = async (model: string, request: Responses): Promise<unknown> => {
      const stream = makeClient(lab.gateway).responses.stream({ model, ...request })
      return shape(await stream.finalResponse(), DIFFERENCES.responses)
    }

    it.each(ROWS)('responses over messages and over chat: %s', async (_scenario, { responses: request }) => {
      const native = await respond(CHAT_MODEL, request)
      const nativeStream = await respondStream(CHAT_MODEL, request)
      for (const model of [MESSAGES_MODEL, CHAT_ONLY_MODEL]) {
        expect(await respond(model, request)).toEqual(native)
        expect(await respondStream(model, request)).toEqual(nativeStream)
      }
    })
  })

  describe.each(ANTHROPIC_CLIENTS)('with %s', (_name, makeClient) => {
    const asked = (model: string, { max_tokens: maximum = 1000, ...request }: Scenario['messages']) => ({
      model,
      max_tokens: maximum,
      ...request,
    })
    const create = async (model: string, request: Scenario['messages']): Promise<unknown> =>
      shape(await makeClient(lab.gateway).messages.create(asked(model, request)), DIFFERENCES.messages)

    const stream = async (model: string, request: Scenario['messages']): Promise<unknown> =>
      shape(await makeClient(lab.gateway).messages.stream(asked(model, request)).finalMessage(), DIFFERENCES.messages)

    it.each(ROWS)('messages over chat: %s', async (_scenario, { messages: request }) => {
      expect(await create(CHAT_MODEL, request)).toEqual(await create(MESSAGES_MODEL, request))
      expect(await stream(CHAT_MODEL, request)).toEqual(await stream(MESSAGES_MODEL, request))
    })
  })
})
