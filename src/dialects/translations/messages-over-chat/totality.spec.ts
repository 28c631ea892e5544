import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, it } from '@jest/globals'
import { messagesUsage } from '../usage.js'
import { emptyMessage, estimated, textBlock, thinkingBlock, toolUseBlock } from './answer.js'
import { ASSISTANT_MEMBERS, MESSAGE_MEMBERS } from './conversation.js'
import { DELTA_USAGE } from './events.js'
import { DOCUMENT_SOURCES, IMAGE_SOURCES, PART_MEMBERS, REFUSED_BLOCKS } from './parts.js'
import { ToolNames } from './request-draft.js'
import {
  FORMAT_MEMBERS,
  MESSAGES_FIELD_NAMES,
  METADATA_MEMBERS,
  OUTPUT_MEMBERS,
  SERVICE_TIERS,
  THINKING_FORMS,
} from './request.js'
import { TOOL_RESULT_MEMBERS } from './tool-results.js'
import { TOOL_CHOICES, TOOL_MEMBERS } from './tools.js'

const { resolve } = createRequire(import.meta.url)
const declarationsOf = (path: string): string => readFileSync(resolve(path).replace(/\.js$/, '.d.ts'), 'utf8')

const MESSAGES = declarationsOf('@anthropic-ai/sdk/resources/messages/messages')
const CHAT = declarationsOf('openai/resources/chat/completions/completions')

const bodyOf = (name: string): string => {
  const [, body] = new RegExp(`^export interface ${name} \\{\\n(.*?)^\\}`, 'ms').exec(MESSAGES) ?? []
  if (body === undefined) throw new Error(`The SDK has no interface ${name}`)
  return body
}

const membersOf = (name: string): string[] =>
  [...bodyOf(name).matchAll(/^ {4}(\w+)\??:/gm)].map(([, member = '']) => member)

const unionOf = (name: string): string[] => {
  const [, union = ''] = new RegExp(`^export type ${name} = (.*?);`, 'ms').exec(MESSAGES) ?? []
  if (union === '') throw new Error(`The SDK has no type ${name}`)
  return union.split(' | ')
}

/** The `type` of an interface. */
const typeOf = (name: string): string => /^ {4}type\??: '(\w+)'/m.exec(bodyOf(name))?.[1] ?? name

const RESULT_BLOCKS =
  /content\?: string \| Array<([^>]+)>/.exec(bodyOf('ToolResultBlockParam'))?.[1]?.split(' | ') ?? []

describe('Every member of the types of the SDK has a verdict', () => {
  it('at the top level', () => {
    expect([...MESSAGES_FIELD_NAMES].toSorted()).toEqual(membersOf('MessageCreateParamsBase').toSorted())
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
    ['OutputConfig', OUTPUT_MEMBERS],
    ['JSONOutputFormat', FORMAT_MEMBERS],
    ['Metadata', METADATA_MEMBERS],
  ])('in %s', (name, table) => {
    expect(Object.keys(table).toSorted()).toEqual(membersOf(name).toSorted())
  })

  it('among the blocks of messages and of results', () => {
    const types = [...unionOf('ContentBlockParam'), ...RESULT_BLOCKS].map(typeOf)
    const known = [PART_MEMBERS, ASSISTANT_MEMBERS, REFUSED_BLOCKS, { tool_result: 0 }].flatMap((table) =>
      Object.keys(table),
    )
    expect(known.toSorted()).toEqual([...new Set(types)].toSorted())
  })

  it('among the sources of images and documents', () => {
    expect(['Base64ImageSource', 'URLImageSource'].map(typeOf)).toEqual(Object.keys(IMAGE_SOURCES))
    expect(['Base64PDFSource', 'PlainTextSource', 'ContentBlockSource'].map(typeOf)).toEqual(
      Object.keys(DOCUMENT_SOURCES),
    )
    expect(bodyOf('ImageBlockParam')).toContain('source: Base64ImageSource | URLImageSource | FileImageSource;')
    expect(bodyOf('DocumentBlockParam')).toContain(
      'source: Base64PDFSource | PlainTextSource | ContentBlockSource | URLPDFSource | FileDocumentSource;',
    )
  })

  it('among the tools: all but custom ones have a type of their own, which is refused', () => {
    expect(unionOf('ToolUnion').filter((name) => typeOf(name) === name || typeOf(name) === 'custom')).toEqual(['Tool'])
  })

  it('among choices, forms of thinking and tiers', () => {
    expect(unionOf('ToolChoice').map(typeOf).toSorted()).toEqual(Object.keys(TOOL_CHOICES).toSorted())
    const forms = unionOf('ThinkingConfigParam').map(typeOf)
    expect(forms.toSorted()).toEqual([...Object.keys(THINKING_FORMS), 'between_tools'].toSorted())
    const tiers = Object.keys(SERVICE_TIERS).map((tier) => `'${tier}'`)
    expect(bodyOf('MessageCreateParamsBase')).toContain(`service_tier?: ${tiers.join(' | ')};`)
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
    expect(Object.keys(made).toSorted()).toEqual(membersOf(name).toSorted())
  })

  it('and comes from finish reasons that are all known', () => {
    const [, reasons = ''] = /finish_reason: ([^;]+?) \| null;/.exec(CHAT) ?? []
    expect(reasons).toBe("'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'")
  })
})
