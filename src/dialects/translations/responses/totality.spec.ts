import { describe, expect, it } from '@jest/globals'
import { ResponsesTranslation } from '../../../../test/support/responses-translation.js'
import { OPENAI_TYPES } from '../../../../test/support/sdk-types.js'
import { thrownBy } from '../../../../test/support/translation.js'
import {
  alternativeProbes,
  expectVerdicts,
  memberProbes,
  type Outcome,
  type Place,
  type Row,
  type Verdict,
} from '../../../../test/support/verdict-table.js'
import { FIELDS as CHAT_FIELDS } from '../responses-over-chat/request.js'
import { responsesOverChat } from '../responses-over-chat/responses-over-chat.js'
import { FIELDS as MESSAGES_FIELDS } from '../responses-over-messages/request.js'
import { responsesOverMessages } from '../responses-over-messages/responses-over-messages.js'
import { ITEM_TYPES } from './conversation.js'

const SETTING = { facts: { promptCacheBreakpoints: true, thinking: 'adaptive', reasoningField: 'reasoning' } } as const

type Upstream = 'chat' | 'messages'
type Rows = Readonly<Record<string, Row>>

const PNG = 'data:image/png;base64,iVBORw0KGgo='
const PDF = 'data:application/pdf;base64,JVBERi0='
const MARK: Row = [{ mode: 'explicit' }, 'translated']
const SCHEMA = { type: 'object', properties: {}, additionalProperties: false }
const HELLO = { role: 'user', content: 'Hi' }
const CALL = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
const CUSTOM_CALL = { type: 'custom_tool_call', call_id: 'c', name: 'f', input: 'x' }

const itemPlace = (index: number, ...others: readonly object[]): Place => ({
  path: `input[${index}]`,
  request: (item) => ({ input: [...others.slice(0, index), item, ...others.slice(index)] }),
})
const partOf = (role: string, ...behind: readonly object[]): Place => ({
  path: 'input[0].content[0]',
  request: (part) => ({ input: [{ role, content: part === undefined ? [] : [part] }, ...behind] }),
})
const USER_PART = partOf('user')
const MODEL_PART = partOf('assistant', HELLO)
const RESULT_PART: Place = {
  path: 'input[1].output[0]',
  request: (part) => ({ input: [CALL, { type: 'function_call_output', call_id: 'c', output: [part] }] }),
}
const TOOL: Place = { path: 'tools[0]', request: (tool) => ({ input: 'Hi', tools: [tool] }) }
const fieldPlace = (path: string, ...names: readonly string[]): Place => ({
  path,
  request: (value) => ({
    input: 'Hi',
    tools: [
      { type: 'function', name: 'f' },
      { type: 'custom', name: 'g' },
    ],
    ...(value === undefined ? {} : (names.reduceRight((inner: unknown, name) => ({ [name]: inner }), value) as object)),
  }),
})

/** What the gateway does not know is lost. */
const LATER = { x_later: 1 }
const allowing = (tool: object): object => ({ type: 'allowed_tools', mode: 'required', tools: [tool] })
const saying = (part: object): object => ({ input: [HELLO, { role: 'assistant', content: [part] }, HELLO] })
const marked = (prompt_cache_breakpoint: object): object => ({
  input: [{ role: 'user', content: [{ type: 'input_text', text: 'x', prompt_cache_breakpoint }] }],
})

/** Of an item or a part: who made it and how far it got means nothing to a model. */
const ITSELF: Rows = { id: ['x_1', 'meaningless'], status: ['completed', 'meaningless'] }
const PHASE: Rows = { phase: ['commentary', 'dropped'] }
const DIRECT: Rows = { id: ['x_1', 'meaningless'], caller: [{ type: 'program', caller_id: 'p' }, 'refused'] }
const OUTPUT: Rows = { id: ['x_1', 'meaningless'], caller: [{ type: 'direct' }, 'meaningless'] }

