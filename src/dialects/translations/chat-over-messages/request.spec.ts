import { describe, expect, it } from '@jest/globals'
import {
  allowed,
  called,
  formatOf,
  HELLO,
  partOf,
  PNG,
  refusalOf,
  result,
  tool,
  translation,
} from '../../../../test/support/chat-translation.js'
import { GatewayError } from '../../../core/errors.js'
import { CHAT_FIELDS } from './fields.js'

describe('a chat request for an upstream that speaks messages', () => {
  it('says the least that such an upstream needs', () => {
    const { json, approximated, dropped } = translation({})
    expect(json).toBe('{"model":"theirs","max_tokens":4000,"messages":[{"role":"user","content":"Hello"}]}')
    expect([approximated, dropped]).toEqual([undefined, undefined])
  })

  it.each([
    ['max_completion_tokens', { max_completion_tokens: 7 }, { max_tokens: 7 }],
    ['temperature', { temperature: 0.5 }, { temperature: 0.5 }],
    ['top_p', { top_p: 0.2 }, { top_p: 0.2 }],
    ['one stop', { stop: 'a' }, { stop_sequences: ['a'] }],
    ['stops', { stop: ['a', 'b'] }, { stop_sequences: ['a', 'b'] }],
    ['service_tier auto', { service_tier: 'auto' }, { service_tier: 'auto' }],
    ['service_tier default', { service_tier: 'default' }, { service_tier: 'standard_only' }],
    ['user', { user: 'u' }, { metadata: { user_id: 'u' } }],
    ['safety_identifier', { user: 'u', safety_identifier: 's' }, { metadata: { user_id: 's' } }],
    ['stream', { stream: true, stream_options: { include_usage: true, include_obfuscation: false } }, { stream: true }],
    [
      'a schema',
      formatOf({ type: 'object' }),
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
    ],
    ['text as the format', { response_format: { type: 'text' } }, {}],
    [
      'null within a format',
      formatOf({ type: 'object' }, { description: null, more: null }),
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
    ],
    ['no reasoning of a model with a budget', { reasoning_effort: 'none' }, {}],
    [
      'what is so anyway',
      {
        n: 1,
        logprobs: false,
        top_logprobs: 0,
        logit_bias: {},
        presence_penalty: 0,
        frequency_penalty: 0,
        modalities: ['text'],
        store: false,
        parallel_tool_calls: true,
      },
      {},
    ],
    [
      'null, as if it were not there',
      Object.fromEntries(
        Object.keys(CHAT_FIELDS)
          .filter((name) => !['model', 'messages', 'max_tokens'].includes(name))
          .map((name) => [name, null]),
      ),
      {},
    ],
  ])('translates %s without a word', (_name, fields, expected) => {
    const { sent, approximated, dropped } = translation(fields)
    const { model, messages, max_tokens: maximum, ...others } = sent
    expect({ model, messages, ...others, max_tokens: maximum }).toEqual({
      model: 'theirs',
      messages: HELLO,
      max_tokens: 4000,
      ...expected,
    })
    expect([approximated, dropped]).toEqual([undefined, undefined])
    expect(() => translation(fields, { isStrict: true })).not.toThrow()
  })

  it.each([
    ['audio', { audio: { voice: 'a', format: 'wav' } }, 'audio'],
    ['spoken answers', { modalities: ['text', 'audio'] }, 'modalities'],
    ['two choices', { n: 2 }, 'n'],
    ['logprobs', { logprobs: true }, 'logprobs'],
    ['top_logprobs', { top_logprobs: 1 }, 'top_logprobs'],
    ['logit_bias', { logit_bias: { 5: 1 } }, 'logit_bias'],
    ['presence_penalty', { presence_penalty: 0.1 }, 'presence_penalty'],
    ['frequency_penalty', { frequency_penalty: -1 }, 'frequency_penalty'],
    ['web search', { web_search_options: {} }, 'web_search_options'],
    ['moderation', { moderation: { model: 'm' } }, 'moderation'],
    ['service_tier flex', { service_tier: 'flex' }, 'service_tier'],
    ['service_tier scale', { service_tier: 'scale' }, 'service_tier'],
    ['service_tier priority', { service_tier: 'priority' }, 'service_tier'],
    ['a temperature above 1', { temperature: 1.1 }, 'temperature'],
    ['a stop of white space', { stop: ['a', '\n'] }, 'stop[1]'],
    ['json_object', { response_format: { type: 'json_object' } }, 'response_format.type'],
    [
      'a format without its schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      'response_format.json_schema.schema',
    ],
    ['an unknown type of tool', { tools: [tool('f'), { type: 'web_search' }] }, 'tools[1].type'],
    [
      'a grammar',
      { tools: [{ type: 'custom', custom: { name: 'c', format: { type: 'grammar', grammar: {} } } }] },
      'tools[0].custom.format',
    ],
    ['an unknown role', { messages: [{ role: 'critic', content: 'x' }] }, 'messages[0].role'],
    [
      'input_audio',
      partOf({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
      'messages[0].content[0].type',
    ],
    ['an unknown part', partOf({ type: 'video_url' }), 'messages[0].content[0].type'],
    [
      'an image of another type',
      partOf({ type: 'image_url', image_url: { url: 'data:image/bmp;base64,AAAA' } }),
      'messages[0].content[0].image_url.url',
    ],
    [
      'a file of another type',
      partOf({ type: 'file', file: { file_data: 'data:application/zip;base64,AAAA' } }),
      'messages[0].content[0].file.file_data',
    ],
    [
      'a text that is no UTF-8',
      partOf({ type: 'file', file: { file_data: 'data:text/plain;base64,/w==' } }),
      'messages[0].content[0].file.file_data',
    ],
    ['file_id', partOf({ type: 'file', file: { file_id: 'f' } }), 'messages[0].content[0].file.file_id'],
    [
      'what was spoken before',
      { messages: [...HELLO, { role: 'assistant', audio: { id: 'a' } }, ...HELLO] },
      'messages[1].audio',
    ],
    [
      'an unknown call',
      { messages: [...HELLO, { role: 'assistant', tool_calls: [{ id: 'a', type: 'x' }] }] },
      'messages[1].tool_calls[0].type',
    ],
    [
      'a call without its result',
      { messages: [...HELLO, { role: 'assistant', tool_calls: [called('a'), called('b')] }, result('a')] },
      'messages[1].tool_calls[1]',
    ],
    [
      'a result after other messages',
      { messages: [...HELLO, { role: 'assistant', tool_calls: [called('a')] }, ...HELLO, result('a')] },
      'messages[1].tool_calls[0]',
    ],
    ['a result without its call', { messages: [...HELLO, result('a')] }, 'messages[1].tool_call_id'],
    [
      'a second result',
      { messages: [...HELLO, { role: 'assistant', tool_calls: [called('a')] }, result('a'), result('a')] },
      'messages[3].tool_call_id',
    ],
    [
      'a result of a function that was not called',
      { messages: [...HELLO, { role: 'function', name: 'f', content: 'x' }] },
      'messages[1].name',
    ],
  ])('refuses %s before the upstream is called', (_name, fields, path) => {
    const { kind, message, details } = refusalOf(fields)
    expect([kind, details.code, details.param]).toEqual(['invalid_request', 'unsupported_value', path])
    expect(message).toContain(`'${path}'`)
  })

  it('names the call that lacks its result', () => {
    const messages = [...HELLO, { role: 'assistant', tool_calls: [called('call_7')] }]
    expect(refusalOf({ messages }).message).toContain("'call_7'")
  })

  it.each([
    ['seed', { seed: 1 }],
    ['prediction', { prediction: { type: 'content', content: 'x' } }],
    ['verbosity', { verbosity: 'low' }],
    ['metadata', { metadata: { a: 'b' } }],
    ['store', { store: true }],
    ['prompt_cache_key', { prompt_cache_key: 'k' }],
    ['prompt_cache_options', { prompt_cache_options: { mode: 'explicit' } }],
    ['prompt_cache_retention', { prompt_cache_retention: '24h' }],
    ['stream_options.include_obfuscation', { stream: true, stream_options: { include_obfuscation: true } }],
    ['stream_options.more', { stream: true, stream_options: { more: 1 } }],
    ['thinking', { thinking: { type: 'enabled' } }],
    ['messages[0].name', { messages: [{ role: 'user', name: 'n', content: 'x' }] }],
    ['messages[0].content[0].more', partOf({ type: 'text', text: 'x', more: 1 })],
    ['messages[0].content[0].image_url.detail', partOf({ type: 'image_url', image_url: { url: PNG, detail: 'high' } })],
    [
      'messages[0].content[0].prompt_cache_breakpoint',
      partOf({ type: 'text', text: 'x', prompt_cache_breakpoint: { mode: 'other' } }),
    ],
    ['tools[0].cache_control', { tools: [{ ...tool('f'), cache_control: {} }] }],
    ['tools[0].function.more', { tools: [{ type: 'function', function: { name: 'f', more: 1 } }] }],
    ['response_format.json_schema.description', formatOf({ type: 'object' }, { description: 'd' })],
  ])('drops the hint %s and says so, but not for a strict caller', (path, fields) => {
    const { dropped, approximated } = translation(fields)
    expect([dropped, approximated]).toEqual([path, undefined])
    const { details } = refusalOf(fields, { isStrict: true })
    expect([details.code, details.param]).toEqual(['unsupported_value', path])
  })

  it.each([
    ['max_completion_tokens', { max_tokens: null }, {}],
    ['reasoning_effort', { reasoning_effort: 'low' }, {}],
    ['reasoning_effort', { reasoning_effort: 'minimal' }, { thinking: 'adaptive' }],
    ['tool_choice', allowed('auto', 'f'), {}],
    ['messages[1].role', { messages: [...HELLO, { role: 'system', content: 'x' }, ...HELLO] }, {}],
    ['messages[0].role', { messages: [{ role: 'system', content: 'x' }] }, {}],
    ['messages[0]', { messages: [{ role: 'assistant', content: 'x' }, ...HELLO] }, {}],
    ['messages[1]', { messages: [...HELLO, { role: 'assistant', content: 'x' }] }, {}],
    [
      'messages[1].tool_calls[0].function.arguments',
      { messages: [...HELLO, { role: 'assistant', tool_calls: [called('a', 'no')] }, result('a')] },
      {},
    ],
  ] as const)(
    'keeps the meaning of %s in another form and says so, but not for a strict caller',
    (path, fields, facts) => {
      const { dropped, approximated } = translation(fields, { facts })
      expect([approximated, dropped]).toEqual([path, undefined])
      expect(refusalOf(fields, { facts, isStrict: true }).details.param).toBe(path)
    },
  )

  it('tells a strict caller without a maximum to send one', () => {
    expect(refusalOf({ max_tokens: null }, { isStrict: true }).message).toContain('Send max_completion_tokens, or ')
    expect(() => translation({ max_completion_tokens: 5 }, { isStrict: true })).not.toThrow()
  })

  it.each([
    [{ messages: [] }, 'messages'],
    [{ messages: ['x'] }, 'messages[0]'],
    [{ messages: [{ role: 'user', content: ['x'] }] }, 'messages[0].content[0]'],
    [partOf({ type: 'image_url', image_url: 'x' }), 'messages[0].content[0].image_url'],
    [{ messages: [...HELLO, { role: 'assistant', tool_calls: {} }] }, 'messages[1].tool_calls'],
    [{ messages: [...HELLO, { role: 'assistant', function_call: 'f' }] }, 'messages[1].function_call'],
    [{ max_completion_tokens: 0 }, 'max_completion_tokens'],
    [{ max_completion_tokens: '5' }, 'max_completion_tokens'],
    [{ top_p: '1' }, 'top_p'],
    [{ stop: 5 }, 'stop'],
    [{ stop: [5] }, 'stop[0]'],
    [{ user: 5 }, 'user'],
    [{ safety_identifier: 5 }, 'safety_identifier'],
    [{ reasoning_effort: 'most' }, 'reasoning_effort'],
    [{ response_format: 'text' }, 'response_format'],
    [{ functions: [5] }, 'functions[0]'],
    [{ tools: [{ type: 'function', function: { name: 'f', strict: 'yes' } }] }, 'tools[0].function.strict'],
    [{ tools: [tool('f')], tool_choice: 'some' }, 'tool_choice'],
    [{ tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'g' } } }, 'tool_choice'],
    [{ tools: [tool('f')], tool_choice: { type: 'mcp' } }, 'tool_choice.type'],
    [{ tool_choice: 'required' }, 'tool_choice'],
    [{ ...allowed('any', 'f') }, 'tool_choice.allowed_tools.mode'],
    [{ ...allowed('auto', 'g') }, 'tool_choice.allowed_tools.tools[0]'],
    [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
    [{ stream_options: true }, 'stream_options'],
  ])('names the field of a shape that no chat request has: %j', (fields, path) => {
    const { kind, details } = refusalOf(fields)
    expect([kind, details.code, details.param]).toEqual(['invalid_request', 'invalid_type', path])
  })

  it.each([
    [partOf({ type: 'text' }), 'messages[0].content[0].text'],
    [
      { messages: [...HELLO, { role: 'assistant', tool_calls: [{ type: 'function' }] }] },
      'messages[1].tool_calls[0].id',
    ],
    [
      { messages: [...HELLO, { role: 'assistant', tool_calls: [{ id: 'a', type: 'function' }] }] },
      'messages[1].tool_calls[0].function',
    ],
    [{ functions: [{}] }, 'functions[0].name'],
    [{ tools: [{ type: 'custom' }] }, 'tools[0].custom'],
  ])('names a field that is missing: %j', (fields, path) => {
    const { kind, details } = refusalOf(fields)
    expect([kind, details.code, details.param]).toEqual(['invalid_request', 'missing_required_parameter', path])
  })

  it.each([
    [partOf({ type: 'image_url', image_url: { url: 'file:///x' } }), 'messages[0].content[0].image_url.url'],
    [
      partOf({ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }),
      'messages[0].content[0].image_url.url',
    ],
    [partOf({ type: 'file', file: { file_data: 'JVBERi0=' } }), 'messages[0].content[0].file.file_data'],
  ])('asks for the data where it can be neither fetched nor read: %j', (fields, path) => {
    const { kind, details, message } = refusalOf(fields)
    expect([kind, details.code, details.param]).toEqual(['invalid_request', 'unsupported_value', path])
    expect(message).toContain('Send a data: URL with Base64.')
  })

  it('takes numbers as they are spelled, and keys in their order', () => {
    const json = `{"z":1.0,"a":[1e400,12345678901234567890],"2":-0,"1":"\\u00e9"}`
    const request = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},
      {"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":${JSON.stringify(json)}}}]},
      {"role":"tool","tool_call_id":"a","content":"ok"}],
      "tools":[{"type":"function","function":{"name":"f","parameters":{"properties":${json}}}}],
      "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":${json}}}}`
    const sent = translation(request).json
    expect(sent).toContain(`"input":${json}`)
    expect(sent).toContain(`"input_schema":{"type":"object","properties":${json}}`)
    expect(sent).toContain(`"schema":${json}`)
  })
})

describe('an error of the upstream', () => {
  const messages = [
    {
      role: 'system',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    { role: 'assistant', content: 'First' },
    ...HELLO,
    { role: 'assistant', content: 'x', tool_calls: [called('a'), called('b')] },
    result('b'),
    result('a'),
    { role: 'user', content: [{ type: 'text', text: 'y' }] },
  ]
  const fields = {
    messages,
    tools: [tool('f')],
    functions: [{ name: 'g' }],
    tool_choice: 'auto',
    stop: 'z',
    user: 'u',
    reasoning_effort: 'low',
    temperature: 1,
    ...formatOf({ type: 'object' }),
  }
  const { translated } = translation(fields)
  const paramOf = (message: string, param?: string): string | undefined =>
    translated.error(new GatewayError('invalid_request', message, param === undefined ? {} : { param })).details.param

  it.each([
    ['messages.0.content: x', 'messages[1]'],
    ['messages.1: x', 'messages[1]'],
    ['messages.2.content: x', 'messages[2]'],
    ['messages.3.content.0: x', 'messages[3].content'],
    ['messages.3.content.2.tool_use.input: x', 'messages[3].tool_calls[1]'],
    ['messages.4.content.0: x', 'messages[5]'],
    ['messages.4.content.1.tool_result.content: x', 'messages[4]'],
    ['messages.4.content.2: x', 'messages[6].content[0]'],
    ['messages.99: x', 'messages'],
    ['messages: x', 'messages'],
    ['system.1.text: x', 'messages[0].content[1]'],
    ['system: x', 'messages[0].content[0]'],
    ['tools.0: x', 'tools[0]'],
    ['tools.0.custom.name: x', 'tools[0].function.name'],
    ['tools.0.input_schema: x', 'tools[0].function.parameters'],
    ['tools.0.custom.input_schema.type: x', 'tools[0].function.parameters'],
    ['tools.1.custom.name: x', 'functions[0].name'],
    ['tools: Tool names must be unique.', 'tools'],
    ['tool_choice.type: x', 'tool_choice'],
    ['`max_tokens` must be greater', 'max_tokens'],
    ['"thinking.type.enabled" is not supported', 'reasoning_effort'],
    ['output_config.effort: x', 'reasoning_effort'],
    ['output_config.format: x', 'response_format'],
    ['output_config.format.schema: x', 'response_format.json_schema.schema'],
    ['stop_sequences: x', 'stop'],
    ['metadata.user_id: x', 'user'],
    ['`temperature` may only be 1', 'temperature'],
    ['top_p: x', undefined],
    ['model: theirs', 'model'],
    ['top_k: x', undefined],
    ['constructor: x', undefined],
    ['This model is tired', undefined],
    ['tools are tired', undefined],
    ['adaptive thinking is not supported on this model', undefined],
  ])('that says %j has the caller’s name %s', (message, param) => {
    expect(paramOf(message)).toBe(param)
  })

  it('has its own field named in the caller’s words, too', () => {
    expect(paramOf('x', 'messages[3].content[1]')).toBe('messages[3].tool_calls[0]')
    expect(paramOf('x', 'betas.0')).toBeUndefined()
  })

  it('keeps its kind and message, and names no field of a fault that is not the caller’s', () => {
    const error = translated.error(new GatewayError('upstream_failed', 'system: down', { code: 'c' }))
    expect([error.kind, error.message, error.details]).toEqual(['upstream_failed', 'system: down', { code: 'c' }])
  })
})
