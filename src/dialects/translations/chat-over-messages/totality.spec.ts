import { describe, expect, it } from '@jest/globals'
import { HELLO, PNG, translation } from '../../../../test/support/chat-translation.js'
import { OPENAI_TYPES } from '../../../../test/support/sdk-types.js'
import {
  alternativeProbes,
  expectVerdicts,
  memberProbes,
  type Outcome,
  type Place,
  type Row,
} from '../../../../test/support/verdict-table.js'
import { CHAT_FIELDS } from './fields.js'

type Rows = Readonly<Record<string, Row>>

const PDF = 'data:application/pdf;base64,JVBERi0='
const SCHEMA = { type: 'object', properties: {}, additionalProperties: false }
const MARK: Row = [{ mode: 'explicit' }, 'translated']
const NAME: Rows = { name: ['x', 'dropped'] }

/** Facts by which each effort is another one upstream. */
function translate(request: object): Outcome {
  const { translated, approximated, dropped } = translation(request, { facts: { thinking: 'adaptive' } })
  return { sentText: translated.request.bytes.toString(), verdicts: { approximated, dropped } }
}

const call = (more: object): object => ({ id: 'c', ...more })
const F_CALL = call({ function: { name: 'f', arguments: '{"a":1}' } })
const G_CALL = call({ type: 'custom', custom: { name: 'g', input: 'x' } })
const RESULT = { role: 'tool', tool_call_id: 'c', content: 'x' }
const calling = (value: unknown): object => ({ role: 'assistant', tool_calls: [value] })

const messagePlace = (before: readonly object[], behind: readonly object[] = []): Place => ({
  path: `messages[${before.length}]`,
  request: (message) => ({ messages: [...before, ...(message === undefined ? [] : [message]), ...behind] }),
})
const AT_THE_BEGINNING = messagePlace([], HELLO)
const IN_THE_MIDDLE = messagePlace(HELLO, HELLO)
const CALL: Place = {
  path: 'messages[1].tool_calls[0]',
  request: (value) => ({ messages: [...HELLO, calling(value), RESULT] }),
}
const within = (place: Place, name: string, rest: object): Place => ({
  path: `${place.path}.${name}`,
  request: (value) => place.request({ ...rest, [name]: value }),
})
const PART: Place = {
  path: 'messages[0].content[0]',
  request: (part) => ({ messages: [{ role: 'user', content: part === undefined ? [] : [part] }, ...HELLO] }),
}
const TOOL: Place = { path: 'tools[0]', request: (tool) => ({ tools: tool === undefined ? [] : [tool] }) }
const field = (name: string): Place => ({
  path: name,
  request: (value) => ({
    tools: [
      { type: 'function', function: { name: 'f' } },
      { type: 'custom', custom: { name: 'g' } },
    ],
    ...(value === undefined ? {} : { [name]: value }),
  }),
})

