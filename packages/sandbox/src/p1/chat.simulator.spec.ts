import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { ChatSimulatorLab, hello, weather } from '../../test/chat-simulator-lab.js'

const lab = new ChatSimulatorLab()
const { post } = lab

beforeAll(() => lab.start())
afterEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

describe('what chat refuses', () => {
  const good = { model: 'gpt-4o-mini', messages: hello }
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const cases: readonly [string, object, string | null, string | null, RegExp][] = [
    ['no model', { messages: hello }, null, null, /^you must provide a model parameter$/],
    [
      'no messages',
      { model: 'x' },
      'messages',
      'missing_required_parameter',
      /^Missing required parameter: 'messages'\.$/,
    ],
    ['unknown field', { ...good, foo: 1 }, 'foo', 'unknown_parameter', /^Unknown parameter: 'foo'\.$/],
    [
      'wrong type',
      { ...good, temperature: 'hot' },
      'temperature',
      'invalid_type',
      /^Invalid type for 'temperature': expected a decimal, but got a string instead\.$/,
    ],
    [
      'out of range',
      { ...good, temperature: 3 },
      'temperature',
      'decimal_above_max_value',
      /^Invalid 'temperature': decimal above maximum value\. Expected a value <= 2, but got 3 instead\.$/,
    ],
    [
      'max_tokens to a reasoning model',
      { ...good, model: 'gpt-5', max_tokens: 5 },
      'max_tokens',
      'unsupported_parameter',
      /^Unsupported parameter: 'max_tokens' is not supported with this model\. Use 'max_completion_tokens' instead\.$/,
    ],
    [
      'streamed wav',
      { ...good, model: 'gpt-audio', modalities: ['audio'], audio: { voice: 'alloy', format: 'wav' }, stream: true },
      'audio.format',
      'unsupported_value',
      /^Unsupported value: 'audio\.format' does not support 'wav' when stream=true\. Supported values are: 'pcm16'\.$/,
    ],
    [
      'audio model, text only',
      { ...good, model: 'gpt-audio' },
      'model',
      'invalid_value',
      /^This model requires that either/,
    ],
    [
      'audio to a text model',
      {
        ...good,
        messages: [
          { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }] },
        ],
      },
      'messages[0]',
      'invalid_value',
      /^Invalid 'messages\[0\]'\. Content blocks are expected to be either text or image_url type\.$/,
    ],
    [
      'data URL as audio',
      {
        model: 'gpt-audio',
        messages: [
          {
            role: 'user',
            content: [{ type: 'input_audio', input_audio: { data: 'data:audio/wav;base64,UklGRg==', format: 'wav' } }],
          },
        ],
      },
      'messages[0].content[0].input_audio.data',
      'invalid_value',
      /without a data URL prefix/,
    ],
    [
      'tool calls without answers',
      { ...good, messages: [...hello, { role: 'assistant', content: null, tool_calls: [call] }, ...hello] },
      'messages.[2].role',
      null,
      /response messages: call_1$/,
    ],
    [
      'stray tool message',
      { ...good, messages: [...hello, { role: 'tool', tool_call_id: 'call_9', content: 'x' }] },
      'messages.[1].role',
      null,
      /^Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'\.$/,
    ],
    [
      'bad schema',
      { ...good, tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }] },
      'tools[0].function.parameters',
      'invalid_function_parameters',
      /^Invalid schema for function 'f':/,
    ],
    [
      'strict schema that is not closed',
      { ...good, tools: [{ type: 'function', function: { ...weather.function, strict: true } }] },
      'tools[0].function.parameters',
      'invalid_function_parameters',
      /'additionalProperties' is required/,
    ],
    [
      'too long',
      { ...good, messages: [{ role: 'user', content: 'word '.repeat(110_000) }] },
      'messages',
      'context_length_exceeded',
      /^This model's maximum context length is 128000 tokens\./,
    ],
    [
      'stream options without stream',
      { ...good, stream_options: {} },
      'stream_options',
      null,
      /only allowed when 'stream'/,
    ],
  ]

  it.each(cases)('%s', async (_name, body, param, code, message) => {
    const response = await post(body)
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
