import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import OpenAI from 'openai'
import type { RunnableToolFunctionWithParse } from 'openai/lib/RunnableFunction'
import { ChatSimulatorLab, hello, weather } from '../../test/chat-simulator-labs.js'

const lab = new ChatSimulatorLab()
const { framesOf, post } = lab

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const good = { model: 'gpt-4o-mini', messages: hello }
const named = (name: string): object => ({ type: 'function', function: { name } })
const customTool = (format: object): object => ({ type: 'custom', custom: { name: 'write', format } })
const jsonSchema = (schema: object): object => ({
  type: 'json_schema',
  json_schema: { name: 'answer', strict: true, schema },
})
const closed = (properties: object, required = Object.keys(properties)): object => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const optionalWithin = closed({ a: closed({ b: { type: 'string' } }, []) })
const pictured = (detail: string): object[] => [
  { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/kite.png', detail } }] },
]

describe('what chat refuses', () => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const heard = (data: string): object[] => [
    { role: 'user', content: [{ type: 'input_audio', input_audio: { data, format: 'wav' } }] },
  ]
  const cases: readonly [string, object, string | null, string | null, RegExp][] = [
    ['no model', { model: undefined }, null, null, /^you must provide a model parameter$/],
    [
      'no messages',
      { model: 'x', messages: undefined },
      'messages',
      'missing_required_parameter',
      /^Missing required parameter: 'messages'\.$/,
    ],
    ['unknown field', { foo: 1 }, 'foo', 'unknown_parameter', /^Unknown parameter: 'foo'\.$/],
    [
      'wrong type',
      { temperature: 'hot' },
      'temperature',
      'invalid_type',
      /^Invalid type for 'temperature': expected a decimal, but got a string instead\.$/,
    ],
    [
      'out of range',
      { temperature: 3 },
      'temperature',
      'decimal_above_max_value',
      /^Invalid 'temperature': decimal above maximum value\. Expected a value <= 2, but got 3 instead\.$/,
    ],
    [
      'max_tokens to a reasoning model',
      { model: 'gpt-5', max_tokens: 5 },
      'max_tokens',
      'unsupported_parameter',
      /^Unsupported parameter: 'max_tokens' is not supported with this model\. Use 'max_completion_tokens' instead\.$/,
    ],
    [
      'streamed wav',
      { model: 'gpt-audio', modalities: ['audio'], audio: { voice: 'alloy', format: 'wav' }, stream: true },
      'audio.format',
      'unsupported_value',
      /^Unsupported value: 'audio\.format' does not support 'wav' when stream=true\. Supported values are: 'pcm16'\.$/,
    ],
    ['audio model, text only', { model: 'gpt-audio' }, 'model', 'invalid_value', /^This model requires that either/],
    [
      'audio to a text model',
      { messages: heard('UklGRg==') },
      'messages[0]',
      'invalid_value',
      /^Invalid 'messages\[0\]'\. Content blocks are expected to be either text or image_url type\.$/,
    ],
    [
      'data URL as audio',
      { model: 'gpt-audio', messages: heard('data:audio/wav;base64,UklGRg==') },
      'messages[0].content[0].input_audio.data',
      'invalid_value',
      /without a data URL prefix/,
    ],
    [
      'tool calls without answers',
      { messages: [...hello, { role: 'assistant', content: null, tool_calls: [call] }, ...hello] },
      'messages.[2].role',
      null,
      /response messages: call_1$/,
    ],
    [
      'stray tool message',
      { messages: [...hello, { role: 'tool', tool_call_id: 'call_9', content: 'x' }] },
      'messages.[1].role',
      null,
      /^Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'\.$/,
    ],
    [
      'bad schema',
      { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }] },
      'tools[0].function.parameters',
      'invalid_function_parameters',
      /^Invalid schema for function 'f':/,
    ],
    [
      'strict schema that is not closed',
      { tools: [{ type: 'function', function: { ...weather.function, strict: true } }] },
      'tools[0].function.parameters',
      'invalid_function_parameters',
      /'additionalProperties' is required/,
    ],
    [
      'strict schema with an optional property within',
      { tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: optionalWithin } }] },
      'tools[0].function.parameters',
      'invalid_function_parameters',
      /^Invalid schema for function 'f': In context=\('properties', 'a'\), 'required' is required .* Missing 'b'\.$/,
    ],
    [
      'too long',
      { messages: [{ role: 'user', content: 'word '.repeat(110_000) }] },
      'messages',
      'context_length_exceeded',
      /^This model's maximum context length is 128000 tokens\./,
    ],
    [
      'more than the model can say',
      { max_tokens: 16_385 },
      'max_tokens',
      'invalid_value',
      /^max_tokens is too large: 16385\. This model supports at most 16384 completion tokens, whereas you provided 16385\.$/,
    ],
    [
      'an effort that the model does not know',
      { model: 'gpt-5.1', reasoning_effort: 'xhigh' },
      'reasoning_effort',
      'unsupported_value',
      /Supported values are: 'none', 'low', 'medium', and 'high'\.$/,
    ],
    [
      'an effort of a model that does not think',
      { reasoning_effort: 'low' },
      null,
      null,
      /^Unrecognized request argument supplied: reasoning_effort$/,
    ],
    [
      'temperature of a model that thinks',
      { model: 'gpt-5', temperature: 0.5 },
      'temperature',
      'unsupported_value',
      /'temperature' does not support 0\.5 with this model\. Only the default \(1\) value is supported\.$/,
    ],
    [
      'log probabilities of a model that thinks',
      { model: 'gpt-5.1', reasoning_effort: 'low', logprobs: true },
      'logprobs',
      'unsupported_parameter',
      /^Unsupported parameter: 'logprobs'/,
    ],
    [
      'a search with a model that cannot',
      { web_search_options: {} },
      'web_search_options',
      null,
      /^Web search options not supported with this model\.$/,
    ],
    [
      'a cache that is kept for another time',
      { prompt_cache_retention: '48h' },
      'prompt_cache_retention',
      'invalid_value',
      /^Invalid value: '48h'/,
    ],
    [
      'explicit caching with another lifetime',
      { prompt_cache_options: { ttl: '1h' } },
      'prompt_cache_options.ttl',
      'invalid_value',
      /^Invalid value: '1h'/,
    ],
    [
      'a prediction without content',
      { prediction: { type: 'content' } },
      'prediction.content',
      'missing_required_parameter',
      /^Missing required parameter/,
    ],
    [
      'an identifier that is too long',
      { safety_identifier: 'x'.repeat(65) },
      'safety_identifier',
      'string_above_max_length',
      /^Invalid 'safety_identifier': string too long\./,
    ],
    [
      'an allowed tool that is not there',
      {
        tools: [weather],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named('get_time')] } },
      },
      'tool_choice',
      null,
      /^Tool choice 'get_time' not found in 'tools' parameter\.$/,
    ],
    [
      'allowed tools without a mode',
      { tools: [weather], tool_choice: { type: 'allowed_tools', allowed_tools: { tools: [named('get_weather')] } } },
      'tool_choice.allowed_tools.mode',
      'invalid_type',
      /^Invalid type for 'tool_choice\.allowed_tools\.mode'/,
    ],
    [
      'a grammar of an unknown kind',
      { tools: [customTool({ type: 'grammar', grammar: { definition: 'a', syntax: 'ebnf' } })] },
      'tools[0].custom.format.grammar.syntax',
      'invalid_value',
      /^Invalid value: 'ebnf'/,
    ],
    [
      'a strict answer of a schema that is not closed',
      { response_format: jsonSchema({ type: 'object', properties: {} }) },
      'response_format',
      null,
      /^Invalid schema for response_format 'answer': .*'additionalProperties' is required/,
    ],
    [
      'a strict answer of a schema with an optional property within',
      { response_format: jsonSchema(optionalWithin) },
      'response_format',
      null,
      /^Invalid schema for response_format 'answer': In context=\('properties', 'a'\), 'required' is required .* 'b'\.$/,
    ],
    [
      'a mark for the cache of an unknown mode',
      {
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'auto' } }] },
        ],
      },
      'messages[0].content[0].prompt_cache_breakpoint.mode',
      'invalid_value',
      /^Invalid value: 'auto'/,
    ],
    ['stream options without stream', { stream_options: {} }, 'stream_options', null, /only allowed when 'stream'/],
  ]

  it.each(cases)('%s', async (_name, change, param, code, message) => {
    const response = await post({ ...good, ...change })
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code'])
    expect(error).toMatchObject({ type: 'invalid_request_error', param, code })
    expect(error['message']).toMatch(message)
  })

  it('a body that is not JSON, a wrong path and a wrong method', async () => {
    expect(await (await post('{"model":')).text()).toContain('We could not parse the JSON body of your request.')
    const headers = { authorization: 'Bearer sk-test-key' }
    expect((await fetch(`${lab.simulator.url}/v1/nothing`, { headers })).status).toBe(404)
    expect((await fetch(`${lab.simulator.url}/v1/chat/completions`, { headers })).status).toBe(405)
  })
})

