import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../../../core/errors.js'
import { JsonBody } from '../../../core/json-body.js'
import type { ModelFacts } from '../../model-facts.js'
import type { ChatFields } from '../../openai-wire.js'
import type { Thoughts } from '../../translator.js'
import { Verdicts } from '../../verdicts.js'
import { madeSignature, OwnerSeals } from '../seals.js'
import { ThoughtMemory } from '../thought-memory.js'
import { chatOverMessages } from './chat-over-messages.js'
import { CHAT_FIELDS } from './fields.js'
import { PARTS_OF_ROLE } from './parts.js'

const FACTS: ModelFacts = {
  thinking: 'budget',
  thinkingOff: 'disabled',
  forcedToolChoice: true,
  sampling: true,
  maxTokensField: 'max_tokens',
  systemRole: 'none',
  maxOutputTokens: 64_000,
  vision: true,
  files: true,
  promptCacheBreakpoints: false,
}
const SEALS = new OwnerSeals(Buffer.from('secret'), 'owner')
const HELLO = [{ role: 'user', content: 'Hello' }]

interface Options {
  readonly facts?: Partial<ModelFacts>
  readonly thoughts?: Thoughts
  readonly isStrict?: boolean
}

/** A chat request, of JSON text or of fields added to a greeting, and what became of it. */
function translation(request: string | object, { facts, thoughts, isStrict = false }: Options = {}) {
  const asked = { model: 'mine', max_tokens: 4000, messages: HELLO }
  const text = typeof request === 'string' ? request : JSON.stringify({ ...asked, ...request })
  const body = JsonBody.parse(Buffer.from(text)) as unknown as JsonBody<ChatFields>
  const verdicts = new Verdicts({ client: 'chat', upstream: 'messages' }, isStrict)
  const target = { upstreamModel: 'theirs', facts: { ...FACTS, ...facts }, requestId: 'r', seals: SEALS, thoughts }
  const translated = chatOverMessages(body, target, verdicts)
  const json = translated.request.bytes.toString()
  const sent = JSON.parse(json) as Record<string, unknown>
  return { translated, json, sent, approximated: verdicts.approximated, dropped: verdicts.dropped }
}

const sentOf = (request: object, options?: Options): Record<string, unknown> => translation(request, options).sent

const messagesOf = (messages: readonly object[], options?: Options): unknown =>
  sentOf({ messages }, options)['messages']

function refusalOf(request: object, options?: Options): GatewayError {
  try {
    translation(request, options)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('It was not refused.')
}

const tool = (name: string): object => ({ type: 'function', function: { name, parameters: { type: 'object' } } })
const called = (id: string, text = '{}'): object => ({ id, type: 'function', function: { name: 'f', arguments: text } })
const result = (id: string, content: unknown = 'done'): object => ({ role: 'tool', tool_call_id: id, content })
const THOUGHT = { type: 'thinking', thinking: 'Hm.', signature: 'sig' }
const REDACTED = { type: 'redacted_thinking', data: 'xx' }
const PNG = 'data:image/png;base64,iVBORw0KGgo='
const partOf = (part: object): object => ({ messages: [{ role: 'user', content: [part] }] })

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

function formatOf(schema: object, more: object = {}): object {
  return { response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema, ...more } } }
}

function allowed(mode: string, name: string): object {
  const choice = { type: 'allowed_tools', allowed_tools: { mode, tools: [{ type: 'function', function: { name } }] } }
  return { tools: [tool('f'), tool('h')], tool_choice: choice }
}

