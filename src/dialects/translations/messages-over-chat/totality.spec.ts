import { describe, expect, it } from '@jest/globals'
import { ANTHROPIC_BETA_TYPES, ANTHROPIC_TYPES, OPENAI_TYPES } from '../../../../test/support/sdk-types.js'
import { TranslationRun } from '../../../../test/support/translation.js'
import {
  expectVerdicts,
  memberProbes,
  type Outcome,
  type Place,
  type Probe,
  type Row,
  verdictOf,
} from '../../../../test/support/verdict-table.js'
import { messagesUsage } from '../usage.js'
import { emptyMessage, estimated, textBlock, thinkingBlock, toolUseBlock } from './answer.js'
import { FORMAT_MEMBERS } from './answer-format.js'
import { CONTEXT_EDITS } from './beta-fields.js'
import { ASSISTANT_MEMBERS, MESSAGE_MEMBERS } from './conversation.js'
import { DELTA_USAGE } from './events.js'
import { messagesOverChat } from './messages-over-chat.js'
import { DOCUMENT_SOURCES, IMAGE_SOURCES, PART_MEMBERS, REFUSED_BLOCKS } from './parts.js'
import { ToolNames } from './request-draft.js'
import { MESSAGES_FIELD_NAMES, METADATA_MEMBERS, OUTPUT_MEMBERS, SERVICE_TIERS, THINKING_FORMS } from './request.js'
import { TOOL_RESULT_MEMBERS } from './tool-results.js'
import { TOOL_CHOICES, TOOL_MEMBERS } from './tools.js'

const HELLO = { role: 'user', content: 'Hi' }
const PNG = 'iVBORw0KGgo='
const BLOCK: Place = {
  path: 'messages[0].content[0]',
  request: (block) => ({ messages: [{ role: 'user', content: [block] }, HELLO] }),
}
const PLAIN = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } }
const sourceOf = (type: string): Place => ({
  path: `${BLOCK.path}.source`,
  request: (source) => BLOCK.request({ type, source }),
})

/** Of a model whose upstream takes marks of the cache. */
const translate = (request: object): Outcome =>
  new TranslationRun(
    { client: 'messages', upstream: 'chat' },
    messagesOverChat,
    { max_tokens: 9, ...request },
    { facts: { promptCacheBreakpoints: true } },
  )