/** By the name of each interface of the vendor's SDK: where it stands, what it cannot be without, and its other members' verdicts. */
const INTERFACES: readonly (readonly [string, Place, object, Rows])[] = [
  ['ChatCompletionDeveloperMessageParam', AT_THE_BEGINNING, { role: 'developer', content: 'x' }, NAME],
  ['ChatCompletionSystemMessageParam', AT_THE_BEGINNING, { role: 'system', content: 'x' }, NAME],
  ['ChatCompletionUserMessageParam', IN_THE_MIDDLE, { role: 'user', content: 'x' }, NAME],
  [
    'ChatCompletionAssistantMessageParam',
    IN_THE_MIDDLE,
    { role: 'assistant', content: 'x' },
    {
      ...NAME,
      refusal: ['No', 'translated'],
      audio: [{ id: 'audio_1' }, 'refused'],
      // Both want a result behind them.
      tool_calls: [[F_CALL], 'refused'],
      function_call: [{ name: 'f', arguments: '{}' }, 'refused'],
    },
  ],
  [
    // An answer that a client pushes back.
    'ChatCompletionMessage',
    IN_THE_MIDDLE,
    { role: 'assistant', content: 'x' },
    {
      refusal: ['No', 'translated'],
      annotations: [[{ type: 'url_citation' }], 'dropped'],
      audio: [{ id: 'audio_1' }, 'refused'],
      tool_calls: [[F_CALL], 'refused'],
      function_call: [{ name: 'f', arguments: '{}' }, 'refused'],
    },
  ],
  ['ChatCompletionToolMessageParam', messagePlace([...HELLO, calling(F_CALL)]), RESULT, {}],
  [
    'ChatCompletionFunctionMessageParam',
    messagePlace([...HELLO, { role: 'assistant', function_call: { name: 'f', arguments: '{}' } }]),
    { role: 'function', content: 'x' },
    // The call before it says it.
    { name: ['f', 'meaningless'] },
  ],
  ['ChatCompletionMessageFunctionToolCall', CALL, F_CALL, { type: ['function', 'meaningless'] }],
  [
    'ChatCompletionMessageFunctionToolCall.Function',
    within(CALL, 'function', { id: 'c', type: 'function' }),
    { name: 'f', arguments: '{"a":1}' },
    {},
  ],
  ['ChatCompletionMessageCustomToolCall', CALL, G_CALL, {}],
  [
    'ChatCompletionMessageCustomToolCall.Custom',
    within(CALL, 'custom', { id: 'c', type: 'custom' }),
    { name: 'g', input: 'x' },
    {},
  ],
  ['ChatCompletionContentPartText', PART, { type: 'text', text: 'x' }, { prompt_cache_breakpoint: MARK }],
  [
    'ChatCompletionContentPartImage',
    PART,
    { type: 'image_url', image_url: { url: PNG } },
    { prompt_cache_breakpoint: MARK },
  ],
  [
    'ChatCompletionContentPartImage.ImageURL',
    within(PART, 'image_url', { type: 'image_url' }),
    { url: PNG },
    { detail: ['high', 'dropped'] },
  ],
  [
    'ChatCompletionContentPart.File',
    PART,
    { type: 'file', file: { file_data: PDF } },
    { prompt_cache_breakpoint: MARK },
  ],
  [
    'ChatCompletionContentPart.File.File',
    within(PART, 'file', { type: 'file' }),
    { file_data: PDF },
    { file_id: ['file_1', 'refused'], filename: ['a.pdf', 'translated'] },
  ],
  ['ChatCompletionFunctionTool', TOOL, { type: 'function', function: { name: 'f' } }, {}],
  [
    'FunctionDefinition',
    within(TOOL, 'function', { type: 'function' }),
    { name: 'f' },
    { description: ['Does', 'translated'], parameters: [SCHEMA, 'translated'], strict: [true, 'translated'] },
  ],
  ['ChatCompletionCustomTool', TOOL, { type: 'custom', custom: { name: 'g' } }, {}],
  [
    'ChatCompletionCustomTool.Custom',
    within(TOOL, 'custom', { type: 'custom' }),
    { name: 'g' },
    {
      description: ['Does', 'translated'],
      format: [{ type: 'grammar', grammar: { syntax: 'regex', definition: 'a' } }, 'refused'],
    },
  ],
  [
    'ChatCompletionCreateParams.Function',
    { path: 'functions[0]', request: (tool) => ({ functions: [tool] }) },
    { name: 'f' },
    { description: ['Does', 'translated'], parameters: [SCHEMA, 'translated'] },
  ],
  [
    'ChatCompletionStreamOptions',
    { path: 'stream_options', request: (options) => ({ stream: true, stream_options: options }) },
    {},
    // The upstream counts in any case: of the answer alone.
    { include_usage: [true, 'meaningless'], include_obfuscation: [true, 'dropped'] },
  ],
  [
    'ResponseFormatJSONSchema.JSONSchema',
    within(field('response_format'), 'json_schema', { type: 'json_schema' }),
    { schema: SCHEMA },
    {
      name: ['plan', 'meaningless'],
      description: ['Is', 'dropped'],
      // Messages upstreams always keep to the schema.
      strict: [true, 'meaningless'],
    },
  ],
]

const words = (...names: readonly string[]): Rows =>
  Object.fromEntries(names.map((name) => [name, [name, 'translated'] as const]))