/** By the name of each interface of the vendor's SDK: where it stands, what it cannot be without, and its other members' verdicts. */
const INTERFACES = (upstream: Upstream): readonly (readonly [string, Place, object, Rows])[] => {
  const over = (chat: Verdict, messages: Verdict): Verdict => (upstream === 'chat' ? chat : messages)
  const image: Rows = {
    detail: ['high', over('translated', 'dropped')],
    file_id: ['file_1', 'refused'],
    prompt_cache_breakpoint: MARK,
  }
  const file: Rows = {
    detail: ['high', 'dropped'],
    file_id: ['file_1', 'refused'],
    // The data that stand beside it are what it names.
    file_url: ['https://a.test/b.pdf', 'meaningless'],
    filename: ['a.pdf', 'translated'],
    prompt_cache_breakpoint: MARK,
  }
  const markOfResult: Rows = { prompt_cache_breakpoint: MARK }
  return [
    ['ResponseInputText', USER_PART, { type: 'input_text', text: 'x' }, { prompt_cache_breakpoint: MARK }],
    ['ResponseInputImage', USER_PART, { type: 'input_image', image_url: PNG }, image],
    ['ResponseInputFile', USER_PART, { type: 'input_file', file_data: PDF }, file],
    ['ResponseInputTextContent', RESULT_PART, { type: 'input_text', text: 'x' }, markOfResult],
    ['ResponseInputImageContent', RESULT_PART, { type: 'input_image', image_url: PNG }, image],
    ['ResponseInputFileContent', RESULT_PART, { type: 'input_file', file_data: PDF }, file],
    [
      'ResponseOutputText',
      MODEL_PART,
      { type: 'output_text', text: 'x' },
      { annotations: [[{ type: 'file_path' }], 'dropped'], logprobs: [[{ token: 'x' }], 'dropped'] },
    ],
    ['ResponseOutputRefusal', MODEL_PART, { type: 'refusal', refusal: 'No' }, {}],
    [
      'EasyInputMessage',
      itemPlace(0, HELLO),
      { role: 'assistant', content: 'x' },
      { ...PHASE, type: ['message', 'meaningless'] },
    ],
    [
      'ResponseInputItem.Message',
      itemPlace(0, HELLO),
      { role: 'developer', content: 'x' },
      { status: ['completed', 'meaningless'], type: ['message', 'meaningless'] },
    ],
    [
      'ResponseOutputMessage',
      itemPlace(0, HELLO),
      { role: 'assistant', content: [{ type: 'output_text', text: 'x' }] },
      { ...ITSELF, ...PHASE, type: ['message', 'meaningless'] },
    ],
    [
      'ResponseFunctionToolCall',
      itemPlace(0, { type: 'function_call_output', call_id: 'c', output: 'x' }),
      CALL,
      { ...ITSELF, ...DIRECT, namespace: ['n', 'refused'] },
    ],
    [
      'ResponseInputItem.FunctionCallOutput',
      itemPlace(1, CALL),
      { type: 'function_call_output', call_id: 'c', output: 'x' },
      { ...ITSELF, ...OUTPUT },
    ],
    [
      'ResponseCustomToolCall',
      itemPlace(0, { type: 'custom_tool_call_output', call_id: 'c', output: 'x' }),
      CUSTOM_CALL,
      { ...DIRECT, namespace: ['n', 'refused'] },
    ],
    [
      'ResponseCustomToolCallOutput',
      itemPlace(1, CUSTOM_CALL),
      { type: 'custom_tool_call_output', call_id: 'c', output: 'x' },
      OUTPUT,
    ],
    [
      'FunctionTool',
      TOOL,
      { type: 'function', name: 'f' },
      {
        parameters: [SCHEMA, 'translated'],
        strict: [true, 'translated'],
        allowed_callers: [['programmatic'], 'refused'],
        defer_loading: [true, 'refused'],
        description: ['Does', 'translated'],
        output_schema: [SCHEMA, 'dropped'],
      },
    ],
    [
      'CustomTool',
      TOOL,
      { type: 'custom', name: 'f' },
      {
        allowed_callers: [['programmatic'], 'refused'],
        defer_loading: [true, 'refused'],
        description: ['Does', 'translated'],
        format: [{ type: 'grammar', syntax: 'regex', definition: 'a' }, over('translated', 'refused')],
      },
    ],
    [
      'ResponseTextConfig',
      fieldPlace('text', 'text'),
      {},
      {
        format: [{ type: 'json_schema', name: 'a', schema: SCHEMA }, 'translated'],
        verbosity: ['low', over('translated', 'dropped')],
      },
    ],
    [
      'ResponseFormatTextJSONSchemaConfig',
      fieldPlace('text.format', 'text', 'format'),
      { type: 'json_schema', schema: SCHEMA, ...(upstream === 'chat' ? { name: 'a' } : {}) },
      {
        ...(upstream === 'chat' ? {} : { name: ['a', 'meaningless'] }),
        description: ['Is', over('translated', 'dropped')],
        // Messages upstreams always keep to the schema.
        strict: [true, over('translated', 'meaningless')],
      },
    ],
    [
      'Reasoning',
      fieldPlace('reasoning', 'reasoning'),
      {},
      {
        context: ['all_turns', 'dropped'],
        effort: ['low', 'translated'],
        generate_summary: ['concise', over('approximated', 'translated')],
        mode: ['pro', 'refused'],
        summary: ['concise', over('approximated', 'translated')],
      },
    ],
    [
      'ResponseCreateParams.StreamOptions',
      fieldPlace('stream_options', 'stream_options'),
      {},
      { include_obfuscation: [true, 'dropped'] },
    ],
  ]
}

