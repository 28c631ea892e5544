import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { ResponsesSimulatorLab, weather } from '../../test/chat-simulator-labs.js'

const lab = new ResponsesSimulatorLab()

beforeAll(() => lab.start())
afterAll(() => lab.close())

const good = { model: 'gpt-4o-mini', input: 'hello there' }
const tool = { type: 'function', ...weather.function }
const question = { role: 'user', content: 'hello there' }
const call = { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }
const result = { type: 'function_call_output', call_id: 'call_1', output: 'x' }
const thought = { type: 'reasoning', summary: [], encrypted_content: 'gAAAAABnonsense' }
const saying = (...content: object[]): object => ({ input: [{ role: 'user', content }] })
const format = (value: object): object => ({ text: { format: value } })
const open = { type: 'object', properties: {} }
const optionalWithin = {
  type: 'object',
  properties: {
    a: { type: 'array', items: { type: 'object', properties: { b: { type: 'string' } }, additionalProperties: false } },
  },
  required: ['a'],
  additionalProperties: false,
}

type Case = readonly [string, object, number, string | null, string | null, RegExp]
const bad = (name: string, change: object, param: string | null, code: string | null, message: RegExp): Case => [
  name,
  change,
  400,
  param,
  code,
  message,
]

const fields: readonly Case[] = [
  bad(
    'no model',
    { model: undefined },
    'model',
    'missing_required_parameter',
    /^Missing required parameter: 'model'\.$/,
  ),
  bad(
    'no input',
    { input: undefined },
    'input',
    'missing_required_parameter',
    /^One of "input" or "previous_response_id"/,
  ),
  bad('an unknown field', { foo: 1 }, 'foo', 'unknown_parameter', /^Unknown parameter: 'foo'\.$/),
  bad(
    'a field of chat that has moved',
    { max_tokens: 20 },
    'max_tokens',
    'unsupported_parameter',
    /has moved to 'max_output_tokens'/,
  ),
  bad('messages', { messages: [question] }, 'messages', 'unsupported_parameter', /has moved to 'input'/),
  bad(
    'too few tokens',
    { max_output_tokens: 15 },
    'max_output_tokens',
    'integer_below_min_value',
    /Expected a value >= 16, but got 15 instead/,
  ),
  bad(
    'more than the model can say',
    { max_output_tokens: 16_385 },
    'max_output_tokens',
    'invalid_value',
    /at most 16384 output tokens/,
  ),
  bad(
    'stream options of chat',
    { stream: true, stream_options: { include_usage: true } },
    'stream_options.include_usage',
    'unknown_parameter',
    /^Unknown parameter/,
  ),
  bad(
    'stream options without stream',
    { stream_options: {} },
    'stream_options',
    null,
    /only allowed when 'stream' is enabled/,
  ),
  bad(
    'an unknown inclusion',
    { include: ['usage'] },
    'include[0]',
    'invalid_value',
    /^Invalid value: 'usage'\. Supported values are:/,
  ),
  bad('a tier of chat', { service_tier: 'fast' }, 'service_tier', 'invalid_value', /^Invalid value: 'fast'/),
  bad('another truncation', { truncation: 'start' }, 'truncation', 'invalid_value', /^Invalid value: 'start'/),
  bad(
    'too much metadata',
    { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, 'v'])) },
    'metadata',
    'object_above_max_properties',
    /too many properties/,
  ),
  bad(
    'the background without store',
    { background: true, store: false },
    'background',
    'invalid_value',
    /requires 'store' to be true/,
  ),
  bad(
    'an unknown previous response',
    { previous_response_id: 'resp_1' },
    'previous_response_id',
    'previous_response_not_found',
    /^Previous response with id 'resp_1' not found\.$/,
  ),
  bad(
    'two ways to continue',
    { previous_response_id: 'resp_1', conversation: 'conv_1' },
    null,
    'mutually_exclusive_parameters',
    /^Mutually exclusive parameters/,
  ),
  [
    'an unknown conversation',
    { conversation: { id: 'conv_1' } },
    404,
    'conversation',
    null,
    /^Conversation with id 'conv_1' not found\.$/,
  ],
  ['an unknown prompt', { prompt: { id: 'pmpt_1' } }, 404, 'prompt.id', null, /^Prompt with id 'pmpt_1' not found\.$/],
]