/** As `INTERFACES`, for each alternative of a union. */
const UNIONS: readonly (readonly [string, readonly string[], Place, Rows])[] = [
  [
    'ChatCompletionMessageParam',
    OPENAI_TYPES.alternativesOf('ChatCompletionMessageParam'),
    IN_THE_MIDDLE,
    {
      developer: [{ role: 'developer', content: 'x' }, 'approximated'],
      system: [{ role: 'system', content: 'x' }, 'approximated'],
      user: [{ role: 'user', content: 'x' }, 'translated'],
      assistant: [{ role: 'assistant', content: 'x' }, 'translated'],
      // Without a call before it.
      tool: [RESULT, 'refused'],
      function: [{ role: 'function', name: 'f', content: 'x' }, 'refused'],
    },
  ],
  [
    'ChatCompletionContentPart',
    OPENAI_TYPES.alternativesOf('ChatCompletionContentPart'),
    PART,
    {
      text: [{ type: 'text', text: 'x' }, 'translated'],
      image_url: [{ type: 'image_url', image_url: { url: PNG } }, 'translated'],
      input_audio: [{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }, 'refused'],
      file: [{ type: 'file', file: { file_data: PDF } }, 'translated'],
    },
  ],
  [
    'ChatCompletionAssistantMessageParam.content',
    OPENAI_TYPES.alternativesIn('ChatCompletionAssistantMessageParam', 'content'),
    {
      path: 'messages[1].content[0]',
      request: (part) => ({ messages: [...HELLO, { role: 'assistant', content: part && [part] }, ...HELLO] }),
    },
    { text: [{ type: 'text', text: 'x' }, 'translated'], refusal: [{ type: 'refusal', refusal: 'No' }, 'translated'] },
  ],
  [
    'ChatCompletionMessageToolCall',
    OPENAI_TYPES.alternativesOf('ChatCompletionMessageToolCall'),
    CALL,
    { function: [F_CALL, 'translated'], custom: [G_CALL, 'translated'] },
  ],
  [
    'ChatCompletionTool',
    OPENAI_TYPES.alternativesOf('ChatCompletionTool'),
    TOOL,
    {
      function: [{ type: 'function', function: { name: 'f' } }, 'translated'],
      custom: [{ type: 'custom', custom: { name: 'g' } }, 'translated'],
    },
  ],
  [
    'ChatCompletionToolChoiceOption',
    OPENAI_TYPES.alternativesOf('ChatCompletionToolChoiceOption'),
    field('tool_choice'),
    {
      ...words('none', 'auto', 'required'),
      allowed_tools: [
        {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
        },
        'approximated',
      ],
      function: [{ type: 'function', function: { name: 'f' } }, 'translated'],
      custom: [{ type: 'custom', custom: { name: 'g' } }, 'translated'],
    },
  ],
  [
    'ChatCompletionCreateParamsBase.function_call',
    OPENAI_TYPES.alternativesIn('ChatCompletionCreateParamsBase', 'function_call'),
    field('function_call'),
    { ...words('none', 'auto'), ChatCompletionFunctionCallOption: [{ name: 'f' }, 'translated'] },
  ],
  [
    'ChatCompletionCreateParamsBase.response_format',
    OPENAI_TYPES.alternativesIn('ChatCompletionCreateParamsBase', 'response_format'),
    field('response_format'),
    {
      text: [{ type: 'text' }, 'meaningless'],
      json_schema: [{ type: 'json_schema', json_schema: { name: 'a', schema: SCHEMA } }, 'translated'],
      json_object: [{ type: 'json_object' }, 'refused'],
    },
  ],
  [
    'ReasoningEffort',
    OPENAI_TYPES.alternativesOf('ReasoningEffort'),
    field('reasoning_effort'),
    { ...words('none', 'low', 'medium', 'high', 'xhigh', 'max'), minimal: ['minimal', 'approximated'] },
  ],
  [
    'ChatCompletionCreateParamsBase.service_tier',
    OPENAI_TYPES.alternativesIn('ChatCompletionCreateParamsBase', 'service_tier'),
    field('service_tier'),
    {
      ...words('auto', 'default'),
      flex: ['flex', 'refused'],
      scale: ['scale', 'refused'],
      priority: ['priority', 'refused'],
    },
  ],
]

describe('Every member of the types of the SDK has a verdict', () => {
  it('at the top level', () => {
    const names = OPENAI_TYPES.membersOf('ChatCompletionCreateParamsBase')
    expect(Object.keys(CHAT_FIELDS).toSorted()).toEqual(names.toSorted())
  })

  it.each(INTERFACES)('in %s', (name, place, base, rows) => {
    expectVerdicts(OPENAI_TYPES.membersOf(name), memberProbes(base, rows, place), translate)
  })

  it.each(UNIONS)('among the alternatives of %s', (_name, names, place, rows) => {
    expectVerdicts(names, alternativeProbes(rows, place), translate)
  })
})

/** What the gateway does not know is lost here. */
const LATER = { x_later: 1 }
const choosing = (choice: object): object => field('tool_choice').request(choice)
const allowing = (tool: object, more = {}): object => ({
  type: 'allowed_tools',
  allowed_tools: { mode: 'required', tools: [tool], ...more },
})
const SAYING = { role: 'assistant', content: 'x' }
const marked = (prompt_cache_breakpoint: object): object => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'x', prompt_cache_breakpoint }] }],
})
const between = (message: object): object => ({ messages: [...HELLO, message, ...HELLO] })

it.each<[string, object]>([
  ['x_later', LATER],
  ['tool_choice.x_later', field('tool_choice').request({ type: 'function', function: { name: 'f' }, ...LATER })],
  ['tool_choice.function.x_later', choosing({ type: 'function', function: { name: 'f', ...LATER } })],
  ['tool_choice.custom', choosing({ type: 'function', function: { name: 'f' }, custom: { name: 'g' } })],
  ['tool_choice.allowed_tools.x_later', choosing(allowing({ type: 'function', function: { name: 'f' } }, LATER))],
  [
    'tool_choice.allowed_tools.tools[0].function.x_later',
    choosing(allowing({ type: 'function', function: { name: 'f', ...LATER } })),
  ],
  [
    'tools[0].custom.format.x_later',
    { tools: [{ type: 'custom', custom: { name: 'g', format: { type: 'text', ...LATER } } }] },
  ],
  ['response_format.x_later', { response_format: { type: 'text', ...LATER } }],
  ['messages[0].content[0].prompt_cache_breakpoint.x_later', marked({ mode: 'explicit', ...LATER })],
  ['messages[1].reasoning_content', between({ ...SAYING, reasoning_content: 'Hm.' })],
  ['messages[1].reasoning_content', between({ ...SAYING, reasoning_content: 'Hm.', thinking_blocks: [] })],
  ['messages[1].annotations', between({ ...SAYING, annotations: { type: 'url_citation' } })],
])('Nothing is lost in silence: %s', (path, request) => {
  expect(translate(request).verdicts.dropped).toBe(path)
})