describe('what chat accepts beside that', () => {
  const cases: readonly [string, object][] = [
    ['all that the model can say', { max_tokens: 16_384 }],
    ['128,000 tokens of a newer model', { model: 'gpt-5.4', max_completion_tokens: 128_000 }],
    ['a temperature of a model that may leave out to think', { model: 'gpt-5.1', temperature: 0.2 }],
    ['a verbosity', { model: 'gpt-5', verbosity: 'low', reasoning_effort: 'minimal' }],
    ['a search', { model: 'gpt-4o-search-preview', web_search_options: { search_context_size: 'low' } }],
    ['a prediction', { prediction: { type: 'content', content: 'hello there' } }],
    [
      'caching',
      {
        prompt_cache_key: null,
        prompt_cache_retention: '24h',
        prompt_cache_options: { mode: 'explicit', ttl: '30m' },
        safety_identifier: null,
      },
    ],
    ['moderation', { moderation: { input: {}, output: {} } }],
    ['an image as it is', { messages: pictured('original') }],
    [
      'a strict answer',
      { response_format: jsonSchema(closed({ a: { type: 'array', items: closed({ default: { type: 'string' } }) } })) },
    ],
    [
      'an answer with optional properties that need not be strict',
      { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: optionalWithin } } },
    ],
    [
      'an allowed tool',
      {
        tools: [weather],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named('get_weather')] } },
      },
    ],
    [
      'a tool with a grammar',
      { tools: [customTool({ type: 'grammar', grammar: { definition: 'start: "a"', syntax: 'lark' } })] },
    ],
  ]

  it.each(cases)('%s', async (_name, change) => {
    const response = await post({ ...good, ...change })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('chat.completion')])
  })

  it.each(['gpt-5.2-pro', 'gpt-5.1-codex', 'o4-mini-deep-research-2025-06-26'])(
    'no model of another endpoint: %s',
    async (model) => {
      const response = await post({ ...good, model })
      expect([response.status, await response.text()]).toEqual([
        404,
        expect.stringContaining('only supported in v1/resp'),
      ])
    },
  )
})

