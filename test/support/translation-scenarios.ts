import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'

export type Chat = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'model' | 'stream'>
export type Messages = Omit<Anthropic.MessageCreateParamsNonStreaming, 'model' | 'stream' | 'max_tokens'> & {
  readonly max_tokens?: number
}
export type Responses = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'model' | 'stream'>

export type Dialect = 'chat' | 'messages' | 'responses'

/** The same request in each dialect that has it. */
export interface Scenario {
  readonly chat?: Chat
  readonly messages?: Messages
  readonly responses?: Responses
  /** Whether the models are to be ones that think. */
  readonly isThought?: boolean
  /** Whether the streams of chat are beyond the SDKs' helpers. */
  readonly isHelperless?: boolean
  /** What else may differ here, with the reason beside it: paths as in the list of `translated-shape.ts`. */
  readonly differs?: Partial<Readonly<Record<Dialect, readonly string[]>>>
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
const NAME = 'get_weather'
const NAMES = [NAME, 'get_time']
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

/** The call and its result, in which there is a picture; a native chat upstream takes none there. */
const PICTURED_RESULT: Scenario = {
  messages: {
    tools: TOOLS.messages,
    messages: [
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'call_0', name: NAME, input: JSON.parse(ARGUMENTS) as object }],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'call_0',
            content: [
              { type: 'text', text: 'sunny' },
              { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
            ],
          },
        ],
      },
    ],
  },
  responses: {
    tools: TOOLS.responses,
    input: [
      { role: 'user', content: 'Weather?' },
      { type: 'function_call', call_id: 'call_0', name: NAME, arguments: ARGUMENTS },
      {
        type: 'function_call_output',
        call_id: 'call_0',
        output: [
          { type: 'input_text', text: 'sunny' },
          { type: 'input_image', image_url: PICTURE, detail: 'auto' },
        ],
      },
    ],
  },
  // Chat has pictures in messages of users alone: a result says where its picture stands, and the simulator repeats the result.
  differs: { messages: ['content.*.text'], responses: ['output.*.content.*.text', 'output_text'] },
}

/** The older form of tools, which chat alone has. */
const LEGACY = {
  functions: NAMES.map((name) => ({ name, description: `The ${name}`, parameters: SCHEMA })),
  messages: [{ role: 'user' as const, content: 'Call get_time' }],
}
const LEGACY_ANSWERED = {
  ...LEGACY,
  messages: [
    { role: 'user' as const, content: 'Call get_time' },
    { role: 'assistant' as const, content: null, function_call: { name: 'get_time', arguments: ARGUMENTS } },
    { role: 'function' as const, name: 'get_time', content: 'noon' },
  ],
}

const refusedResponse = [
  // A refusal ends a response of its vendor's own model like any answer; a translated one tells programs that they got none.
  'status',
  'incomplete_details',
  'output.*.status',
]

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
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
  'a stop sequence': {
    chat: { messages: [{ role: 'user', content: '#words=9' }], stop: ['word4'] },
    messages: { messages: [{ role: 'user', content: '#words=9' }], stop_sequences: ['word4', 'word6'] },
    // Chat upstreams do not say that a sequence stopped them, nor which.
    differs: { messages: ['stop_reason', 'stop_sequence'] },
  },
  'a refusal': {
    ...asked('#refuse'),
    differs: {
      // Its vendor's own model ends it with `stop`; a translated one says so where programs look first.
      chat: ['choices.*.finish_reason'],
      responses: refusedResponse,
    },
  },
  'a refusal instead of calls of tools': {
    ...tooled('Call get_time #refuse'),
    differs: { chat: ['choices.*.finish_reason'], responses: refusedResponse },
  },
  'an answer that a filter cuts': {
    ...asked('#filter #words=9'),
    differs: {
      // Messages upstreams know refusals alone, for which there is always a text here: clients show it.
      chat: ['choices.*.message.refusal'],
      // Likewise, as a part behind the text.
      responses: ['output.*.content.*<refusal>'],
      // Chat upstreams give no reason.
      messages: ['stop_details'],
    },
  },
  'a custom tool': {
    // The helpers put together pieces of functions alone.
    isHelperless: true,
    chat: {
      tools: [{ type: 'custom', custom: { name: 'input', description: 'Takes a text' } }],
      messages: [{ role: 'user', content: 'Call input' }],
    },
    responses: { tools: [{ type: 'custom', name: 'input', description: 'Takes a text' }], input: 'Call input' },
  },
  'the words after the result of a custom tool': {
    chat: {
      tools: [{ type: 'custom', custom: { name: 'input' } }],
      messages: [
        { role: 'user', content: 'Call input' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_0', type: 'custom', custom: { name: 'input', input: '\n<x> "é"' } }],
        },
        { role: 'tool', tool_call_id: 'call_0', content: 'done' },
      ],
    },
    responses: {
      tools: [{ type: 'custom', name: 'input' }],
      input: [
        { role: 'user', content: 'Call input' },
        { type: 'custom_tool_call', call_id: 'call_0', name: 'input', input: '\n<x> "é"' },
        { type: 'custom_tool_call_output', call_id: 'call_0', output: 'done' },
      ],
    },
  },
  'a function of the older form': { chat: LEGACY },
  'the words after the result of such a function': { chat: LEGACY_ANSWERED },
  'a picture in the result of a tool': PICTURED_RESULT,
  thoughts: {
    ...asked('Think', {
      chat: { reasoning_effort: 'low' },
      messages: { thinking: { type: 'enabled', budget_tokens: 2048 }, max_tokens: 4000 },
      responses: { reasoning: { effort: 'low', summary: 'auto' } },
    }),
    isThought: true,
    differs: {
      // What a chat client can be shown of thoughts goes beyond its dialect, and its vendor's own models show none.
      chat: ['choices.*.message.reasoning_content', 'choices.*.message.thinking_blocks'],
      // This chat upstream shows none of its thoughts.
      messages: ['content.*<thinking>'],
      // Likewise; and those that another one shows are not in the words of this one.
      responses: ['output.*<reasoning>'],
    },
  },
  'thoughts before a call of a tool': {
    ...tooled('Call get_time', {
      chat: { reasoning_effort: 'low' },
      messages: { thinking: { type: 'enabled', budget_tokens: 2048 }, max_tokens: 4000 },
      responses: { reasoning: { effort: 'low', summary: 'auto' } },
    }),
    isThought: true,
    differs: {
      chat: ['choices.*.message.reasoning_content', 'choices.*.message.thinking_blocks'],
      messages: ['content.*<thinking>'],
      responses: ['output.*<reasoning>'],
    },
  },
}
