import type Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, it } from '@jest/globals'
import type OpenAI from 'openai'
import { shareLab } from '../support/lab-lifetime.js'
import { ANTHROPIC_CLIENTS } from '../support/m1-gateway.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'
import {
  CHAT_MODEL,
  CHAT_ONLY_MODEL,
  MESSAGES_MODEL,
  type Said,
  saidInChat,
  saidInMessages,
  saidInResponse,
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

let lab: TranslationLab

shareLab(async () => (lab = await startTranslationLab()))

/** No judge of an upstream has refused anything. */
function expectNoRefusal(): void {
  expect([...lab.p1.violations, ...lab.m1.violations]).toEqual([])
}

describe('The same request, natively and translated, is answered the same', () => {
  afterEach(expectNoRefusal)

  describe.each(OPENAI_CLIENTS)('with %s', (_name, makeClient) => {
    const chat = async (model: string, request: Chat): Promise<Said> =>
      saidInChat(await makeClient(lab.gateway).chat.completions.create({ model, ...request }))

    const chatStream = async (model: string, request: Chat): Promise<Said> => {
      const stream = await makeClient(lab.gateway).chat.completions.create({
        model,
        ...request,
        stream: true,
        stream_options: { include_usage: true },
      })
      return saidInChat(await collectedChat(stream))
    }

    it.each(ROWS)('chat over messages: %s', async (_scenario, { chat: request }) => {
      const native = await chat(CHAT_MODEL, request)
      expect(await chat(MESSAGES_MODEL, request)).toEqual(native)
      expect(await chatStream(MESSAGES_MODEL, request)).toEqual(native)
    })

    const respond = async (model: string, request: Responses): Promise<Said> =>
      saidInResponse(await makeClient(lab.gateway).responses.create({ model, ...request }))

    const respondStream = async (model: string, request: Responses): Promise<Said> => {
      const stream = await makeClient(lab.gateway).responses.create({ model, ...request, stream: true })
      let last: OpenAI.Responses.Response | undefined
      for await (const event of stream) if ('response' in event) last = event.response
      if (last === undefined) throw new Error('no response')
      return saidInResponse(last)
    }

    it.each(ROWS)('responses over messages and over chat: %s', async (_scenario, { responses: request }) => {
      const native = await respond(CHAT_MODEL, request)
      for (const model of [MESSAGES_MODEL, CHAT_ONLY_MODEL]) {
        expect(await respond(model, request)).toEqual(native)
        expect(await respondStream(model, request)).toEqual(native)
      }
    })
  })

  describe.each(ANTHROPIC_CLIENTS)('with %s', (_name, makeClient) => {
    const create = async (model: string, { max_tokens: maximum = 1000, ...request }: Scenario['messages']) =>
      saidInMessages(await makeClient(lab.gateway).messages.create({ model, max_tokens: maximum, ...request }))

    const stream = async (model: string, { max_tokens: maximum = 1000, ...request }: Scenario['messages']) =>
      saidInMessages(
        await makeClient(lab.gateway)
          .messages.stream({ model, max_tokens: maximum, ...request })
          .finalMessage(),
      )

    it.each(ROWS)('messages over chat: %s', async (_scenario, { messages: request }) => {
      const native = await create(MESSAGES_MODEL, request)
      expect(await create(CHAT_MODEL, request)).toEqual(native)
      expect(await stream(CHAT_MODEL, request)).toEqual(native)
    })
  })
})

/** The chunks of a stream as one answer, as clients that read them collect it. */
async function collectedChat(chunks: AsyncIterable<OpenAI.ChatCompletionChunk>): Promise<OpenAI.ChatCompletion> {
  let content = ''
  let finishReason: OpenAI.ChatCompletion.Choice['finish_reason'] = 'stop'
  let usage: OpenAI.CompletionUsage | undefined
  let head: OpenAI.ChatCompletionChunk | undefined
  const calls: OpenAI.ChatCompletionMessageFunctionToolCall[] = []
  for await (const chunk of chunks) {
    head ??= chunk
    usage = chunk.usage ?? usage
    for (const { delta, finish_reason: reason } of chunk.choices) {
      content += delta.content ?? ''
      finishReason = reason ?? finishReason
      for (const piece of delta.tool_calls ?? []) {
        const call = (calls[piece.index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } })
        call.id += piece.id ?? ''
        call.function.name += piece.function?.name ?? ''
        call.function.arguments += piece.function?.arguments ?? ''
      }
    }
  }
  if (head === undefined) throw new Error('no chunk')
  const message = {
    role: 'assistant',
    content,
    refusal: null,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  } as const
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [{ index: 0, finish_reason: finishReason, logprobs: null, message }],
    ...(usage === undefined ? {} : { usage }),
  }
}