describe('the official SDK against the P1 chat simulator', () => {
  it('gets a complete answer with usage and a request id', async () => {
    const completion = await lab.client.chat.completions.create({ model: 'gpt-4o-mini', messages: hello })
    expect(completion.choices[0]?.message.content).toBe('You said: hello there')
    expect(completion.model).toBe('gpt-4o-mini-2024-07-18')
    expect(completion.usage?.total_tokens).toBe(
      (completion.usage?.prompt_tokens ?? 0) + (completion.usage?.completion_tokens ?? 0),
    )
    expect(completion._request_id).toMatch(/^req_[0-9a-f]{32}$/)
  })

  it('assembles a streamed answer with its helper', async () => {
    const stream = lab.client.chat.completions.stream({
      model: 'gpt-4o-mini',
      messages: hello,
      n: 2,
      stream_options: { include_usage: true },
    })
    const final = await stream.finalChatCompletion()
    expect(final.choices.map((choice) => choice.message.content)).toEqual(Array(2).fill('You said: hello there'))
    expect(final.usage?.completion_tokens).toBe(8)
  })

  it.each([true, false])('runs tools to the end, streaming %p', async (stream) => {
    const asked: string[] = []
    const tool: RunnableToolFunctionWithParse<{ city: string }> = {
      type: 'function',
      function: {
        ...weather.function,
        description: 'Weather by city',
        parse: (text) => JSON.parse(text) as { city: string },
        function: ({ city }) => {
          asked.push(city)
          return 'sunny, 21 degrees'
        },
      },
    }
    const messages = [{ role: 'user' as const, content: 'Weather?' }]
    const runner = stream
      ? lab.client.chat.completions.runTools({ model: 'gpt-4o-mini', messages, tools: [tool], stream: true })
      : lab.client.chat.completions.runTools({ model: 'gpt-4o-mini', messages, tools: [tool] })
    expect(await runner.finalContent()).toBe('The tools answered: sunny, 21 degrees')
    expect(asked).toEqual(['Paris'])
  })

  it('hears audio, answers with audio, and accepts a reference to it', async () => {
    const data = Buffer.concat([Buffer.from('RIFF'), Buffer.alloc(998)]).toString('base64')
    const question = {
      role: 'user' as const,
      content: [{ type: 'input_audio' as const, input_audio: { data, format: 'wav' as const } }],
    }
    const options = {
      model: 'gpt-audio-1.5',
      modalities: ['text' as const, 'audio' as const],
      audio: { voice: 'alloy' as const, format: 'wav' as const },
    }
    const first = await lab.client.chat.completions.create({ ...options, messages: [question] })
    const audio = first.choices[0]?.message.audio
    expect(audio?.transcript).toBe('You said nothing. I heard wav audio of 1002 bytes.')
    expect(
      Buffer.from(audio?.data ?? '', 'base64')
        .subarray(0, 4)
        .toString(),
    ).toBe('RIFF')
    expect((audio?.expires_at ?? 0) - first.created).toBeGreaterThanOrEqual(3600)
    const usage = first.usage
    expect(usage?.completion_tokens_details).toHaveProperty('text_tokens', 10)
    const id = audio?.id ?? ''
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      question,
      { role: 'assistant' as const, audio: { id } },
      ...hello,
    ]
    await expect(lab.client.chat.completions.create({ ...options, messages })).resolves.toBeDefined()
    const wrong: OpenAI.ChatCompletionMessageParam[] = [
      question,
      { role: 'assistant' as const, audio: { id: 'audio_other' } },
      ...hello,
    ]
    await expect(lab.client.chat.completions.create({ ...options, messages: wrong })).rejects.toMatchObject({
      status: 400,
    })
  })

  it.each([
    [{ model: 'missing-model' }, OpenAI.NotFoundError, { code: 'model_not_found', param: null }],
    [{ temperature: 3 }, OpenAI.BadRequestError, { code: 'decimal_above_max_value', param: 'temperature' }],
    [{ messages: [{ role: 'user' as const, content: '#403' }] }, OpenAI.PermissionDeniedError, {}],
    [{ messages: [{ role: 'user' as const, content: '#422' }] }, OpenAI.UnprocessableEntityError, {}],
    [
      { messages: [{ role: 'user' as const, content: '#429' }] },
      OpenAI.RateLimitError,
      { code: 'rate_limit_exceeded' },
    ],
    [{ messages: [{ role: 'user' as const, content: '#500' }] }, OpenAI.InternalServerError, { type: 'server_error' }],
  ])('raises the right class for %j', async (change, errorClass, properties) => {
    const failing = lab.client.chat.completions.create({ model: 'gpt-4o-mini', messages: hello, ...change })
    const error: unknown = await failing.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(errorClass)
    expect(error).toMatchObject({ ...properties, requestID: expect.stringMatching(/^req_/) as unknown })
  })

  it('raises AuthenticationError with a masked key for a wrong key', async () => {
    const stranger = new OpenAI({ apiKey: 'sk-abcdefyz', baseURL: `${lab.simulator.url}/v1`, maxRetries: 0 })
    await expect(stranger.models.list()).rejects.toMatchObject({
      constructor: OpenAI.AuthenticationError,
      code: 'invalid_api_key',
      error: {
        message: expect.stringMatching(/^Incorrect API key provided: sk-ab\*\*\*yz\. You can find/) as unknown,
      },
    })
  })

  it('throws from its iterator on an error frame', async () => {
    const stream = await lab.client.chat.completions.create({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: '#errorframe a b c' }],
      stream: true,
    })
    const read = async (): Promise<void> => {
      for await (const chunk of stream) expect(chunk.choices).toHaveLength(1)
    }
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError)
  })

  it('lists models', async () => {
    const ids = (await lab.client.models.list()).data.map((model) => model.id)
    expect(ids).toContain('gpt-4o-mini')
    expect((await lab.client.models.retrieve('tts-1')).id).toBe('tts-1')
  })
})