describe('Every member of the types of the SDK has a verdict', () => {
  it('at the top level, that of the beta client too', () => {
    const names = [ANTHROPIC_TYPES, ...ANTHROPIC_BETA_TYPES].flatMap((types) =>
      types.membersOf('MessageCreateParamsBase'),
    )
    expect([...MESSAGES_FIELD_NAMES].toSorted()).toEqual([...new Set(names)].toSorted())
  })

  it('at the top level of the beta client alone', () => {
    const known = new Set(ANTHROPIC_TYPES.membersOf('MessageCreateParamsBase'))
    const names = ANTHROPIC_BETA_TYPES.flatMap((types) => types.membersOf('MessageCreateParamsBase'))
    const format = { type: 'json_schema', schema: { type: 'object', additionalProperties: false } }
    const rows: Readonly<Record<string, Row>> = {
      betas: [['mcp-client-2025-11-20'], 'dropped'],
      billing_policy: [{ type: 'billing_policy', bill_to: 'user_profile' }, 'refused'],
      compaction: [{ type: 'summarize' }, 'refused'],
      context_management: [{ edits: [{ type: 'compact_20260112' }] }, 'refused'],
      fallback_credit_token: ['fct_1', 'refused'],
      fallbacks: [[{ model: 'claude-haiku-4-5' }], 'refused'],
      mcp_servers: [[{ type: 'url', name: 'docs', url: 'https://mcp.test' }], 'refused'],
      output_format: [format, 'translated'],
      thread: [{ type: 'create' }, 'refused'],
    }
    const without = { messages: [HELLO] }
    const probes: Record<string, Probe> = {}
    for (const [name, [value, verdict]] of Object.entries(rows)) {
      probes[name] = { without, with: { ...without, [name]: value }, path: name, verdict }
    }
    const unknown = [...new Set(names)].filter((name) => !known.has(name))
    expectVerdicts(unknown, probes, translate)
  })

  it.each([
    ['MessageParam', MESSAGE_MEMBERS],
    ['TextBlockParam', PART_MEMBERS.text],
    ['ImageBlockParam', PART_MEMBERS.image],
    ['DocumentBlockParam', PART_MEMBERS.document],
    ['SearchResultBlockParam', PART_MEMBERS.search_result],
    ['ThinkingBlockParam', ASSISTANT_MEMBERS.thinking],
    ['RedactedThinkingBlockParam', ASSISTANT_MEMBERS.redacted_thinking],
    ['ToolUseBlockParam', ASSISTANT_MEMBERS.tool_use],
    ['ToolResultBlockParam', TOOL_RESULT_MEMBERS],
    ['Tool', TOOL_MEMBERS],
    ['ToolChoiceAuto', TOOL_CHOICES.auto],
    ['ToolChoiceAny', TOOL_CHOICES.any],
    ['ToolChoiceTool', TOOL_CHOICES.tool],
    ['ToolChoiceNone', TOOL_CHOICES.none],
    ['ThinkingConfigEnabled', THINKING_FORMS.enabled],
    ['ThinkingConfigAdaptive', THINKING_FORMS.adaptive],
    ['ThinkingConfigDisabled', THINKING_FORMS.disabled],
    ['JSONOutputFormat', FORMAT_MEMBERS],
    ['Metadata', METADATA_MEMBERS],
  ])('in %s', (name, table) => {
    expect(Object.keys(table).toSorted()).toEqual(ANTHROPIC_TYPES.membersOf(name).toSorted())
  })

  it.each(ANTHROPIC_BETA_TYPES)('in the configuration of the output, and of the context: %#', (types) => {
    expect(Object.keys(OUTPUT_MEMBERS).toSorted()).toEqual(types.membersOf('BetaOutputConfig').toSorted())
    const edits = types.alternativesIn('BetaContextManagementConfig', 'edits')
    expect(Object.keys(CONTEXT_EDITS).toSorted()).toEqual(edits.toSorted())
  })

  it.each<readonly [string, Place, object, Readonly<Record<string, Row>>]>([
    [
      'CacheControlEphemeral',
      {
        path: `${BLOCK.path}.cache_control`,
        request: (mark) => BLOCK.request({ type: 'text', text: 'x', cache_control: mark }),
      },
      {},
      { type: ['ephemeral', 'meaningless'], ttl: ['1h', 'dropped'] },
    ],
    [
      'CitationsConfigParam',
      { path: `${BLOCK.path}.citations`, request: (citations) => BLOCK.request({ ...PLAIN, citations }) },
      {},
      { enabled: [true, 'refused'] },
    ],
    ['Base64ImageSource', sourceOf('image'), { type: 'base64', media_type: 'image/png', data: PNG }, {}],
    ['URLImageSource', sourceOf('image'), { type: 'url', url: 'https://a.test/b.png' }, {}],
    ['Base64PDFSource', sourceOf('document'), { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, {}],
    [
      'PlainTextSource',
      sourceOf('document'),
      { type: 'text', data: 'x' },
      { media_type: ['text/plain', 'meaningless'] },
    ],
    ['ContentBlockSource', sourceOf('document'), { type: 'content', content: 'x' }, {}],
  ])('in %s, which is given', (name, place, base, rows) => {
    expectVerdicts(ANTHROPIC_TYPES.membersOf(name), memberProbes(base, rows, place), translate)
  })

  it('among the blocks of messages and of results', () => {
    const types = [
      ...ANTHROPIC_TYPES.alternativesOf('ContentBlockParam'),
      ...ANTHROPIC_TYPES.alternativesIn('ToolResultBlockParam', 'content'),
    ]
    const known = [PART_MEMBERS, ASSISTANT_MEMBERS, REFUSED_BLOCKS, { tool_result: 0 }].flatMap((table) =>
      Object.keys(table),
    )
    expect(known.toSorted()).toEqual([...new Set(types)].toSorted())
  })

  it('among the sources of images and documents', () => {
    const sourcesOf = (name: string): readonly string[] => ANTHROPIC_TYPES.alternativesIn(name, 'source')
    expect(sourcesOf('ImageBlockParam')).toEqual([...Object.keys(IMAGE_SOURCES), 'file'])
    expect(sourcesOf('DocumentBlockParam').toSorted()).toEqual(
      [...Object.keys(DOCUMENT_SOURCES), 'file', 'url'].toSorted(),
    )
  })

  it('among the tools: all but custom ones have a type of their own, which is refused', () => {
    for (const type of ANTHROPIC_TYPES.alternativesOf('ToolUnion')) {
      const request = (tool: object): object => ({ messages: [HELLO], tools: [tool] })
      const probe = {
        without: request({}),
        with: request({ type, name: 'f', input_schema: {} }),
        path: 'tools[0].type',
      }
      expect([type, verdictOf(probe, translate)]).toEqual([type, type === 'custom' ? 'translated' : 'refused'])
    }
  })

  it('among choices, forms of thinking and tiers', () => {
    expect(ANTHROPIC_TYPES.alternativesOf('ToolChoice').toSorted()).toEqual(Object.keys(TOOL_CHOICES).toSorted())
    const forms = ANTHROPIC_TYPES.alternativesOf('ThinkingConfigParam')
    expect(forms.toSorted()).toEqual([...Object.keys(THINKING_FORMS), 'between_tools'].toSorted())
    const tiers = ANTHROPIC_TYPES.alternativesIn('MessageCreateParamsBase', 'service_tier')
    expect(tiers).toEqual(Object.keys(SERVICE_TIERS))
  })
})

describe('What a client gets has the members of the types of the SDK', () => {
  const toolNames = new ToolNames()

  it.each<[string, object]>([
    ['Message', emptyMessage({}, { model: 'm', requestId: 'r' }, estimated(0))],
    ['Usage', messagesUsage(estimated(0))],
    ['MessageDeltaUsage', Object.fromEntries([...DELTA_USAGE].map((name) => [name, null]))],
    ['TextBlock', textBlock()],
    ['ThinkingBlock', thinkingBlock('', '')],
    // Toolsets are refused, and their calls alone have one.
    ['ToolUseBlock', { ...toolUseBlock('id', 'name', {}, { toolNames }), toolset_name: null }],
  ])('as a %s', (name, made) => {
    expect(Object.keys(made).toSorted()).toEqual(ANTHROPIC_TYPES.membersOf(name).toSorted())
  })

  it('and comes from finish reasons that are all known', () => {
    expect(OPENAI_TYPES.alternativesIn('ChatCompletion.Choice', 'finish_reason').toSorted()).toEqual([
      'content_filter',
      'function_call',
      'length',
      'stop',
      'tool_calls',
    ])
  })
})