const models: readonly Case[] = [
  ['an unknown model', { model: 'missing-model' }, 404, null, 'model_not_found', /does not exist/],
  ['a model for vectors', { model: 'text-embedding-3-small' }, 404, null, 'model_not_found', /does not exist/],
  ['a model that speaks', { model: 'tts-1' }, 404, null, 'model_not_found', /does not exist/],
  bad('a model that talks in chat', { model: 'gpt-audio' }, 'model', null, /cannot be used with the Responses API/),
  bad(
    'an effort of a model that does not think',
    { reasoning: { effort: 'low' } },
    'reasoning.effort',
    'unsupported_parameter',
    /^Unsupported parameter: 'reasoning\.effort'/,
  ),
  bad(
    'an effort that the model does not know',
    { model: 'gpt-5-pro', reasoning: { effort: 'low' } },
    'reasoning.effort',
    'unsupported_value',
    /^Unsupported value: 'low' is not supported with the 'gpt-5-pro' model\. Supported values are: 'high'\.$/,
  ),
  bad(
    'an effort by its name in chat',
    { model: 'gpt-5', reasoning_effort: 'low' },
    'reasoning_effort',
    'unsupported_parameter',
    /has moved to 'reasoning\.effort'/,
  ),
  bad(
    'an unknown summary',
    { model: 'gpt-5', reasoning: { summary: 'long' } },
    'reasoning.summary',
    'invalid_value',
    /^Invalid value: 'long'/,
  ),
  bad(
    'temperature of a model that thinks',
    { model: 'gpt-5', temperature: 0.5 },
    'temperature',
    'unsupported_parameter',
    /not supported with this model/,
  ),
  bad(
    'encrypted thoughts of a model that has none',
    { include: ['reasoning.encrypted_content'] },
    'include',
    null,
    /^Encrypted content is not supported with this model\.$/,
  ),
  bad('too long', { input: 'word '.repeat(110_000) }, 'input', 'context_length_exceeded', /exceeds the context window/),
]

const tools: readonly Case[] = [
  bad(
    'a tool as chat writes it',
    { tools: [weather] },
    'tools[0].name',
    'missing_required_parameter',
    /^Missing required parameter: 'tools\[0\]\.name'\.$/,
  ),
  bad(
    'a field that no function has',
    { tools: [{ ...tool, foo: 1 }] },
    'tools[0].foo',
    'unknown_parameter',
    /^Unknown parameter/,
  ),
  bad(
    'a tool of an unknown type',
    { tools: [{ type: 'magic' }] },
    'tools[0].type',
    'invalid_value',
    /^Invalid value: 'magic'/,
  ),
  bad(
    'a strict tool that is not closed',
    { tools: [{ ...tool, strict: true }] },
    'tools[0].parameters',
    'invalid_function_parameters',
    /'additionalProperties' is required/,
  ),
  bad(
    'a strict tool with an optional property within',
    { tools: [{ ...tool, strict: true, parameters: optionalWithin }] },
    'tools[0].parameters',
    'invalid_function_parameters',
    /In context=\('properties', 'a', 'items'\), 'required' is required .* Missing 'b'\.$/,
  ),
  bad(
    'a grammar of an unknown kind',
    { tools: [{ type: 'custom', name: 'f', format: { type: 'grammar', definition: 'a', syntax: 'ebnf' } }] },
    'tools[0].format.syntax',
    'invalid_value',
    /^Invalid value: 'ebnf'/,
  ),
  bad('a choice without tools', { tool_choice: 'required' }, 'tool_choice', null, /must be specified with 'tools'/),
  bad(
    'a choice that is not there',
    { tools: [tool], tool_choice: { type: 'function', name: 'get_time' } },
    'tool_choice',
    null,
    /^Tool choice 'get_time' not found/,
  ),
  bad(
    'a choice as chat writes it',
    { tools: [tool], tool_choice: { type: 'function', function: { name: 'get_weather' } } },
    'tool_choice.name',
    'missing_required_parameter',
    /^Missing/,
  ),
  bad(
    'a strict answer that is not closed',
    format({ type: 'json_schema', name: 'a', strict: true, schema: open }),
    'text.format.schema',
    'invalid_json_schema',
    /^Invalid schema for response_format 'a'/,
  ),
  bad(
    'a strict answer with an optional property within',
    format({ type: 'json_schema', name: 'a', strict: true, schema: optionalWithin }),
    'text.format.schema',
    'invalid_json_schema',
    /^Invalid schema for response_format 'a': In context=\('properties', 'a', 'items'\), 'required' is .* Missing 'b'\.$/,
  ),
  bad(
    'a schema as chat writes it',
    format({ type: 'json_schema', json_schema: {} }),
    'text.format.name',
    'missing_required_parameter',
    /^Missing/,
  ),
  bad(
    'JSON that is not spoken of',
    format({ type: 'json_object' }),
    'input',
    null,
    /must contain the word 'json' in some form to use 'text\.format'/,
  ),
]