describe('the messages of a chat request', () => {
  it('begin with instructions, one block for each part', () => {
    const { sent } = translation({
      messages: [
        { role: 'system', content: 'One' },
        {
          role: 'developer',
          content: [
            { type: 'text', text: 'Two' },
            { type: 'text', text: '' },
            { type: 'text', text: 'Three' },
          ],
        },
        ...HELLO,
      ],
    })
    expect(sent['system']).toEqual(['One', 'Two', 'Three'].map((text) => ({ type: 'text', text })))
    expect(sent['messages']).toEqual(HELLO)
  })

  it('keep later instructions at their place where the model takes them there', () => {
    const messages = [
      ...HELLO,
      { role: 'assistant', content: 'Hi' },
      { role: 'developer', content: 'Be short' },
      ...HELLO,
    ]
    const { sent, approximated } = translation({ messages }, { facts: { systemRole: 'system' } })
    expect(sent['messages']).toEqual([...HELLO, messages[1], { role: 'system', content: 'Be short' }, ...HELLO])
    expect(approximated).toBeUndefined()
  })

  it('end with the user even where instructions came last', () => {
    const later = [...HELLO, { role: 'assistant', content: 'Hi' }, { role: 'system', content: 'Go on' }]
    expect(messagesOf(later)).toEqual([...HELLO, later[1], { role: 'user', content: 'Go on' }])
    expect(
      sentOf({
        messages: [
          { role: 'system', content: 'a' },
          { role: 'system', content: 'b' },
        ],
      }),
    ).toMatchObject({
      system: [{ type: 'text', text: 'a' }],
      messages: [{ role: 'user', content: 'b' }],
    })
  })

  it('hold no empty text, and stay a conversation without it', () => {
    const empty = { role: 'user', content: '' }
    expect(messagesOf([empty, ...HELLO, { role: 'assistant', content: null }])).toEqual(HELLO)
    expect(messagesOf([...HELLO, { role: 'assistant', content: 'Hi' }, empty])).toEqual([
      ...HELLO,
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: '...' },
    ])
    expect(messagesOf([{ role: 'system', content: 'x' }, empty])).toEqual([{ role: 'user', content: '...' }])
  })

  it.each([
    ['text', { type: 'text', text: 'x' }, 'x'],
    [
      'a picture',
      { type: 'image_url', image_url: { url: PNG, detail: 'auto' } },
      { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' },
    ],
    [
      'a picture of a common other name',
      { type: 'image_url', image_url: { url: 'data:image/JPG;base64,AAAA' } },
      { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' },
    ],
    [
      'Base64 with line ends',
      { type: 'image_url', image_url: { url: 'data:image/gif;base64,AA\nA-' } },
      { type: 'base64', media_type: 'image/gif', data: 'AAA+' },
    ],
    [
      'a picture by its address',
      { type: 'image_url', image_url: { url: 'https://a.test/b.png' } },
      { type: 'url', url: 'https://a.test/b.png' },
    ],
    [
      'a PDF',
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } },
      { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
    ],
    [
      'a text file',
      { type: 'file', file: { file_data: 'data:text/markdown;charset=utf-8;base64,w6k=' } },
      { type: 'text', media_type: 'text/plain', data: 'é' },
    ],
  ])('carry %s', (_name, part, expected) => {
    const [message] = messagesOf([{ role: 'user', content: [part] }]) as { content: string | { source: object }[] }[]
    expect(typeof message?.content === 'string' ? message.content : message?.content[0]?.source).toEqual(expected)
  })

  it('carry parts in their order, and the name of a file', () => {
    const file = { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }
    const content = [
      { type: 'text', text: 'a' },
      { type: 'file', file },
      { type: 'text', text: 'b' },
    ]
    expect(messagesOf([{ role: 'user', content }])).toMatchObject([
      { content: [{ text: 'a' }, { type: 'document', title: 'a.pdf' }, { text: 'b' }] },
    ])
  })

  it('are refused where the model takes no pictures or files', () => {
    const path = 'messages[0].content[0].type'
    const picture = partOf({ type: 'image_url', image_url: { url: PNG } })
    expect(refusalOf(picture, { facts: { vision: false } }).details.param).toBe(path)
    const file = partOf({ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } })
    expect(refusalOf(file, { facts: { files: false } }).details.param).toBe(path)
  })

  it('mark the last four places at which the caller wants the cache cut', () => {
    const part = (text: string): object => ({ type: 'text', text, prompt_cache_breakpoint: { mode: 'explicit' } })
    const messages = [
      { role: 'system', content: [part('s')] },
      { role: 'user', content: [part('u')] },
      { role: 'assistant', tool_calls: [called('a')] },
      result('a', [part('r1'), { type: 'text', text: 'r2' }]),
      { role: 'user', content: [part('v'), part('w')] },
    ]
    const { sent, dropped } = translation({ messages })
    const mark = { cache_control: { type: 'ephemeral' } }
    expect(dropped).toBe('messages[0].content[0].prompt_cache_breakpoint')
    expect(sent['system']).toEqual([{ type: 'text', text: 's' }])
    expect(sent['messages']).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'u', ...mark }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: [
              { type: 'text', text: 'r1' },
              { type: 'text', text: 'r2' },
            ],
            ...mark,
          },
          { type: 'text', text: 'v', ...mark },
          { type: 'text', text: 'w', ...mark },
        ],
      },
    ])
  })

  it('join results in the order of their calls with what the user says next', () => {
    const messages = [
      ...HELLO,
      {
        role: 'assistant',
        content: 'Let me see',
        refusal: null,
        tool_calls: [called('a', '{"x":1}'), called('b', '')],
      },
      result('b', ''),
      result('a', [{ type: 'image_url', image_url: { url: PNG } }]),
      { role: 'user', content: 'And?' },
    ]
    expect(messagesOf(messages)).toEqual([
      ...HELLO,
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me see' },
          { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
          { type: 'tool_use', id: 'b', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }],
          },
          { type: 'tool_result', tool_use_id: 'b' },
          { type: 'text', text: 'And?' },
        ],
      },
    ])
  })

  it('carry refusals as text, and custom calls and arguments that are no object in one', () => {
    const messages = [
      ...HELLO,
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'a' },
          { type: 'refusal', refusal: 'b' },
        ],
        refusal: 'c',
      },
      ...HELLO,
      {
        role: 'assistant',
        tool_calls: [called('a', '[1]'), { id: 'b', type: 'custom', custom: { name: 'c', input: 'text' } }],
      },
      result('a'),
      result('b'),
    ]
    expect(messagesOf(messages)).toMatchObject([
      ...HELLO,
      { content: ['a', 'b', 'c'].map((text) => ({ type: 'text', text })) },
      ...HELLO,
      { content: [{ input: { arguments: '[1]' } }, { name: 'c', input: { input: 'text' } }] },
      { content: [{ tool_use_id: 'a' }, { tool_use_id: 'b' }] },
    ])
  })

  it('give the old form of calls an id of its place', () => {
    const messages = [
      ...HELLO,
      { role: 'assistant', function_call: { name: 'f', arguments: '{"a":1}' } },
      { role: 'function', name: 'f', content: 'r' },
    ]
    expect(messagesOf(messages)).toEqual([
      ...HELLO,
      { role: 'assistant', content: [{ type: 'tool_use', id: 'function_call_1', name: 'f', input: { a: 1 } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'function_call_1', content: 'r' }] },
    ])
  })

  it('have ids that the upstream takes, the same on both sides, and each but once', () => {
    const turn = [{ role: 'assistant', tool_calls: [called('call:0')] }, result('call:0')]
    const ids = [
      ...JSON.stringify(messagesOf([...HELLO, ...turn, ...turn])).matchAll(/"(?:tool_use_)?id":"([\w-]{1,64})"/g),
    ]
    const [first, answered, second, answeredAgain] = ids.map(([, id]) => id)
    expect(first).toMatch(/^t_[a-z2-7]{52}$/)
    expect([answered, answeredAgain]).toEqual([first, second])
    expect(second).not.toBe(first)
  })

  it('are answers as they came, pushed back by the loop of a client', () => {
    const answer = {
      role: 'assistant',
      content: 'Hi',
      refusal: null,
      annotations: [],
      audio: null,
      parsed: null,
      reasoning_content: 'Hm.',
      thinking_blocks: [THOUGHT],
    }
    const { sent, dropped } = translation({ messages: [...HELLO, answer, ...HELLO] }, { isStrict: true })
    expect(dropped).toBeUndefined()
    expect(sent['messages']).toEqual([
      ...HELLO,
      { role: 'assistant', content: [THOUGHT, { type: 'text', text: 'Hi' }] },
      ...HELLO,
    ])
  })

  it('go on with the beginning of an answer where the model does', () => {
    const messages = [...HELLO, { role: 'assistant', content: 'It is \n' }]
    expect(messagesOf(messages)).toEqual([...HELLO, { role: 'assistant', content: 'It is' }])
    expect(sentOf({ messages, reasoning_effort: 'low' })['thinking']).toBeUndefined()
    expect(refusalOf({ messages }, { facts: { thinking: 'adaptive' } }).details.param).toBe('messages[1]')
  })
})

