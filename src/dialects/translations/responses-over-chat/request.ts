import type { ChatFields } from '../../openai-wire.js'
import type { JsonBody } from '../../../core/json-body.js'
import { effortsOf, effortTaken, isKeptFromThinking } from '../efforts.js'
import { dropped, type FieldRule, type FieldTable, passed } from '../field-table.js'
import { dropUnknown, isAbsent, type Members, objectAt, textAt } from '../members.js'
import { readConversation } from '../responses/conversation.js'
import { COMMON_FIELDS, readReasoningAsked, type ResponsesDraft } from '../responses/request-draft.js'
import { readToolChoice, readTools } from '../responses/tools.js'
import type { NamedTool, Tool, ToolChoice } from '../tools.js'
import { chatMessages } from './messages.js'

type Rule = FieldRule<ResponsesDraft>

const reasoning: Rule = (value, draft) => {
  const { effort, summaryPath } = readReasoningAsked(value, draft)
  if (effort !== undefined) setEffort(effort, draft)
  if (summaryPath === undefined) return
  // What an upstream shows of its thoughts is no summary; most show nothing.
  if (draft.facts.reasoningField === undefined) draft.verdicts.drop(summaryPath)
  else draft.verdicts.approximate(summaryPath)
}

function setEffort(asked: string, draft: ResponsesDraft): void {
  const path = 'reasoning.effort'
  const { facts, verdicts } = draft
  const efforts = effortsOf(facts, !isWithoutTools(draft))
  if (facts.thinking !== 'none') draft.set('reasoning_effort', effortTaken(asked, path, efforts, verdicts), path)
  // A model that does not think answers all the same.
  else if (asked !== 'none') verdicts.drop(path)
}

/** There are upstreams that take tools on no other terms. */
function switchThinkingOff(draft: ResponsesDraft): void {
  const { facts, upstream, verdicts } = draft
  if (upstream['reasoning_effort'] !== undefined || !isKeptFromThinking(facts, !isWithoutTools(draft))) return
  verdicts.approximate('reasoning', 'Send reasoning: {effort: none}')
  draft.set('reasoning_effort', 'none', 'reasoning')
}

const FORMAT = new Set(['type', 'name', 'description', 'schema', 'strict'])

const text: Rule = (value, draft) => {
  for (const [name, member] of Object.entries(objectAt(value, 'text'))) {
    if (isAbsent(member)) continue
    if (name === 'format') setFormat(objectAt(member, 'text.format'), draft)
    else if (name === 'verbosity') draft.set('verbosity', member, 'text.verbosity')
    else draft.verdicts.drop(`text.${name}`)
  }
}

function setFormat(format: Members, draft: ResponsesDraft): void {
  const { type, name, description, strict, schema } = format
  dropUnknown(format, FORMAT, 'text.format', draft.verdicts)
  if (type === 'text') return
  if (type === 'json_object') {
    draft.set('response_format', { type }, 'text.format')
    return
  }
  if (type !== 'json_schema') {
    draft.verdicts.refuse('text.format.type', 'Send one of text, json_object, json_schema.')
  }
  objectAt(schema, 'text.format.schema')
  const spelled = draft.texts.at('text', 'format', 'schema')?.text
  const jsonSchema = {
    name: textAt(name, 'text.format.name'),
    description: description ?? undefined,
    schema: spelled,
    strict: strict ?? undefined,
  }
  draft.set('response_format', { type, json_schema: jsonSchema }, 'text.format')
  draft.paths.set('response_format.json_schema.schema', 'text.format.schema')
}

const tools: Rule = (value, draft) => {
  const all = readTools(value, draft)
  draft.tools = all
  if (all.length === 0) return
  draft.set('tools', all.map(chatTool), 'tools')
  all.forEach(({ path, kind }, index) => {
    draft.paths.set(`tools.${index}`, path)
    draft.paths.set(`tools.${index}.${kind}.name`, `${path}.name`)
    draft.paths.set(`tools.${index}.${kind}.parameters`, `${path}.parameters`)
  })
}

function chatTool(tool: Tool): object {
  const { kind, name, description } = tool
  if (kind === 'function') {
    const { parameters, strict } = tool
    // Not strict is what chat upstreams do by themselves.
    const isStrict = strict ? true : undefined
    return { type: kind, function: { name, description, parameters: parameters?.spelled, strict: isStrict } }
  }
  const { syntax, definition } = tool.grammar ?? {}
  const format = tool.grammar === undefined ? undefined : { type: 'grammar', grammar: { syntax, definition } }
  return { type: kind, custom: { name, description, format } }
}

/** Chat upstreams refuse `tool_choice` and `parallel_tool_calls` without tools; none and auto mean nothing then. */
const isWithoutTools = ({ body }: ResponsesDraft): boolean => (body.fields.tools ?? []).length === 0

const toolChoice: Rule = (value, draft) => {
  const choice = readToolChoice(value, draft.verdicts)
  if (isWithoutTools(draft) && (choice.kind === 'none' || choice.kind === 'auto')) return
  draft.set('tool_choice', chatToolChoice(choice), 'tool_choice')
}

function chatToolChoice(choice: ToolChoice): unknown {
  if (choice.kind === 'named') return chosen(choice.tool)
  if (choice.kind !== 'allowed') return choice.kind
  const mode = choice.isRequired ? 'required' : 'auto'
  return { type: 'allowed_tools', allowed_tools: { mode, tools: choice.tools.map(chosen) } }
}

const chosen = ({ kind, name }: NamedTool): object => ({ type: kind, [kind]: { name } })

export const FIELDS: FieldTable<ResponsesDraft> = {
  ...COMMON_FIELDS,
  max_output_tokens: (value, draft, name) => {
    draft.set(draft.facts.maxTokensField, value, name)
  },
  parallel_tool_calls: (value, draft, name) => {
    if (!isWithoutTools(draft)) draft.set(name, value, name)
  },
  prompt_cache_key: passed,
  prompt_cache_options: (value, draft, name) => {
    if (draft.facts.promptCacheBreakpoints) passed(value, draft, name)
    else dropped(value, draft, name)
  },
  prompt_cache_retention: passed,
  reasoning,
  safety_identifier: passed,
  service_tier: passed,
  // The figures come at the end of the stream, and only on demand.
  stream: (value, draft, name) => {
    if (value !== true) return
    draft.set(name, true, name)
    draft.upstream['stream_options'] = { include_usage: true }
  },
  temperature: passed,
  text,
  tool_choice: toolChoice,
  tools,
  top_p: passed,
  user: passed,
}

/** The request as a chat completion. Throws `invalid_request` for what has no meaning there. */
export function chatRequest(draft: ResponsesDraft): JsonBody<ChatFields> {
  const { input, instructions } = draft.body.fields
  draft.paths.set('messages', 'input')
  draft.paths.set('model', 'model')
  const messages = chatMessages(readConversation(instructions, input, draft), draft)
  draft.translateFields(FIELDS)
  switchThinkingOff(draft)
  return draft.written<ChatFields>({ model: draft.target.upstreamModel, messages, ...draft.upstream })
}