const rowsOf = (verdict: Verdict, valueOf: (name: string) => unknown, ...names: readonly string[]): Rows =>
  Object.fromEntries(names.map((name) => [name, [valueOf(name), verdict] as const]))

/** As `INTERFACES`, for each alternative of a union, or of the union that is the type of an interface's member. */
const UNIONS = (upstream: Upstream): readonly (readonly [string, readonly string[], Place, Rows])[] => {
  const over = (chat: Verdict, messages: Verdict): Verdict => (upstream === 'chat' ? chat : messages)
  const choice = (type: string): object => ({ type, name: type === 'custom' ? 'g' : 'f' })
  const modes = rowsOf('translated', (word) => word, 'none', 'auto', 'required')
  return [
    [
      'ResponseInputContent',
      OPENAI_TYPES.alternativesOf('ResponseInputContent'),
      USER_PART,
      {
        input_text: [{ type: 'input_text', text: 'x' }, 'translated'],
        input_image: [{ type: 'input_image', image_url: PNG }, 'translated'],
        input_file: [{ type: 'input_file', file_data: PDF }, 'translated'],
      },
    ],
    [
      'ResponseOutputMessage.content',
      OPENAI_TYPES.alternativesIn('ResponseOutputMessage', 'content'),
      MODEL_PART,
      {
        output_text: [{ type: 'output_text', text: 'x' }, 'translated'],
        refusal: [{ type: 'refusal', refusal: 'No' }, 'translated'],
      },
    ],
    [
      'ResponseIncludable',
      OPENAI_TYPES.alternativesOf('ResponseIncludable'),
      { path: 'include', request: (word) => ({ input: 'Hi', include: word === undefined ? [] : [word] }) },
      {
        ...rowsOf(
          'dropped',
          (word) => word,
          'file_search_call.results',
          'web_search_call.results',
          'web_search_call.action.sources',
          'message.input_image.image_url',
          'computer_call_output.output.image_url',
          'code_interpreter_call.outputs',
        ),
        'message.output_text.logprobs': ['message.output_text.logprobs', 'refused'],
        // Of the answer alone.
        'reasoning.encrypted_content': ['reasoning.encrypted_content', 'meaningless'],
      },
    ],
    [
      'ToolChoiceOptions',
      OPENAI_TYPES.alternativesOf('ToolChoiceOptions'),
      fieldPlace('tool_choice', 'tool_choice'),
      modes,
    ],
    [
      'ResponseCreateParamsBase.tool_choice',
      OPENAI_TYPES.alternativesIn('ResponseCreateParamsBase', 'tool_choice'),
      fieldPlace('tool_choice', 'tool_choice'),
      {
        ...modes,
        ...rowsOf('translated', choice, 'function', 'custom'),
        allowed_tools: [
          { type: 'allowed_tools', mode: 'auto', tools: [choice('function')] },
          over('translated', 'approximated'),
        ],
        ...rowsOf(
          'refused',
          choice,
          ...['file_search', 'web_search_preview', 'web_search_preview_2025_03_11', 'image_generation', 'mcp', 'shell'],
          ...['computer', 'computer_use_preview', 'computer_use', 'code_interpreter', 'apply_patch'],
          'programmatic_tool_calling',
        ),
      },
    ],
    [
      'ResponseFormatTextConfig',
      OPENAI_TYPES.alternativesOf('ResponseFormatTextConfig'),
      fieldPlace('text.format', 'text', 'format'),
      {
        text: [{ type: 'text' }, 'meaningless'],
        json_schema: [{ type: 'json_schema', name: 'a', schema: SCHEMA }, 'translated'],
        json_object: [{ type: 'json_object' }, over('translated', 'refused')],
      },
    ],
    [
      'ReasoningEffort',
      OPENAI_TYPES.alternativesOf('ReasoningEffort'),
      fieldPlace('reasoning.effort', 'reasoning', 'effort'),
      {
        ...rowsOf('translated', (word) => word, 'none', 'low', 'medium', 'high', 'xhigh', 'max'),
        minimal: ['minimal', over('translated', 'approximated')],
      },
    ],
  ]
}