describe('the tools of a chat request', () => {
  it('are described as the upstream wants it', () => {
    const tools = [
      {
        type: 'function',
        function: { name: 'a', description: 'A', parameters: { type: 'object', required: [] }, strict: true },
      },
      { type: 'function', function: { name: 'b', description: '', strict: false } },
      { type: 'function', function: { name: 'c', parameters: {} } },
      { type: 'custom', custom: { name: 'd', description: 'D', format: { type: 'text' } } },
    ]
    expect(sentOf({ tools, functions: [{ name: 'e', parameters: null }] })['tools']).toEqual([
      { name: 'a', description: 'A', input_schema: { type: 'object', required: [] }, strict: true },
      { name: 'b', input_schema: { type: 'object', properties: {} } },
      { name: 'c', input_schema: { type: 'object' } },
      {
        name: 'd',
        description: 'D',
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
      { name: 'e', input_schema: { type: 'object', properties: {} } },
    ])
  })

  it.each([
    ['none', {}, { type: 'none' }],
    ['auto', {}, { type: 'auto' }],
    ['required', {}, { type: 'any' }],
    [{ type: 'function', function: { name: 'f' } }, {}, { type: 'tool', name: 'f' }],
    [{ type: 'custom', custom: { name: 'c' } }, {}, { type: 'tool', name: 'c' }],
    [undefined, { parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    ['required', { parallel_tool_calls: false }, { type: 'any', disable_parallel_tool_use: true }],
    ['none', { parallel_tool_calls: false }, { type: 'none' }],
    [undefined, {}, undefined],
  ])('are chosen by %j', (tool_choice, more, expected) => {
    const tools = [tool('f'), { type: 'custom', custom: { name: 'c' } }]
    expect(sentOf({ tools, tool_choice, ...more })['tool_choice']).toEqual(expected)
  })

  it.each([
    [{ tools: [tool('f')], tool_choice: 'required' }, 'tool_choice'],
    [{ tools: [tool('f')], tool_choice: { type: 'function', function: { name: 'f' } } }, 'tool_choice'],
    [{ functions: [{ name: 'f' }], function_call: { name: 'f' } }, 'function_call'],
  ])('are not forced on a model that takes no force: %j', (request, param) => {
    const facts = { forcedToolChoice: false }
    expect(refusalOf(request, { facts })).toMatchObject({ details: { param, code: 'unsupported_value' } })
    expect(sentOf({ tools: [tool('f')], tool_choice: 'auto' }, { facts })['tool_choice']).toEqual({ type: 'auto' })
  })

  it.each([
    ['auto', { type: 'auto' }],
    ['required', { type: 'any' }],
  ])('are cut down to those that are allowed, with %s', (mode, tool_choice) => {
    expect(sentOf(allowed(mode, 'h'))).toMatchObject({ tools: [{ name: 'h' }], tool_choice })
    expect(sentOf(allowed(mode, 'h'))['tools']).toHaveLength(1)
  })

  it.each([
    ['auto', { type: 'auto', disable_parallel_tool_use: true }],
    ['none', { type: 'none' }],
    [{ name: 'f' }, { type: 'tool', name: 'f', disable_parallel_tool_use: true }],
    [undefined, { type: 'auto', disable_parallel_tool_use: true }],
  ])('are called one at a time in the old form, chosen by %j', (function_call, expected) => {
    expect(sentOf({ functions: [{ name: 'f' }], function_call })['tool_choice']).toEqual(expected)
  })

  it('are not chosen where there are none', () => {
    expect(sentOf({ tool_choice: 'auto', parallel_tool_calls: false })['tool_choice']).toBeUndefined()
  })
})

describe('the thinking of a chat request', () => {
  it.each([
    ['minimal', 100_000, 1024],
    ['low', 100_000, 2048],
    ['medium', 100_000, 8192],
    ['high', 100_000, 16_384],
    ['xhigh', 100_000, 32_000],
    ['max', 100_000, 32_000],
    ['max', 4000, 3200],
    ['low', 1025, 1024],
  ])('has a budget for %s below a maximum of %d', (reasoning_effort, max_tokens, budget_tokens) => {
    expect(sentOf({ reasoning_effort, max_tokens })['thinking']).toEqual({ type: 'enabled', budget_tokens })
  })

  it('is left out where the maximum has no room for it', () => {
    const { sent, approximated } = translation({ reasoning_effort: 'high', max_tokens: 1024 })
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it.each([
    ['minimal', 'low'],
    ['low', 'low'],
    ['medium', 'medium'],
    ['high', 'high'],
    ['xhigh', 'xhigh'],
    ['max', 'max'],
  ])('has for %s the effort %s of a model that decides itself', (reasoning_effort, effort) => {
    const sent = sentOf({ reasoning_effort, ...formatOf({ type: 'object' }) }, { facts: { thinking: 'adaptive' } })
    expect(sent['thinking']).toEqual({ type: 'adaptive', display: 'summarized' })
    expect(sent['output_config']).toMatchObject({ effort, format: { type: 'json_schema' } })
  })

  it.each([
    ['never', undefined, { effort: 'low' }],
    ['between_tools', { type: 'between_tools' }, undefined],
  ] as const)('is little where a model cannot be kept from it: %s', (thinkingOff, thinking, config) => {
    const facts = { thinking: 'adaptive', thinkingOff } as const
    const { sent, approximated } = translation({ reasoning_effort: 'none' }, { facts })
    expect([sent['thinking'], sent['output_config'], approximated]).toEqual([thinking, config, 'reasoning_effort'])
  })

  it('is switched off for none, and unknown to a model that does not think', () => {
    const off = sentOf({ reasoning_effort: 'none' }, { facts: { thinking: 'adaptive' } })
    expect([off['thinking'], off['output_config']]).toEqual([{ type: 'disabled' }, undefined])
    const { sent, dropped } = translation({ reasoning_effort: 'high' }, { facts: { thinking: 'none' } })
    expect([sent['thinking'], dropped]).toEqual([undefined, 'reasoning_effort'])
  })

  it.each(['budget', 'adaptive'] as const)('yields to a tool that must be called, with facts %s', (thinking) => {
    const fields = { reasoning_effort: 'high', tools: [tool('f')], tool_choice: 'required' }
    const { sent, approximated } = translation(fields, { facts: { thinking } })
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it('leaves no choice of words but the neutral one', () => {
    const { sent, dropped } = translation({ reasoning_effort: 'low', temperature: 0.9, top_p: 0.94 })
    expect([sent['temperature'], sent['top_p'], dropped]).toEqual([undefined, undefined, 'temperature,top_p'])
    expect(sentOf({ reasoning_effort: 'low', temperature: 1, top_p: 0.95 })).toMatchObject({
      temperature: 1,
      top_p: 0.95,
    })
  })

  it('leaves none where its model takes none', () => {
    const { sent, dropped } = translation({ temperature: 0.5, top_p: 1 }, { facts: { sampling: false } })
    expect([sent['temperature'], sent['top_p'], dropped]).toEqual([undefined, undefined, 'temperature'])
  })

  const loop = (message: object): object => ({ messages: [...HELLO, message, result('a')], reasoning_effort: 'low' })
  const call = { role: 'assistant', tool_calls: [called('a')] }
  const use = { type: 'tool_use', id: 'a', name: 'f', input: {} }
  const turnIn = (sent: Record<string, unknown>): unknown => (sent['messages'] as { content: unknown }[])[1]?.content

  it('comes back first and verbatim', () => {
    const silent = { type: 'thinking', thinking: '', signature: 'sig' }
    const { sent, approximated } = translation(loop({ ...call, content: 'x', thinking_blocks: [silent, REDACTED] }))
    expect(turnIn(sent)).toEqual([silent, REDACTED, { type: 'text', text: 'x' }, use])
    expect([sent['thinking'], approximated]).toEqual([{ type: 'enabled', budget_tokens: 2048 }, 'reasoning_effort'])
  })

  it('comes back from memory, whatever the client has kept of it', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([THOUGHT, REDACTED]))
    thoughts.remember('b', JSON.stringify([REDACTED]))
    const messages = [
      ...HELLO,
      { role: 'assistant', tool_calls: [called('a'), called('b')], thinking_blocks: [REDACTED] },
      result('a'),
      result('b'),
    ]
    const sent = sentOf({ messages, reasoning_effort: 'low' }, { thoughts })
    expect(turnIn(sent)).toEqual([THOUGHT, REDACTED, use, REDACTED, { ...use, id: 'b' }])
    expect(sent['thinking']).toBeDefined()
  })

  const between = { ...THOUGHT, textBefore: 5 }

  it.each([
    ['at its place', 'Hello\n\nworld', [{ type: 'text', text: 'Hello\n\n' }, THOUGHT, { type: 'text', text: 'world' }]],
    ['behind all of the text', ' Hello', [{ type: 'text', text: ' Hello' }, THOUGHT]],
  ])('comes back from memory %s', (_where, content, expected) => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([REDACTED, between]))
    expect(turnIn(sentOf(loop({ ...call, content }), { thoughts }))).toEqual([REDACTED, ...expected, use])
  })

  it('is lost where less text comes back than stood before it', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([REDACTED, between]))
    const { sent, approximated } = translation(loop({ ...call, content: 'Hell' }), { thoughts })
    expect(turnIn(sent)).toEqual([{ type: 'text', text: 'Hell' }, use])
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it('that comes back with less text than stood before it takes none of that text with it', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    const later = { ...THOUGHT, signature: 'later', textBefore: 104 }
    thoughts.remember('a', JSON.stringify([{ ...THOUGHT, textBefore: 4 }, later]))
    const { sent, approximated } = translation(loop({ ...call, content: 'AAAABB' }), { thoughts })
    expect(turnIn(sent)).toEqual([{ type: 'text', text: 'AAAABB' }, use])
    expect([sent['thinking'], approximated]).toEqual([undefined, 'reasoning_effort'])
  })

  it('is what the client has kept where its text is not that which is remembered', () => {
    const thoughts = new ThoughtMemory().of('owner', SEALS)
    thoughts.remember('a', JSON.stringify([{ ...THOUGHT, textBefore: 10 }]))
    const { sent } = translation(loop({ ...call, content: '', thinking_blocks: [THOUGHT, REDACTED] }), { thoughts })
    expect(turnIn(sent)).toEqual([THOUGHT, REDACTED, use])
    expect(sent['thinking']).toEqual({ type: 'enabled', budget_tokens: 2048 })
  })

  it('that is lost is refused to a strict caller by the field it has sent', () => {
    expect(refusalOf(loop(call), { facts: { thinking: 'adaptive' }, isStrict: true }).details.param).toBe(
      'reasoning_effort',
    )
  })

  it.each([
    ['was lost', undefined],
    ['is of the gateway itself', [{ ...THOUGHT, signature: madeSignature() }]],
  ])('is switched off for a turn whose thinking %s', (_name, thinking_blocks) => {
    for (const thinking of ['budget', 'adaptive'] as const) {
      const { sent, approximated, dropped } = translation(loop({ ...call, thinking_blocks }), { facts: { thinking } })
      expect(turnIn(sent)).toEqual([use])
      expect([sent['thinking'], approximated, dropped]).toEqual([undefined, 'reasoning_effort', undefined])
    }
  })

  it('is none of the caller’s invention', () => {
    const invented = [{ type: 'thinking', thinking: 'x' }, { ...THOUGHT, signature: '' }, 'x']
    const { sent, dropped } = translation({ messages: [...HELLO, { ...call, thinking_blocks: invented }, result('a')] })
    expect(turnIn(sent)).toEqual([use])
    expect(dropped).toBe([0, 1, 2].map((index) => `messages[1].thinking_blocks[${index}]`).join())
    expect(translation(loop({ ...call, thinking_blocks: 'x' })).dropped).toBe('messages[1].thinking_blocks')
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

describe('the types of the client’s SDK', () => {
  const types = readFileSync('node_modules/openai/resources/chat/completions/completions.d.ts', 'utf8')
  const bodyOf = (name: string): string =>
    new RegExp(`^export interface ${name} \\{\n(.*?)^\\}`, 'ms').exec(types)?.[1] ?? ''
  const membersOf = (name: string): string[] =>
    [...bodyOf(name).matchAll(/^ {4}(\w+)\??:/gm)].map(([, member]) => String(member))

  it('have no field of a request without a verdict', () => {
    expect(Object.keys(CHAT_FIELDS).sort()).toEqual(membersOf('ChatCompletionCreateParamsBase').sort())
  })

  it.each([
    ['ChatCompletionUserMessageParam', { role: 'user', content: 'x' }],
    ['ChatCompletionSystemMessageParam', { role: 'system', content: 'x' }],
    ['ChatCompletionDeveloperMessageParam', { role: 'developer', content: 'x' }],
    ['ChatCompletionAssistantMessageParam', { role: 'assistant', content: 'x' }],
  ])('have no member of %s that is dropped, but names', (name, message) => {
    const members = membersOf(name)
    expect(members).toContain('role')
    const others = members.filter(
      (member) => !(member in message) && !['audio', 'tool_calls', 'function_call'].includes(member),
    )
    const told = Object.fromEntries(others.map((member) => [member, 'x']))
    const { dropped } = translation({ messages: [...HELLO, { ...message, ...told }, ...HELLO] })
    expect(dropped).toBe(members.includes('name') ? 'messages[1].name' : undefined)
  })

  it('have no type of part without a verdict', () => {
    const partTypes = [...types.matchAll(/^export interface ChatCompletionContentPart\w+ \{.*?^\}/gms)].flatMap(
      ([text]) => [...text.matchAll(/^ {4}type: '(\w+)'/gm)].map(([, type]) => String(type)),
    )
    expect(partTypes).toContain('image_url')
    const known = new Set(Object.values(PARTS_OF_ROLE).flat())
    expect([...partTypes, 'file'].sort()).toEqual([...known].sort())
  })
})

it('A result of the old form whose name is an object is refused by its path', () => {
  const messages = [...HELLO, { role: 'function', name: { toString: 1 }, content: 'done' }]
  expect(refusalOf({ messages }).details.param).toBe('messages[1].name')
})

it('Two calls of one turn with the same id are answered in their order', () => {
  const messages = [
    ...HELLO,
    { role: 'assistant', tool_calls: [called('a'), called('a')] },
    result('a', 'first'),
    result('a', 'second'),
  ]
  const [, calls, results] = messagesOf(messages) as {
    content: { id?: string; tool_use_id?: string; content?: string }[]
  }[]
  const ids = calls?.content.map(({ id }) => id) ?? []
  expect(new Set(ids).size).toBe(2)
  expect(results?.content).toMatchObject([
    { tool_use_id: ids[0], content: 'first' },
    { tool_use_id: ids[1], content: 'second' },
  ])
})
