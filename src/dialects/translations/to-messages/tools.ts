import type { ModelFacts } from '../../model-facts.js'
import type { Verdicts } from '../../verdicts.js'
import type { PathMap } from '../caller-paths.js'
import { invalidShape, type Members } from '../members.js'
import { CLOSED_NO_INPUT, NO_INPUT, objectSchema, TEXT_INPUT } from '../tool-forms.js'
import type { NamedTool, Tool, ToolChoice } from '../tools.js'

/** What a caller asks of tools. */
interface ToolRequest {
  readonly tools: readonly Tool[]
  readonly choice: ToolChoice | undefined
  /** One call after the other alone. */
  readonly isSerial: boolean
}

/** `tools` and `tool_choice` of the upstream's request, and what its answer is translated with. */
export interface MessagesTools {
  readonly fields: { readonly tools?: readonly object[]; readonly tool_choice?: Members }
  /** Names of tools that take a text. */
  readonly customNames: ReadonlySet<string>
  /** Whether a tool must be called. */
  readonly isForced: boolean
}

export interface ToolContext {
  readonly facts: ModelFacts
  readonly verdicts: Verdicts
  readonly paths: PathMap
}

/** Throws `invalid_request` for a choice of tools that the request does not have. */
export function messagesTools(request: ToolRequest, { facts, verdicts, paths }: ToolContext): MessagesTools {
  const { tools, choice } = request
  const isForced = choice !== undefined && isForcing(choice)
  if (choice !== undefined) {
    checkNames(choice, tools)
    if (isForced && !facts.forcedToolChoice) verdicts.refuse(choice.path, 'The model can only be let choose: auto.')
    if (choice.kind === 'allowed') verdicts.approximate(choice.path)
  }
  const sent = choice?.kind === 'allowed' ? cutDown(tools, choice.tools) : tools
  setPaths(sent, paths)
  return {
    fields:
      sent.length === 0 ? {} : { tools: sent.map((tool) => upstreamTool(tool, verdicts)), ...choiceField(request) },
    customNames: new Set(sent.filter(({ kind }) => kind === 'custom').map(({ name }) => name)),
    isForced,
  }
}

function isForcing(choice: ToolChoice): boolean {
  return choice.kind === 'allowed' ? choice.isRequired : choice.kind === 'required' || choice.kind === 'named'
}

/** Names alone: the upstream knows its tools by nothing else. */
function checkNames(choice: ToolChoice, tools: readonly Tool[]): void {
  const names = new Set(tools.map(({ name }) => name))
  const unknown = namedTools(choice).find(({ name }) => !names.has(name))
  if (unknown !== undefined) throw invalidShape(unknown.path, "one of the request's tools")
  const isOfNone = choice.kind === 'allowed' ? choice.tools.length === 0 : tools.length === 0
  if (isOfNone && isForcing(choice)) throw invalidShape(choice.path, 'no choice without tools')
}

function namedTools(choice: ToolChoice): readonly NamedTool[] {
  if (choice.kind === 'named') return [choice.tool]
  return choice.kind === 'allowed' ? choice.tools : []
}

/**
 * Only these are sent, which cuts the upstream's prompt cache at the tools. Where none of them may be called they stay: calls of them may
 * stand in the conversation.
 */
function cutDown(tools: readonly Tool[], allowed: readonly NamedTool[]): readonly Tool[] {
  const names = new Set(allowed.map(({ name }) => name))
  return names.size === 0 ? tools : tools.filter(({ name }) => names.has(name))
}

/** Upstreams name the type of a tool behind its index, or do not. */
function setPaths(sent: readonly Tool[], paths: PathMap): void {
  sent.forEach(({ path, bodyPath, kind }, index) => {
    paths.set(`tools.${index}`, path)
    for (const place of [`tools.${index}`, `tools.${index}.custom`]) {
      paths.set(`${place}.name`, `${bodyPath}.name`)
      paths.set(`${place}.description`, `${bodyPath}.description`)
      if (kind === 'function') paths.set(`${place}.input_schema`, `${bodyPath}.parameters`)
    }
  })
}

function choiceField({ choice, isSerial }: ToolRequest): Pick<MessagesTools['fields'], 'tool_choice'> {
  const form = choice === undefined ? undefined : choiceForm(choice)
  if (!isSerial || form?.['type'] === 'none') return form === undefined ? {} : { tool_choice: form }
  return { tool_choice: { ...(form ?? { type: 'auto' }), disable_parallel_tool_use: true } }
}

function choiceForm(choice: ToolChoice): Members {
  if (choice.kind === 'named') return { type: 'tool', name: choice.tool.name }
  if (choice.kind === 'none' || (choice.kind === 'allowed' && choice.tools.length === 0)) return { type: 'none' }
  return { type: isForcing(choice) ? 'any' : 'auto' }
}

function upstreamTool(tool: Tool, verdicts: Verdicts): object {
  const { name, description = '', bodyPath } = tool
  const head = { name, ...(description === '' ? {} : { description }) }
  if (tool.kind === 'function') {
    const { parameters, strict } = tool
    const noInput = strict ? CLOSED_NO_INPUT : NO_INPUT
    const input_schema = parameters === undefined ? noInput : objectSchema(parameters.schema, parameters.spelled)
    return { ...head, input_schema, ...(strict ? { strict } : {}) }
  }
  if (tool.grammar !== undefined) verdicts.refuse(`${bodyPath}.format`, 'Send a custom tool without a grammar.')
  return { ...head, input_schema: TEXT_INPUT }
}