const items: readonly Case[] = [
  bad('a number as input', { input: 1 }, 'input', 'invalid_type', /expected one of a string or array of input items/),
  bad(
    'a part of chat',
    saying({ type: 'text', text: 'x' }),
    'input[0].content[0].type',
    'invalid_value',
    /^Invalid value: 'text'\. Supported values are: 'input_text'/,
  ),
  bad(
    'a picture as chat writes it',
    saying({ type: 'input_image', image_url: { url: 'x' } }),
    'input[0].content[0].image_url',
    'invalid_type',
    /expected a string/,
  ),
  bad(
    'a picture that is no URL',
    saying({ type: 'input_image', image_url: 'x' }),
    'input[0].content[0].image_url',
    'invalid_value',
    /Expected a valid URL/,
  ),
  bad(
    'a file that is nowhere',
    saying({ type: 'input_file', filename: 'x' }),
    'input[0].content[0].file_data',
    'missing_required_parameter',
    /^Missing/,
  ),
  bad(
    'words of the model as input text',
    { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }] },
    'input[0].content[0].type',
    'invalid_value',
    /'output_text' and 'refusal'/,
  ),
  bad(
    'a tool message',
    { input: [{ role: 'tool', content: 'x' }] },
    'input[0].role',
    'invalid_value',
    /^Invalid value: 'tool'/,
  ),
  bad(
    'an item of an unknown type',
    { input: [{ type: 'magic' }] },
    'input[0].type',
    'invalid_value',
    /^Invalid value: 'magic'/,
  ),
  bad(
    'the id of another kind',
    { input: [{ ...call, id: 'call_1' }, result] },
    'input[0].id',
    'invalid_value',
    /Expected an ID that begins with 'fc'/,
  ),
  bad(
    'arguments that are no text',
    { input: [{ ...call, arguments: {} }, result] },
    'input[0].arguments',
    'invalid_type',
    /expected a string, but got an object/,
  ),
  bad(
    'a call without output',
    { input: [question, call] },
    'input',
    null,
    /^No tool output found for function call call_1\.$/,
  ),
  bad(
    'an output without call',
    { input: [question, result] },
    'input',
    null,
    /^No tool call found for function call output with call_id call_1\.$/,
  ),
  bad('an output before its call', { input: [result, call] }, 'input', null, /^No tool call found/),
  bad(
    'a custom call without output',
    { input: [{ type: 'custom_tool_call', call_id: 'call_2', name: 'f', input: '' }] },
    'input',
    null,
    /^No tool output found for custom tool call call_2\.$/,
  ),
  bad(
    'an empty call id',
    { input: [{ ...call, call_id: '' }] },
    'input[0].call_id',
    'empty_string',
    /^Invalid 'input\[0\]\.call_id': empty string/,
  ),
  bad(
    'an item twice',
    {
      input: [
        { ...question, id: 'msg_1' },
        { ...question, id: 'msg_1' },
      ],
    },
    'input',
    null,
    /^Duplicate item found with id msg_1\./,
  ),
  bad(
    'forged thoughts',
    { input: [thought, { role: 'assistant', content: 'x' }] },
    null,
    'invalid_encrypted_content',
    /^The encrypted content gAAA\.\.\.ense could not be verified\./,
  ),
  bad(
    'thoughts without what followed',
    { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }, question] },
    'input',
    null,
    /^Item 'rs_1' of type 'reasoning' was provided without its required following item\.$/,
  ),
  bad(
    'thoughts without a summary',
    { input: [{ type: 'reasoning', id: 'rs_1' }] },
    'input[0].summary',
    'missing_required_parameter',
    /^Missing/,
  ),
  ['an unknown reference', { input: [{ id: 'msg_1' }] }, 404, 'input', null, /^Item with id 'msg_1' not found\.$/],
  [
    'thoughts that were not kept',
    {
      store: false,
      input: [
        { type: 'reasoning', id: 'rs_1', summary: [] },
        { role: 'assistant', content: 'x' },
      ],
    },
    404,
    'input',
    null,
    /^Item with id 'rs_1' not found\. Items are not persisted when `store` is set to false\./,
  ],
]