describe('the wire format of chat', () => {
  it('prints bodies with two-space indent and its own headers', async () => {
    const response = await post({ model: 'gpt-4o-mini', messages: hello })
    expect(await response.text()).toMatch(/^\{\n {2}"id": "chatcmpl-[\w-]+",\n {2}"object": "chat.completion",\n/)
    for (const name of ['openai-organization', 'set-cookie', 'openai-processing-ms', 'x-ratelimit-reset-tokens']) {
      expect(response.headers.get(name)).not.toBeNull()
    }
    expect(lab.simulator.violations).toEqual([])
  })

  it('repeats one envelope in every chunk and sends no usage unless asked', async () => {
    const frames = await framesOf({ model: 'gpt-4o-mini', messages: hello })
    expect(new Set(frames.map((frame) => [frame['id'], frame['created'], frame['model']].join())).size).toBe(1)
    expect(frames.every((frame) => !('usage' in frame) && 'obfuscation' in frame)).toBe(true)
    expect(frames[0]?.['choices']).toEqual([
      { index: 0, delta: { role: 'assistant', content: '', refusal: null }, logprobs: null, finish_reason: null },
    ])
    expect(frames.at(-1)?.['choices']).toEqual([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }])
  })

  it('sends usage null in each chunk and the totals in an extra one when asked', async () => {
    const frames = await framesOf({
      model: 'gpt-4o-mini',
      messages: hello,
      stream_options: { include_usage: true, include_obfuscation: false },
    })
    expect(frames.slice(0, -1).every((frame) => frame['usage'] === null)).toBe(true)
    expect(frames.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 4 } })
    expect(frames.every((frame) => !('obfuscation' in frame))).toBe(true)
  })

  it('streams tool calls: opening with empty arguments, pieces by index, then finish_reason', async () => {
    const frames = await framesOf({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'call get_weather and get_time' }],
      tools: [weather, { type: 'function', function: { name: 'get_time' } }],
    })
    const deltas = frames.map((frame) => (frame['choices'] as { delta: Record<string, unknown> }[])[0]?.delta ?? {})
    const calls = deltas.flatMap(
      (delta) => (delta['tool_calls'] ?? []) as { index: number; id?: string; function: { arguments: string } }[],
    )
    const opened = calls.filter((call) => call.id !== undefined)
    expect(opened.map((call) => call.function)).toEqual([
      { name: 'get_weather', arguments: '' },
      { name: 'get_time', arguments: '' },
    ])
    const joined = calls.filter((call) => call.index === 0).map((call) => call.function.arguments)
    expect(joined.join('')).toBe('{"city":"Paris"}')
    expect(frames.at(-1)).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }] })
  })

  it('streams spoken answers in the recorded order, without any finish_reason stop', async () => {
    const frames = await framesOf({
      model: 'gpt-audio-1.5',
      modalities: ['text', 'audio'],
      audio: { voice: 'alloy', format: 'pcm16' },
      messages: hello,
      stream_options: { include_usage: true },
    })
    const kinds = frames.map((frame) => {
      const choices = frame['choices'] as { delta?: { role?: string; audio?: object } }[] | undefined
      if (choices === undefined) return 'filler'
      if (choices.length === 0) return 'usage'
      return choices[0]?.delta?.role ?? Object.keys(choices[0]?.delta?.audio ?? {}).join('+')
    })
    const order = kinds.filter((kind, index) => kind !== kinds[index - 1])
    expect(order.slice(0, 3)).toEqual(['assistant', 'id+transcript', 'filler'])
    expect(order.slice(-4)).toEqual(['assistant', 'data', 'usage', 'expires_at'])
    expect(JSON.stringify(frames)).not.toContain('"finish_reason":"stop"')
  })

  it('ends with length at max_tokens and with stop at a stop sequence', async () => {
    const limited = await lab.client.chat.completions.create({
      model: 'gpt-4o',
      messages: hello,
      max_completion_tokens: 2,
    })
    expect(limited.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'You said:' } })
    const stopped = await lab.client.chat.completions.create({ model: 'gpt-4o', messages: hello, stop: ['hello'] })
    expect(stopped.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'You said: ' } })
  })

  it('refuses, or is filtered, where the text asks for it', async () => {
    const choiceOf = async (content: string): Promise<unknown> => {
      const asked = { model: 'gpt-4o', messages: [{ role: 'user' as const, content }] }
      return (await lab.client.chat.completions.create(asked)).choices[0]
    }
    expect(await choiceOf('#refuse')).toMatchObject({
      finish_reason: 'stop',
      message: { content: null, refusal: 'I cannot help with that.' },
    })
    expect(await choiceOf('#filter #words=9')).toMatchObject({
      finish_reason: 'content_filter',
      message: { content: 'word1 word2 word3', refusal: null },
    })
  })

  it('calls one function where the request offers functions of the older form', async () => {
    const asked = {
      model: 'gpt-4o',
      messages: [{ role: 'user' as const, content: 'Call f and g' }],
      functions: [{ name: 'f' }, { name: 'g' }],
    }
    const { choices } = await lab.client.chat.completions.create(asked)
    const message = { content: null, function_call: { name: 'f', arguments: '{}' } }
    expect(choices[0]).toMatchObject({ finish_reason: 'function_call', message })
    const frames = await framesOf(asked)
    expect(JSON.stringify(frames)).toContain('"delta":{"function_call":{"name":"f","arguments":""}}')
  })

  it('makes as many chunks or words as the magic text says', async () => {
    const frames = await framesOf({ model: 'gpt-4o', messages: [{ role: 'user', content: '#chunks=500' }] })
    expect(frames).toHaveLength(502)
    const words = await lab.client.chat.completions.create({
      model: 'gpt-4o',
      messages: [{ role: 'user', content: '#words=700' }],
    })
    expect(words.choices[0]?.message.content?.split(' ')).toHaveLength(700)
  })
})