const TRANSLATORS = {
  chat: (request: object) => new ResponsesTranslation('chat', responsesOverChat, request, SETTING),
  messages: (request: object) => new ResponsesTranslation('messages', responsesOverMessages, request, SETTING),
} as const

describe.each([
  ['chat', CHAT_FIELDS],
  ['messages', MESSAGES_FIELDS],
] as const)('The table for %s', (_upstream, table) => {
  it('has a verdict for every field of the vendor’s client, and for no other', () => {
    const names = OPENAI_TYPES.membersOf('ResponseCreateParamsBase')
    expect(names).toContain('truncation')
    expect(Object.keys(table).toSorted()).toEqual(names.toSorted())
  })
})

describe.each(['chat', 'messages'] as const)('Over %s', (upstream) => {
  const translate: (request: object) => Outcome = TRANSLATORS[upstream]

  it.each(INTERFACES(upstream))('every member of %s has a verdict, which is given', (name, place, base, rows) => {
    expectVerdicts(OPENAI_TYPES.membersOf(name), memberProbes(base, rows, place), translate)
  })

  it.each(UNIONS(upstream))('every alternative of %s has a verdict, which is given', (_name, names, place, rows) => {
    expectVerdicts(names, alternativeProbes(rows, place), translate)
  })

  /** By the parameters of a function that says nothing of `strict`: what becomes of the default, which is true. */
  const byDefault: readonly (readonly [string, object | null | undefined, Verdict])[] = [
    ['closed', SCHEMA, 'approximated'],
    ['open', { type: 'object', properties: { a: { type: 'string' } } }, 'approximated'],
    ['null', null, 'meaningless'],
    ['none', undefined, 'meaningless'],
  ]

  it.each(byDefault)('the default of strict has a verdict; parameters: %s', (_what, parameters, verdict) => {
    for (const strict of [undefined, null]) {
      const tools = [{ type: 'function', name: 'f', parameters, strict }]
      const run = TRANSLATORS[upstream]({ input: 'Hi', max_output_tokens: 20, tools })
      const { approximated, dropped } = run.verdicts
      expect([approximated, dropped]).toEqual([verdict === 'approximated' ? 'tools[0].strict' : undefined, undefined])
      expect(run.sentText).not.toContain('strict')
    }
  })

  it.each<[string, object]>([
    ['input[1].content[0].logprobs', saying({ type: 'output_text', text: 'x', logprobs: [{ token: 'x' }] })],
    ['input[1].content[0].annotations', saying({ type: 'output_text', text: 'x', annotations: { type: 'file_path' } })],
    ['input[0].content[0].prompt_cache_breakpoint.ttl', marked({ mode: 'explicit', ttl: '1h' })],
    ['tools[0].format.x_later', TOOL.request({ type: 'custom', name: 'g', format: { type: 'text', ...LATER } })],
    [
      'tool_choice.tools[0].x_later',
      {
        ...TOOL.request({ type: 'function', name: 'f' }),
        tool_choice: allowing({ type: 'function', name: 'f', ...LATER }),
      },
    ],
    ['tool_choice.x_later', fieldPlace('', 'tool_choice').request({ type: 'custom', name: 'g', ...LATER })],
  ])('nothing is lost in silence: %s', (path, request) => {
    expect(translate(request).verdicts.dropped).toBe(path)
  })

  it('every type of tool of the vendor’s client is translated or refused', () => {
    const types = new Set(OPENAI_TYPES.alternativesOf('Tool'))
    expect(types.size).toBeGreaterThan(15)
    const requestWith = (type: string): object => ({ input: 'Hi', tools: [{ type, name: 'a' }] })
    for (const type of ['function', 'custom']) {
      expect(types.delete(type)).toBe(true)
      expect(TRANSLATORS[upstream](requestWith(type)).sent['tools']).toHaveLength(1)
    }
    for (const type of types) {
      expect([type, thrownBy(() => translate(requestWith(type))).details.param]).toEqual([type, 'tools[0].type'])
    }
  })

  it('every type of item of the vendor’s client is translated or refused', () => {
    const types = new Set(OPENAI_TYPES.alternativesOf('ResponseInputItem'))
    expect(types.size).toBeGreaterThan(25)
    for (const type of types) {
      if (ITEM_TYPES.includes(type)) continue
      const { code, param } = thrownBy(() => translate({ input: [{ type, id: 'a' }] })).details
      expect([type, code, param]).toEqual([
        type,
        'unsupported_value',
        type === 'item_reference' ? 'input[0]' : 'input[0].type',
      ])
    }
    expect(ITEM_TYPES.filter((type) => !types.has(type))).toEqual([])
  })
})