describe('what the simulator of responses refuses', () => {
  it.each([...fields, ...models, ...tools, ...items])('%s', async (_name, change, status, param, code, message) => {
    const response = await lab.send('', { ...good, ...change })
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(error['message']).toMatch(message)
    expect(error).toMatchObject({ type: 'invalid_request_error', param, code })
    expect(response.status).toBe(status)
  })

  it('a call that is sent back without its thoughts', async () => {
    const { output } = await lab.client.responses.create({
      ...good,
      model: 'gpt-5',
      tools: [{ ...tool, type: 'function', strict: false }],
    })
    const made = output[1] as unknown as typeof call
    const response = await lab.send('', { ...good, input: [question, made, { ...result, call_id: made.call_id }] })
    expect(response.status).toBe(400)
    expect(await response.text()).toMatch(
      /of type 'function_call' was provided without its required 'reasoning' item: 'rs_/,
    )
  })

  it('fields of a response in a count, wrong methods and other paths', async () => {
    expect((await lab.send('/input_tokens', { ...good, stream: true })).status).toBe(400)
    expect((await lab.send('', undefined, 'GET')).status).toBe(405)
    expect((await lab.send('/resp_1/nothing')).status).toBe(404)
  })
})

describe('what it accepts beside that', () => {
  it.each<[string, object]>([
    [
      'null wherever it is allowed',
      {
        instructions: null,
        max_output_tokens: null,
        reasoning: null,
        store: null,
        stream: null,
        tools: null,
        user: null,
        temperature: null,
        metadata: null,
        include: null,
        previous_response_id: null,
        conversation: null,
      },
    ],
    [
      'all that is said about caching and safety',
      {
        user: 'u',
        safety_identifier: 's',
        prompt_cache_key: 'k',
        prompt_cache_retention: '24h',
        prompt_cache_options: { mode: 'explicit', ttl: '30m' },
        service_tier: 'flex',
      },
    ],
    [
      'pictures and files',
      saying(
        { type: 'input_text', text: 'x' },
        { type: 'input_image', detail: 'original', image_url: 'https://example.com/kite.png' },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
      ),
    ],
    [
      'a picture as the output of a call',
      { input: [call, { ...result, output: [{ type: 'input_image', image_url: 'data:image/png;base64,AA==' }] }] },
    ],
    ['something between a call and its output', { input: [call, question, result] }],
    [
      'words of the model',
      {
        input: [
          {
            type: 'message',
            role: 'assistant',
            id: 'msg_1',
            status: 'completed',
            content: [{ type: 'output_text', text: 'x', annotations: [] }],
          },
          question,
        ],
      },
    ],
    [
      'a search of the past',
      {
        input: [
          { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'x' } },
          question,
        ],
      },
    ],
    [
      'hosted tools',
      {
        tools: [{ type: 'web_search' }, { type: 'mcp', server_label: 'a', server_url: 'https://example.com' }],
        tool_choice: { type: 'mcp', server_label: 'a' },
      },
    ],
    [
      'a tool that may be called',
      {
        tools: [tool],
        tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'get_weather' }] },
      },
    ],
    ['a temperature of a model that may leave out to think', { model: 'gpt-5.1', temperature: 0.2 }],
    ['too long, when it may be cut', { input: 'word '.repeat(110_000), truncation: 'auto' }],
    ['JSON', { ...format({ type: 'json_object' }), instructions: 'Answer in JSON.' }],
    [
      'a model of this endpoint alone',
      { model: 'gpt-5.2-pro', reasoning: { effort: 'xhigh' }, text: { verbosity: 'low' } },
    ],
  ])('%s', async (_name, change) => {
    const response = await lab.send('', { ...good, ...change })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"status": "completed"')])
  })
})