const ask = { model: 'o4-mini', messages: [{ role: 'user' as const, content: '#chunks=5' }] }
const details = (tokens: number): object => ({ completion_tokens_details: { reasoning_tokens: tokens } })

describe('a model that thinks', () => {
  it.each([
    ['minimal', 'gpt-5', 64],
    ['low', 'o4-mini', 128],
    ['medium', 'o4-mini', 256],
    ['high', 'o4-mini', 512],
    ['xhigh', 'gpt-5.2', 1024],
    ['max', 'gpt-5.6-sol', 2048],
  ] as const)('thinks as much as an effort of %s asks %s for', async (effort, model, tokens) => {
    const { usage } = await lab.client.chat.completions.create({ ...ask, model, reasoning_effort: effort })
    expect(usage).toMatchObject({ completion_tokens: tokens + 5, ...details(tokens) })
    expect(usage?.total_tokens).toBe((usage?.prompt_tokens ?? 0) + tokens + 5)
  })

  it.each([
    ['gpt-5.4', undefined, 200],
    ['gpt-5.4', 'none', 200],
    ['gpt-5.4-mini', 'low', 400],
    ['gpt-5.5', undefined, 400],
    ['gpt-5.6-luna', 'none', 200],
    ['gpt-5.2', 'high', 200],
  ])(
    'is given functions only where it is kept from thinking, from GPT-5.4 on: %s with %s',
    async (model, effort, status) => {
      const response = await post({ ...ask, model, tools: [weather], reasoning_effort: effort })
      expect(response.status).toBe(status)
      const text = await response.text()
      if (status === 400)
        expect(text).toContain(`Function tools with reasoning_effort are not supported for ${model} in`)
    },
  )

  it.each([
    ['words', {}],
    ['calls', { tools: [weather] }],
  ])('shows what it thinks before %s, whole and streamed, where servers of open models do', async (_name, fields) => {
    const request = { model: 'open-thinker', messages: ask.messages, ...fields }
    const whole = await lab.client.chat.completions.create(request)
    const thought = 'The user says: #chunks=5 Let me think what to do.'
    expect(whole.choices[0]?.message).toMatchObject({ reasoning_content: thought })
    expect(whole.usage).toMatchObject(details(10))
    const frames = await framesOf(request)
    const deltas = frames.map((frame) => (frame['choices'] as { delta: Record<string, unknown> }[])[0]?.delta ?? {})
    const shown = deltas.map(({ reasoning_content: text }) => (typeof text === 'string' ? text : ''))
    expect(shown.join('')).toBe(thought)
    expect(deltas[0]).toHaveProperty('role')
  })

  it('has no Responses API there, takes any sampling, and its own thoughts back as text alone', async () => {
    const model = 'open-thinker'
    await expect(lab.client.responses.create({ model, input: 'Hi' })).rejects.toMatchObject({ status: 404 })
    const said = (reasoning_content: unknown): object => ({ role: 'assistant', content: 'Hi', reasoning_content })
    const messages = [...ask.messages, said('I think so.'), ...ask.messages]
    expect((await post({ model, messages, temperature: 0.2, max_tokens: 100 })).status).toBe(200)
    const refused = await post({ model, messages: [...ask.messages, said(1), ...ask.messages] })
    expect(await refused.text()).toContain("Invalid type for 'messages[1].reasoning_content'")
  })

  it('thinks for each choice, and says so at the end of a stream too', async () => {
    const frames = await lab.framesOf({
      ...ask,
      reasoning_effort: 'low',
      n: 2,
      stream_options: { include_usage: true },
    })
    expect(frames.at(-1)).toMatchObject({ usage: { completion_tokens: 2 * (128 + 5), ...details(256) } })
    // The thoughts themselves are never shown.
    expect(JSON.stringify(frames)).not.toMatch(/reasoning_content/)
  })

  it('has as many words left as its thoughts leave of the limit', async () => {
    const limited = { ...ask, reasoning_effort: 'low' as const }
    const some = await lab.client.chat.completions.create({ ...limited, max_completion_tokens: 130 })
    expect(some.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'piece1 piece2' } })
    const none = await lab.client.chat.completions.create({ ...limited, max_completion_tokens: 100 })
    expect(none.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: '' } })
    expect(none.usage).toMatchObject({ completion_tokens: 100, ...details(100) })
  })

  it.each([
    ['without being asked', ask],
    ['with an effort of none', { ...ask, model: 'gpt-5.1', reasoning_effort: 'none' as const }],
    ['where the model cannot', { ...ask, model: 'gpt-4o-mini' }],
  ])('does not %s', async (_when, body) => {
    expect((await lab.client.chat.completions.create(body)).usage).toMatchObject({
      completion_tokens: 5,
      ...details(0),
    })
  })
})
